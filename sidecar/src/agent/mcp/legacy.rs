//! Revisions 2024-11-05 to 2025-11-25: initialize, sessions, notifications of the client.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::json;
use tools::json::{Kind, Node};

use super::envelope::RequestId;
use super::error::ProtocolError;
use super::serve::{Answer, Exchange, SESSION_ID};
use super::session::Session;
use super::version::{Legacy, SUPPORTED, VERSION_HEADER};
use super::{answer, client, offers};
use crate::agent::state::AgentState;
use crate::identity::Identity;
use crate::upstream::Reply;

/// `initialize`: agrees on a revision and begins a session.
pub(super) fn initialize(exchange: &Exchange<'_>) -> Answer {
    let asked = exchange
        .params
        .and_then(|params| params.get("protocolVersion"))
        .and_then(Node::as_str);
    let Some(asked) = asked else {
        return exchange.error(&ProtocolError::invalid_params(
            "params.protocolVersion must be a string",
        ));
    };
    let version = Legacy::parse(&asked).unwrap_or(Legacy::NEWEST);
    let capabilities = exchange
        .params
        .and_then(|params| params.get("capabilities"))
        .filter(|capabilities| capabilities.kind() == Kind::Object)
        .map_or(Bytes::from_static(b"{}"), |capabilities| {
            Bytes::copy_from_slice(capabilities.raw())
        });
    let begun = exchange
        .state
        .sessions
        .begin(exchange.identity, version, capabilities);
    let session = match begun {
        Ok(session) => session,
        Err(error) => {
            return exchange.error(&ProtocolError::refused(
                StatusCode::SERVICE_UNAVAILABLE,
                error.to_string(),
            ));
        }
    };
    session.belongs(client::origin_of_session(
        exchange.state,
        &session,
        exchange.identity,
    ));
    let result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": offers::capabilities(exchange.state.gate.registry(), Some(version)),
        "serverInfo": {"name": "toolgate", "version": env!("CARGO_PKG_VERSION")},
    });
    Answer::Message {
        status: StatusCode::OK,
        bytes: answer::result_message(exchange.id, result.to_string().as_bytes()),
        session: Some(session.id().to_owned()),
    }
}

/// Refuses a revision that is not spoken here; none is taken for 2025-03-26.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), ProtocolError> {
    let Some(value) = headers.get(VERSION_HEADER) else {
        return Ok(());
    };
    let text = value.to_str().unwrap_or("(not text)");
    if Legacy::parse(text).is_some() {
        return Ok(());
    }
    Err(ProtocolError::unsupported_version(text, &SUPPORTED))
}

/// The session that the headers name; none is fine, an unknown one is not.
pub(super) fn session(
    state: &AgentState,
    headers: &HeaderMap,
    identity: &Identity,
) -> Result<Option<Arc<Session>>, ProtocolError> {
    let Some(id) = headers.get(SESSION_ID) else {
        return Ok(None);
    };
    let found = id.to_str().ok().and_then(|id| state.sessions.find(id, identity));
    found.map(Some).ok_or_else(ProtocolError::unknown_session)
}

/// Takes note of an answer to what the session's client was asked.
pub(super) fn response(
    state: &AgentState,
    headers: &HeaderMap,
    identity: &Identity,
    id: &[u8],
    reply: Reply,
) -> Answer {
    match session(state, headers, identity) {
        Ok(Some(session)) => session.questions().answer(id, reply),
        Ok(None) => {}
        Err(error) => return Answer::error(&error, None),
    }
    Answer::Status(StatusCode::ACCEPTED)
}

/// Takes note of a notification. `notifications/cancelled` ends a call of the same session.
pub(super) fn notification(
    state: &AgentState,
    headers: &HeaderMap,
    identity: &Identity,
    method: &str,
    params: Option<Node<'_>>,
) -> Answer {
    let session = match session(state, headers, identity) {
        Ok(session) => session,
        Err(error) => return Answer::error(&error, None),
    };
    let Some(session) = session else {
        return Answer::Status(StatusCode::ACCEPTED);
    };
    let member = |key: &str| params.and_then(|params| params.get(key));
    match method {
        "notifications/cancelled" => {
            if let Some(id) = member("requestId").and_then(RequestId::read) {
                session.cancel(&id);
            }
        }
        "notifications/progress" => {
            if let (Some(token), Some(params)) = (member("progressToken"), params) {
                let params = Bytes::copy_from_slice(params.raw());
                session.questions().progress(token.raw(), params);
            }
        }
        "notifications/roots/list_changed" => {
            if let Some(origin) = session.origin() {
                for upstream in state.gate.upstreams().all() {
                    upstream.tell_of_roots(&origin.party);
                }
            }
        }
        _ => {}
    }
    Answer::Status(StatusCode::ACCEPTED)
}
