//! Event streams towards MCP clients: of one call, and of list changes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::{self, notification};
use super::error::ProtocolError;
use super::legacy;
use super::serve::{Answer, Exchange, SESSION_ID};
use super::session::Use;
use crate::agent::attended::Attended;
use crate::agent::sse::{self, COMMENT, KEEP_ALIVE};
use crate::agent::state::AgentState;
use crate::gate::Changes;
use crate::identity::Identity;
use crate::upstream::with_progress_token;

/// A call wants its answer to be a stream.
pub struct Opening {
    /// The upstream's progress, and the client's own token (raw JSON) to put into it.
    pub progress: Option<(mpsc::Receiver<Bytes>, Bytes)>,
}

/// The stream of one call: its progress in order, then its answer.
pub fn of_call(work: Attended<Answer>, opening: Opening) -> Response {
    struct Live {
        work: Attended<Answer>,
        progress: Option<(mpsc::Receiver<Bytes>, Bytes)>,
        answer: Option<Answer>,
    }
    let live = Live {
        work,
        progress: opening.progress,
        answer: None,
    };
    let events = stream::unfold(Some(live), |live| async {
        let mut live = live?;
        loop {
            if let Some(answer) = live.answer.take() {
                // Everything that came before the answer is in the channel now.
                if let Some(event) = live.progress.as_mut().and_then(|(waiting, token)| {
                    waiting
                        .try_recv()
                        .ok()
                        .map(|params| progress_event(&params, token))
                }) {
                    live.answer = Some(answer);
                    return Some((event, Some(live)));
                }
                return Some((final_event(answer), None));
            }
            let progress = async {
                match &mut live.progress {
                    Some((waiting, token)) => {
                        waiting.recv().await.map(|params| progress_event(&params, token))
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(event) = progress => return Some((event, Some(live))),
                answer = &mut live.work => live.answer = Some(answer),
                () = tokio::time::sleep(KEEP_ALIVE) => return Some((COMMENT, Some(live))),
            }
        }
    });
    sse::response(events)
}

fn progress_event(params: &Bytes, token: &Bytes) -> Bytes {
    match with_progress_token(params, token) {
        Some(params) => sse::event(&notification("notifications/progress", Some(&params))),
        None => COMMENT,
    }
}

fn final_event(answer: Answer) -> Bytes {
    match answer {
        Answer::Message { bytes, .. } => sse::event(&bytes),
        Answer::Status(_) | Answer::Stream(_) => COMMENT,
    }
}

/// Handles `GET /mcp`: the stream of a legacy session, on which list changes are told.
pub async fn get(State(state): State<Arc<AgentState>>, request: Request) -> Response {
    match open_session_stream(&state, request.headers()) {
        Ok(response) => response,
        Err(error) => error.response(None),
    }
}

fn open_session_stream(state: &Arc<AgentState>, headers: &HeaderMap) -> Result<Response, ProtocolError> {
    let identity = state
        .identify(headers)
        .map_err(|error| ProtocolError::refused(error.status(), error.to_string()))?;
    legacy::check_version(headers).map_err(|mut error| {
        error.status = StatusCode::METHOD_NOT_ALLOWED;
        error
    })?;
    let accepts = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"));
    if !accepts {
        return Err(ProtocolError::refused(
            StatusCode::NOT_ACCEPTABLE,
            "the stream is text/event-stream; the Accept header does not list it",
        ));
    }
    let session = legacy::session(state, headers, &identity)?.ok_or_else(|| {
        ProtocolError::refused(
            StatusCode::METHOD_NOT_ALLOWED,
            "there is no stream without a session; send initialize first",
        )
    })?;
    let ended = session.take_stream();
    let watch = ListWatch {
        changes: state.gate.changes(&identity),
        identity,
        state: Arc::clone(state),
        ended,
        _in_use: Some(state.sessions.keep(&session)),
    };
    let changed = sse::event(&notification("notifications/tools/list_changed", None));
    Ok(sse::response(watch.events(changed, None)))
}

/// Handles `DELETE /mcp`: ends a session.
pub async fn delete(State(state): State<Arc<AgentState>>, request: Request) -> Response {
    let headers = request.headers();
    let identity = match state.identify(headers) {
        Ok(identity) => identity,
        Err(error) => return ProtocolError::refused(error.status(), error.to_string()).response(None),
    };
    let id = headers.get(SESSION_ID).map(|id| id.to_str().unwrap_or_default());
    match id {
        Some(id) if state.sessions.end(id, &identity) => {
            Answer::Status(StatusCode::NO_CONTENT).into_response()
        }
        Some(_) => ProtocolError::unknown_session().response(None),
        None => ProtocolError::refused(StatusCode::METHOD_NOT_ALLOWED, "there is no session to end")
            .response(None),
    }
}

/// `subscriptions/listen` of modern clients: what was asked for and is there, then each change.
pub(super) fn listen(exchange: &Exchange<'_>) -> Answer {
    let wants_tools = exchange
        .params
        .and_then(|params| params.get("notifications"))
        .and_then(|filter| filter.get("toolsListChanged"))
        .and_then(tools::json::Node::as_bool)
        == Some(true);
    let id = String::from_utf8_lossy(exchange.id.raw()).into_owned();
    let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    let honoured = if wants_tools {
        json!({"toolsListChanged": true})
    } else {
        json!({})
    };
    let acknowledged = format!(r#"{{{meta},"notifications":{honoured}}}"#);
    let first = sse::event(&notification(
        "notifications/subscriptions/acknowledged",
        Some(acknowledged.as_bytes()),
    ));
    let changed = if wants_tools {
        let params = format!("{{{meta}}}");
        sse::event(&notification(
            "notifications/tools/list_changed",
            Some(params.as_bytes()),
        ))
    } else {
        COMMENT
    };
    let end = format!(r#"{{"resultType":"complete",{meta}}}"#);
    let last = sse::event(&answer::result_message(exchange.id, end.as_bytes()));
    let watch = ListWatch {
        changes: exchange.state.gate.changes(exchange.identity),
        identity: exchange.identity.clone(),
        state: Arc::clone(exchange.state),
        ended: exchange.state.shutdown.child_token(),
        _in_use: None,
    };
    let events = futures_util::StreamExt::chain(
        stream::once(std::future::ready(first)),
        watch.events(changed, Some(last)),
    );
    Answer::Stream(sse::response(events))
}

/// Waits for the list of one identity to change.
struct ListWatch {
    changes: Changes,
    identity: Identity,
    state: Arc<AgentState>,
    ended: CancellationToken,
    _in_use: Option<Use>,
}

impl ListWatch {
    fn events(self, changed: Bytes, last: Option<Bytes>) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(Some(self), move |watch| {
            let (changed, last) = (changed.clone(), last.clone());
            async move {
                let mut watch = watch?;
                tokio::select! {
                    biased;
                    () = watch.ended.cancelled() => last.map(|last| (last, None)),
                    () = watch.state.shutdown.cancelled() => last.map(|last| (last, None)),
                    () = watch.changes.next(&watch.state.gate, &watch.identity) => Some((changed, Some(watch))),
                    () = tokio::time::sleep(KEEP_ALIVE) => Some((COMMENT, Some(watch))),
                }
            }
        })
    }
}
