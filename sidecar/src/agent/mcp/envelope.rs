//! The JSON-RPC envelope of one message.

use std::borrow::Cow;

use bytes::Bytes;
use tools::json::{Document, JsonError, JsonErrorKind, Kind, Limits, Node};

use crate::upstream::AnswerKind;
use crate::upstream::mcp::scan;

/// Levels of nesting around the arguments of a call: the message and its params.
const AROUND_ARGUMENTS: usize = 2;

/// The id of a request, as its exact JSON text: a string or an integer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RequestId(Bytes);

impl RequestId {
    /// The id's JSON.
    pub fn raw(&self) -> &[u8] {
        &self.0
    }

    /// Reads an id; `None` when the value cannot be one.
    pub fn read(node: Node<'_>) -> Option<Self> {
        match node.kind() {
            Kind::String => Some(Self(Bytes::copy_from_slice(node.raw()))),
            Kind::Number => {
                let whole = !node.raw().iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
                whole.then(|| Self(Bytes::copy_from_slice(node.raw())))
            }
            Kind::Null | Kind::Bool | Kind::Array | Kind::Object => None,
        }
    }
}

/// One message of a client.
#[derive(Debug)]
pub enum Message<'d> {
    /// Wants an answer.
    Request {
        /// Its id.
        id: RequestId,
        /// What is asked.
        method: Cow<'d, str>,
        /// With which parameters; an object where there are any.
        params: Option<Node<'d>>,
    },
    /// Wants none.
    Notification {
        /// What is told.
        method: Cow<'d, str>,
        /// With which parameters.
        params: Option<Node<'d>>,
    },
    /// An answer to a request of ours.
    Response {
        /// The request's id, as its exact JSON text.
        id: &'d [u8],
        /// Whether it is a result or an error.
        kind: AnswerKind,
        /// The member `result` or `error`.
        raw: &'d [u8],
    },
}

/// Why a message has no envelope that can be answered as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Several messages in one array.
    #[error("batches are not supported; send one message per request")]
    Batch,
    /// Not a JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Invalid(&'static str),
}

/// Parses a whole message; its arguments may nest as deep as `depth`.
///
/// # Errors
/// When the bytes can be read in more than one way, or in none.
pub fn parse(body: &[u8], max_bytes: usize, depth: usize) -> Result<Document<'_>, JsonError> {
    let limits = Limits {
        max_bytes,
        max_depth: depth + AROUND_ARGUMENTS,
    };
    Document::parse(body, limits)
}

/// Reads the envelope of a parsed message.
///
/// # Errors
/// When it is not one JSON-RPC 2.0 message.
pub fn read(root: Node<'_>) -> Result<Message<'_>, EnvelopeError> {
    match root.kind() {
        Kind::Object => {}
        Kind::Array => return Err(EnvelopeError::Batch),
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
            return Err(EnvelopeError::Invalid("the message must be an object"));
        }
    }
    let (mut id, mut method, mut params, mut version) = (None, None, None, false);
    let (mut result, mut error) = (None, None);
    for (key, value) in root.members() {
        match key.as_ref() {
            "jsonrpc" => version = value.as_str().as_deref() == Some("2.0"),
            "id" => id = Some(value),
            "method" => method = Some(value),
            "params" => params = Some(value),
            "result" => result = Some(value),
            "error" => error = Some(value),
            _ => {}
        }
    }
    if !version {
        return Err(EnvelopeError::Invalid("\"jsonrpc\" must be \"2.0\""));
    }
    let Some(method) = method else {
        let (kind, raw) = match (result, error) {
            (Some(result), None) => (AnswerKind::Result, result.raw()),
            (None, Some(error)) => (AnswerKind::Error, error.raw()),
            (None, None) => return Err(EnvelopeError::Invalid("\"method\" is missing")),
            (Some(_), Some(_)) => {
                return Err(EnvelopeError::Invalid(
                    "an answer is a result or an error, not both",
                ));
            }
        };
        return Ok(Message::Response {
            id: id.map_or(b"null", Node::raw),
            kind,
            raw,
        });
    };
    let method = method
        .as_str()
        .ok_or(EnvelopeError::Invalid("\"method\" must be a string"))?;
    if params.is_some_and(|params| params.kind() != Kind::Object) {
        return Err(EnvelopeError::Invalid("\"params\" must be an object"));
    }
    match id {
        None => Ok(Message::Notification { method, params }),
        Some(id) => {
            let id =
                RequestId::read(id).ok_or(EnvelopeError::Invalid("\"id\" must be a string or an integer"))?;
            Ok(Message::Request { id, method, params })
        }
    }
}

/// What can be told of a message that was refused as a whole, so that the refusal reaches who asked and is recorded
/// under the tool's name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// The request's id.
    pub id: Option<RequestId>,
    /// The tool of a `tools/call`.
    pub tool: Option<String>,
}

/// Looks through a refused message. Where a key comes twice the first one counts: nothing is decided on it.
pub fn remains(body: &[u8]) -> Remains {
    let id = scan::member(body, "id").and_then(|id| whole(id, RequestId::read));
    let is_call = scan::member(body, "method")
        .and_then(|method| whole(method, |node| node.as_str().map(|method| method == "tools/call")))
        .unwrap_or(false);
    let tool = scan::member(body, "params")
        .filter(|_| is_call)
        .and_then(|params| scan::member(params, "name"))
        .and_then(|name| whole(name, |node| node.as_str().map(Cow::into_owned)));
    Remains { id, tool }
}

fn whole<T>(bytes: &[u8], read: impl FnOnce(Node<'_>) -> Option<T>) -> Option<T> {
    let document = Document::parse(bytes, Limits::MESSAGE).ok()?;
    read(document.root())
}

/// Whether the bytes are no JSON at all, as opposed to JSON that is refused.
pub fn is_no_json(error: &JsonError) -> bool {
    match error.kind {
        JsonErrorKind::InvalidUtf8 | JsonErrorKind::UnexpectedEnd | JsonErrorKind::Syntax => true,
        JsonErrorKind::TooLarge { .. }
        | JsonErrorKind::TooDeep { .. }
        | JsonErrorKind::DuplicateKey
        | JsonErrorKind::LoneSurrogate
        | JsonErrorKind::Exponent => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Document<'_> {
        parse(text.as_bytes(), 1 << 20, 64).unwrap()
    }

    #[test]
    fn a_request_keeps_the_exact_text_of_its_id() {
        for id in ["7", "\"seven\"", "-1", "12345678901234567890"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let document = parsed(&text);
            let Message::Request {
                id: read,
                method,
                params,
            } = read(document.root()).unwrap()
            else {
                panic!("not a request");
            };
            assert_eq!(read.raw(), id.as_bytes());
            assert_eq!((method.as_ref(), params.is_none()), ("ping", true));
        }
    }

    #[test]
    fn notifications_and_responses_are_told_apart() {
        let document = parsed(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(
            read(document.root()).unwrap(),
            Message::Notification { .. }
        ));
        let document = parsed(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(matches!(
            read(document.root()).unwrap(),
            Message::Response {
                id: b"1",
                kind: AnswerKind::Result,
                raw: b"{}"
            }
        ));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "1",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
        ] {
            let document = parsed(text);
            assert!(
                matches!(read(document.root()), Err(EnvelopeError::Invalid(_))),
                "{text}"
            );
        }
        let document = parsed("[]");
        assert_eq!(read(document.root()).unwrap_err(), EnvelopeError::Batch);
    }

    #[test]
    fn arguments_may_nest_64_deep_and_no_deeper() {
        let call = |levels: usize| {
            let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"a":{open}{close}}}}}}}"#
            )
        };
        assert!(parse(call(64).as_bytes(), 1 << 20, 64).is_ok());
        assert!(matches!(
            parse(call(65).as_bytes(), 1 << 20, 64).unwrap_err().kind,
            JsonErrorKind::TooDeep { .. }
        ));
    }

    #[test]
    fn a_refused_message_still_tells_its_id_and_tool() {
        let text = br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"fs.write","arguments":{"x":1,"x":2}}}"#;
        let error = parse(text, 1 << 20, 64).unwrap_err();
        assert!(!is_no_json(&error));
        let remains = remains(text);
        assert_eq!(remains.id.unwrap().raw(), b"\"a\"");
        assert_eq!(remains.tool.as_deref(), Some("fs.write"));
        let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll","params":{"n\u0061me":"fs.write","a":1,"a":2}}"#;
        assert_eq!(super::remains(text).tool.as_deref(), Some("fs.write"));
        assert_eq!(super::remains(b"not json"), Remains::default());
    }
}
