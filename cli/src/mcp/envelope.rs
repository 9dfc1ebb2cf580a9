//! The little of a message that the bridge must know: how it is routed, never what it says.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The key of a request's `_meta` that makes it modern (revision 2026-07-28, "Requests").
const PROTOCOL_VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// What kind of message a line is, and what its HTTP request needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The request's id as it was written; none: a notification or an answer.
    pub(super) id: Option<String>,
    /// None: an answer.
    pub(super) method: Option<String>,
    /// The name or URI that a modern request mirrors in `Mcp-Name`.
    pub(super) name: Option<String>,
    /// The revision that a modern request states.
    pub(super) modern: Option<String>,
    /// Of a cancellation: whose.
    pub(super) cancels: Option<String>,
}

impl Envelope {
    /// Reads a line; none: it is no JSON object.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let message: Message<'_> = serde_json::from_slice(line).ok()?;
        let params: Params<'_> = message
            .params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let method = message.method.map(Cow::into_owned);
        let is_request = message.id.is_some() && method.is_some();
        let cancels = (method.as_deref() == Some("notifications/cancelled"))
            .then(|| params.request_id.map(|id| id.get().to_owned()))
            .flatten();
        Some(Self {
            id: is_request
                .then(|| message.id.map(|id| id.get().to_owned()))
                .flatten(),
            name: params.name.or(params.uri).map(Cow::into_owned),
            modern: params.meta.and_then(protocol_version),
            method,
            cancels,
        })
    }
}

fn protocol_version(meta: &RawValue) -> Option<String> {
    let meta: serde_json::Map<String, serde_json::Value> = serde_json::from_str(meta.get()).ok()?;
    meta.get(PROTOCOL_VERSION_KEY)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modern_call_tells_its_revision_and_name() {
        let line = br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x.y","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let envelope = Envelope::read(line).unwrap();
        assert_eq!(envelope.id.as_deref(), Some("\"a\""));
        assert_eq!(envelope.name.as_deref(), Some("x.y"));
        assert_eq!(envelope.modern.as_deref(), Some("2026-07-28"));
    }

    #[test]
    fn an_answer_is_no_request() {
        let envelope = Envelope::read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap();
        assert_eq!((envelope.id, envelope.method), (None, None));
    }

    #[test]
    fn a_cancellation_names_its_request() {
        let line = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert_eq!(Envelope::read(line).unwrap().cancels.as_deref(), Some("7"));
    }
}
