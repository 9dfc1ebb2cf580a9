//! The envelope of a message that came in: which of JSON-RPC's kinds it is, with everything else left raw.

use bytes::Bytes;

use super::scan;
use crate::upstream::AnswerKind;

/// The answer to a request of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) kind: AnswerKind,
    /// The member `result` or `error`.
    pub(super) raw: Bytes,
}

/// A message that came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Answer {
        id: u64,
        answer: Answer,
    },
    Request {
        id: Bytes,
        method: String,
        params: Bytes,
    },
    Notification {
        method: String,
        params: Bytes,
    },
}

/// Why a message cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub(super) struct Unreadable {
    /// The request it answers, where that much could be read.
    pub(super) id: Option<u64>,
    pub(super) problem: &'static str,
}

/// Reads the envelope of one message.
pub(super) fn read(text: &Bytes) -> Result<Message, Unreadable> {
    let mut parts = Parts::default();
    let outcome = parts.collect(text);
    let id = parts.id.and_then(number);
    match outcome {
        Ok(()) => parts.message(text).map_err(|problem| Unreadable { id, problem }),
        Err(problem) => Err(Unreadable { id, problem }),
    }
}

/// The `code` of a raw JSON-RPC error.
pub(super) fn error_code(error: &[u8]) -> Option<i64> {
    let raw = scan::member(error, "code")?;
    std::str::from_utf8(raw).ok()?.parse().ok()
}

#[derive(Default)]
struct Parts<'a> {
    id: Option<&'a [u8]>,
    method: Option<&'a [u8]>,
    params: Option<&'a [u8]>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn collect(&mut self, text: &'a [u8]) -> Result<(), &'static str> {
        for member in scan::members(text) {
            let member = member.map_err(|_| "it is not a JSON object")?;
            let part = match member.key {
                b"id" => &mut self.id,
                b"method" => &mut self.method,
                b"params" => &mut self.params,
                b"result" => &mut self.result,
                b"error" => &mut self.error,
                _ => continue,
            };
            if part.replace(member.value).is_some() {
                return Err("it has a member twice");
            }
        }
        if std::str::from_utf8(text).is_err() {
            return Err("it is not UTF-8");
        }
        Ok(())
    }

    fn message(&self, text: &Bytes) -> Result<Message, &'static str> {
        // INVARIANT: every part is a slice of `text`.
        let slice = |part: &[u8]| text.slice_ref(part);
        let id = self.id.filter(|raw| *raw != b"null");
        if let Some(raw) = self.method {
            let method = serde_json::from_slice(raw).map_err(|_| "its method is not a string")?;
            return Ok(match id {
                Some(id) => Message::Request {
                    id: slice(id),
                    method,
                    params: self.params.map(slice).unwrap_or_default(),
                },
                None => Message::Notification {
                    method,
                    params: self.params.map(slice).unwrap_or_default(),
                },
            });
        }
        let (kind, raw) = match (self.result, self.error) {
            (Some(result), None) => (AnswerKind::Result, result),
            (None, Some(error)) => (AnswerKind::Error, error),
            _ => return Err("it is neither a request nor an answer"),
        };
        let id = id.and_then(number).ok_or("it answers no request of ours")?;
        let answer = Answer {
            kind,
            raw: slice(raw),
        };
        Ok(Message::Answer { id, answer })
    }
}

fn number(raw: &[u8]) -> Option<u64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn a_result_stays_raw() {
        let text = bytes(r#"{"result":{"n":9223372036854775813, "m":1.00} ,"jsonrpc":"2.0","id":7}"#);
        let Ok(Message::Answer { id: 7, answer }) = read(&text) else {
            panic!("{:?}", read(&text));
        };
        assert_eq!(answer.kind, AnswerKind::Result);
        assert_eq!(answer.raw, bytes(r#"{"n":9223372036854775813, "m":1.00}"#));
    }

    #[test]
    fn requests_and_notifications_are_told_apart() {
        assert_eq!(
            read(&bytes(r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#)).unwrap(),
            Message::Request {
                id: bytes(r#""x""#),
                method: "ping".to_owned(),
                params: Bytes::new()
            }
        );
        assert_eq!(
            read(&bytes(r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#)).unwrap(),
            Message::Notification {
                method: "n".to_owned(),
                params: bytes(r#"{"a":1}"#)
            }
        );
    }

    #[test]
    fn an_unreadable_answer_still_names_its_request() {
        let unreadable = read(&bytes(r#"{"jsonrpc":"2.0","id":3,"result":{"n":]}}"#)).unwrap_err();
        assert_eq!(unreadable.id, Some(3));
        assert_eq!(
            read(&bytes(r#"{"id":3,"result":1,"result":2}"#)).unwrap_err().id,
            Some(3)
        );
        assert_eq!(
            read(&bytes(r#"{"id":3,"result":1,"error":2}"#)).unwrap_err().id,
            Some(3)
        );
        assert_eq!(
            read(&bytes(r#"{"id":null,"error":{"code":1}}"#)).unwrap_err().id,
            None
        );
        assert_eq!(
            read(&Bytes::from_static(b"{\"id\":3,\"result\":\"\xff\"}"))
                .unwrap_err()
                .id,
            Some(3)
        );
    }
}
