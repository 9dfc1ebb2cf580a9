//! Several messages in one POST, which revision 2025-03-26 has and no other.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use http::{HeaderMap, StatusCode};

use super::error::ProtocolError;
use super::legacy;
use super::serve::{self, Answer};
use super::version::{Legacy, VERSION_HEADER};
use crate::agent::state::AgentState;
use crate::identity::Identity;
use crate::upstream::mcp::scan;

/// Messages of one batch.
const MAX_MESSAGES: usize = 100;

/// Answers to all messages of a batch, in one array; none where there are only notifications and answers.
pub(super) fn serve(
    state: Arc<AgentState>,
    headers: HeaderMap,
    identity: Identity,
    body: Bytes,
) -> BoxFuture<'static, Answer> {
    Box::pin(async move { all(&state, &headers, &identity, &body).await })
}

async fn all(state: &Arc<AgentState>, headers: &HeaderMap, identity: &Identity, body: &Bytes) -> Answer {
    let session = match legacy::session(state, headers, identity) {
        Ok(session) => session,
        Err(error) => return Answer::error(&error, None),
    };
    let version = match (&session, headers.get(VERSION_HEADER)) {
        (Some(session), _) => Some(session.version()),
        (None, Some(value)) => value.to_str().ok().and_then(Legacy::parse),
        (None, None) => Some(serve::ASSUMED),
    };
    let refused = |what: &str| Answer::error(&ProtocolError::invalid_request(what), None);
    if version != Some(Legacy::V20250326) {
        return refused("batches are not supported in this revision; send one message per request");
    }
    let messages = match scan::elements(body) {
        Ok(messages) if !messages.is_empty() && messages.len() <= MAX_MESSAGES => messages,
        Ok(_) => return refused("a batch has 1 to 100 messages"),
        Err(_) => return refused("the batch is no JSON array"),
    };
    if messages.iter().any(|message| is_no_part(message)) {
        return refused("initialize and batches cannot be part of a batch");
    }
    let served = messages.into_iter().map(|message| {
        serve::one(
            Arc::clone(state),
            headers.clone(),
            identity.clone(),
            body.slice_ref(message),
        )
    });
    let mut answers = Vec::new();
    for answer in join_all(served).await {
        if let Answer::Message { bytes, .. } = answer {
            answers.push(if answers.is_empty() { b'[' } else { b',' });
            answers.extend_from_slice(&bytes);
        }
    }
    if answers.is_empty() {
        return Answer::Status(StatusCode::ACCEPTED);
    }
    answers.push(b']');
    Answer::message(answers)
}

fn is_no_part(message: &[u8]) -> bool {
    message.first() == Some(&b'[')
        || scan::member(message, "method")
            .and_then(|raw| serde_json::from_slice::<String>(raw).ok())
            .is_some_and(|method| method == "initialize")
}
