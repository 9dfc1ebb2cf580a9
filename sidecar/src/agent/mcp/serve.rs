//! `POST /mcp`: one message, one answer.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::json::Node;

use super::call_stream::{self, Opening};
use super::envelope::{self, EnvelopeError, Message, RequestId};
use super::error::ProtocolError;
use super::round_client::RoundQuestions;
use super::rounds::Again;
use super::session::Session;
use super::tasks::begin::Beginning;
use super::version::{self, Era, Legacy, META_CAPABILITIES, MODERN, VERSION_HEADER};
use super::{answer, batch, call, dispatch, legacy, modern};
use crate::agent::attended::{Attended, WhenAbandoned};
use crate::agent::body::{self, BodyError};
use crate::agent::caller::Caller;
use crate::agent::state::{self, AgentState};
use crate::gate;
use crate::identity::Identity;
use crate::upstream::{Asks, Reply};

/// The header with a legacy session's id.
pub const SESSION_ID: &str = "mcp-session-id";

/// What a POST is answered with.
#[derive(Debug)]
pub enum Answer {
    /// A status alone.
    Status(StatusCode),
    /// A JSON-RPC message.
    Message {
        /// HTTP status.
        status: StatusCode,
        /// The message.
        bytes: Vec<u8>,
        /// The session that the message begins.
        session: Option<String>,
    },
    /// A stream of its own.
    Stream(Response),
}

impl Answer {
    /// A result or error with status 200.
    pub fn message(bytes: Vec<u8>) -> Self {
        Self::Message {
            status: StatusCode::OK,
            bytes,
            session: None,
        }
    }

    /// A protocol error.
    pub fn error(error: &ProtocolError, id: Option<&RequestId>) -> Self {
        Self::Message {
            status: error.status,
            bytes: error.body(id),
            session: None,
        }
    }

    /// As a whole HTTP response.
    pub fn into_response(self) -> Response {
        match self {
            Self::Status(status) => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = status;
                response
            }
            Self::Message {
                status,
                bytes,
                session,
            } => {
                let mut response = answer::json(bytes);
                *response.status_mut() = status;
                if let Some(id) = session.and_then(|id| HeaderValue::try_from(id).ok()) {
                    response.headers_mut().insert(SESSION_ID, id);
                }
                response
            }
            Self::Stream(response) => response,
        }
    }
}

/// One request of a client, while it is served.
pub(super) struct Exchange<'e> {
    pub(super) state: &'e Arc<AgentState>,
    pub(super) headers: &'e HeaderMap,
    pub(super) identity: &'e Identity,
    pub(super) body: &'e Bytes,
    pub(super) id: &'e RequestId,
    pub(super) params: Option<Node<'e>>,
    pub(super) is_modern: bool,
    pub(super) session: Option<&'e Arc<Session>>,
    pub(super) cancel: &'e CancellationToken,
    /// Where the questions of a call go that can be held.
    pub(super) questions: Option<&'e Arc<RoundQuestions>>,
    /// What was kept of the round before.
    pub(super) again: Option<Mutex<Option<Again>>>,
    /// The task that the call becomes, or can.
    pub(super) task: Option<&'e Arc<Beginning>>,
}

impl<'e> Exchange<'e> {
    /// The same request, which goes on where an earlier one ended.
    pub(super) fn going_on(&self, again: Again) -> Exchange<'e> {
        Exchange {
            state: self.state,
            headers: self.headers,
            identity: self.identity,
            body: self.body,
            id: self.id,
            params: self.params,
            is_modern: self.is_modern,
            session: self.session,
            cancel: self.cancel,
            questions: None,
            again: Some(Mutex::new(Some(again))),
            task: None,
        }
    }

    /// Whether a modern client takes questions of any kind.
    pub(super) fn can_be_asked(&self) -> bool {
        let capabilities = version::meta(self.params).and_then(|meta| meta.get(META_CAPABILITIES));
        capabilities.is_some_and(|capabilities| Asks::ALL.is_any_of(capabilities.raw()))
    }

    /// The session that the request's calls are recorded under.
    pub(super) fn call_session(&self) -> Option<gate::Session> {
        state::named_session(self.headers).or_else(|| {
            let id = self.session?.id().parse().ok()?;
            Some(gate::Session { id, is_named: false })
        })
    }

    pub(super) fn result(&self, result: &[u8]) -> Answer {
        Answer::message(answer::result_message(self.id, result))
    }

    pub(super) fn error(&self, error: &ProtocolError) -> Answer {
        Answer::error(error, Some(self.id))
    }

    /// An error that an upstream answered with, as it came.
    pub(super) fn error_of_upstream(&self, raw: &[u8]) -> Answer {
        let status = if self.is_modern {
            modern::status_of(raw)
        } else {
            StatusCode::OK
        };
        Answer::Message {
            status,
            bytes: answer::error_message(Some(self.id), raw),
            session: None,
        }
    }

    /// The method is not served.
    pub(super) fn no_method(&self, method: &str) -> Answer {
        let status = if self.is_modern {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::OK
        };
        self.error(&ProtocolError::method_not_found(status, method))
    }
}

/// Handles `POST /mcp`.
pub async fn post(State(state): State<Arc<AgentState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let identity = match state.admit(Caller::from(&parts)).await {
        Ok(identity) => identity,
        Err(refused) => return refused.response(),
    };
    let body = match body::read(body, state.limits().message_bytes).await {
        Ok(body) => body,
        Err(BodyError::TooLarge { limit }) => return ProtocolError::too_large(limit).response(None),
        Err(error @ BodyError::Broken) => {
            return ProtocolError::invalid_request(error.to_string()).response(None);
        }
    };
    let cancel = CancellationToken::new();
    let is_modern = parts
        .headers
        .get(VERSION_HEADER)
        .is_some_and(|value| value == MODERN);
    let when_abandoned = if is_modern {
        WhenAbandoned::Cancel(cancel.clone())
    } else {
        WhenAbandoned::GoOn
    };
    let (open, opened) = oneshot::channel();
    let open = accepts_events(&parts.headers).then_some(open);
    let tasks = state.tasks.clone();
    let work = Box::pin(serve(state, parts.headers, identity, body, open, cancel));
    let mut work = Attended::new(work, when_abandoned.clone(), tasks.clone());
    tokio::select! {
        biased;
        answer = &mut work => answer.into_response(),
        Ok(opening) = opened => call_stream::of_call(work, opening, when_abandoned, tasks),
    }
}

/// Whether the client can read an event stream; one that says nothing can.
fn accepts_events(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().peekable();
    accepted.peek().is_none()
        || accepted
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.contains("text/event-stream") || value.contains("*/*"))
}

async fn serve(
    state: Arc<AgentState>,
    headers: HeaderMap,
    identity: Identity,
    body: Bytes,
    open: Option<oneshot::Sender<Opening>>,
    cancel: CancellationToken,
) -> Answer {
    let limits = state.limits();
    let document = match envelope::parse(&body, limits.message_bytes, limits.argument_depth) {
        Ok(document) => document,
        Err(error) => {
            return Box::pin(call::unreadable(&state, &headers, &identity, &body, error)).await;
        }
    };
    match envelope::read(document.root()) {
        Ok(Message::Request { id, method, params }) => {
            let exchange = Exchange {
                state: &state,
                headers: &headers,
                identity: &identity,
                body: &body,
                id: &id,
                params,
                is_modern: version::era(&headers, params) == Era::Modern,
                session: None,
                cancel: &cancel,
                questions: None,
                again: None,
                task: None,
            };
            if exchange.is_modern {
                dispatch::modern(&exchange, &method, open).await
            } else {
                dispatch::legacy(exchange, &method, open).await
            }
        }
        Ok(Message::Notification { method, params }) => {
            legacy::notification(&state, &headers, &identity, &method, params)
        }
        Ok(Message::Response { id, kind, raw }) => {
            let raw = body.slice_ref(raw);
            legacy::response(&state, &headers, &identity, id, Reply { kind, raw })
        }
        Err(EnvelopeError::Batch) if open.is_some() => {
            batch::serve(state, headers, identity, body.clone()).await
        }
        Err(error) => {
            let id = envelope::remains(&body).id;
            Answer::error(&ProtocolError::invalid_request(error.to_string()), id.as_ref())
        }
    }
}

/// Serves one message of several.
pub(super) fn one(
    state: Arc<AgentState>,
    headers: HeaderMap,
    identity: Identity,
    body: Bytes,
) -> BoxFuture<'static, Answer> {
    Box::pin(serve(
        state,
        headers,
        identity,
        body,
        None,
        CancellationToken::new(),
    ))
}

/// Serves a modern request that can be held while its agent is asked.
pub(super) fn held(
    state: Arc<AgentState>,
    headers: HeaderMap,
    identity: Identity,
    body: Bytes,
    cancel: CancellationToken,
    questions: Arc<RoundQuestions>,
) -> BoxFuture<'static, Answer> {
    Box::pin(async move {
        let limits = state.limits();
        let document = envelope::parse(&body, limits.message_bytes, limits.argument_depth);
        let message = document
            .as_ref()
            .ok()
            .map(|document| envelope::read(document.root()));
        let Some(Ok(Message::Request { id, method, params })) = message else {
            return Answer::error(&ProtocolError::invalid_request("not a request"), None);
        };
        let exchange = Exchange {
            state: &state,
            headers: &headers,
            identity: &identity,
            body: &body,
            id: &id,
            params,
            is_modern: true,
            session: None,
            cancel: &cancel,
            questions: Some(&questions),
            again: None,
            task: None,
        };
        dispatch::governed(&exchange, &method, None).await
    })
}

/// The revision of a legacy client that names none.
pub const ASSUMED: Legacy = Legacy::V20250326;
