//! Revisions 2024-11-05 to 2025-11-25: initialize, sessions, notifications of the client.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use serde_json::json;
use tools::json::Node;

use super::envelope::RequestId;
use super::error::ProtocolError;
use super::serve::{Answer, Exchange, SESSION_ID};
use super::session::Session;
use super::version::{Legacy, SUPPORTED, VERSION_HEADER};
use super::{answer, offers};
use crate::agent::state::AgentState;
use crate::identity::Identity;

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
    let session = match exchange.state.sessions.begin(exchange.identity, version) {
        Ok(session) => session,
        Err(error) => {
            return exchange.error(&ProtocolError::refused(
                StatusCode::SERVICE_UNAVAILABLE,
                error.to_string(),
            ));
        }
    };
    let result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": offers::capabilities(exchange.state.gate.registry(), false),
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
    if method == "notifications/cancelled"
        && let Some(session) = session
        && let Some(id) = params
            .and_then(|params| params.get("requestId"))
            .and_then(RequestId::read)
    {
        session.cancel(&id);
    }
    Answer::Status(StatusCode::ACCEPTED)
}
