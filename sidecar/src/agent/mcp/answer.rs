//! Writing answers: raw results and errors are copied once, between the parts of their envelope.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, header};

use super::envelope::RequestId;

/// `{"jsonrpc":"2.0","id":…,"result":…}`
pub fn result_message(id: &RequestId, result: &[u8]) -> Vec<u8> {
    message(Some(id), b"result", result)
}

/// `{"jsonrpc":"2.0","id":…,"error":…}`; `id` is null where none could be read.
pub fn error_message(id: Option<&RequestId>, error: &[u8]) -> Vec<u8> {
    message(id, b"error", error)
}

fn message(id: Option<&RequestId>, member: &[u8], value: &[u8]) -> Vec<u8> {
    const OPEN: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
    let id = id.map_or(&b"null"[..], RequestId::raw);
    let mut out = Vec::with_capacity(OPEN.len() + id.len() + member.len() + value.len() + 6);
    for part in [OPEN, id, b",\"", member, b"\":", value, b"}"] {
        out.extend_from_slice(part);
    }
    out
}

/// `{"jsonrpc":"2.0","method":…,"params":…}`
pub fn notification(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut out = format!(r#"{{"jsonrpc":"2.0","method":"{method}""#).into_bytes();
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out
}

/// A message as the whole answer to a POST.
pub fn json(message: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(message));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use crate::agent::mcp::envelope;

    use super::*;

    #[test]
    fn a_result_is_wrapped_without_a_changed_byte() {
        let body = br#"{"jsonrpc":"2.0","id":"x\u0041","method":"m"}"#;
        let document = envelope::parse(body, 1000, 64).unwrap();
        let Ok(envelope::Message::Request { id, .. }) = envelope::read(document.root()) else {
            panic!("not a request");
        };
        assert_eq!(
            result_message(&id, br#"{ "n": 1e400 }"#),
            br#"{"jsonrpc":"2.0","id":"x\u0041","result":{ "n": 1e400 }}"#
        );
        assert_eq!(
            error_message(None, b"{}"),
            br#"{"jsonrpc":"2.0","id":null,"error":{}}"#
        );
    }
}
