//! Server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, header};

/// How often an idle stream says that it is alive.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A comment: says nothing to the client, and keeps the connection open.
pub const COMMENT: Bytes = Bytes::from_static(b": \n\n");

/// One message as an event. A line break between the tokens of its JSON begins another `data` line.
pub fn event(message: &[u8]) -> Bytes {
    const OPEN: &[u8] = b"event: message\ndata: ";
    let mut out = Vec::with_capacity(OPEN.len() + message.len() + 2);
    out.extend_from_slice(OPEN);
    let mut rest = message;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        let (line, ended) = rest.split_at(at);
        out.extend_from_slice(line);
        out.extend_from_slice(b"\ndata: ");
        rest = ended.strip_prefix(b"\r\n").or(ended.get(1..)).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(b"\n\n");
    Bytes::from(out)
}

/// An event with an id, by which a client resumes the stream behind it.
pub fn numbered(id: &str, event: &[u8]) -> Bytes {
    Bytes::from([b"id: ", id.as_bytes(), b"\n", event].concat())
}

/// An event without a message: it tells the id that a stream begins with, and when to resume it.
pub fn primer(id: &str, retry: Duration) -> Bytes {
    Bytes::from(format!("id: {id}\nretry: {}\ndata: \n\n", retry.as_millis()))
}

/// A response that streams events.
pub fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures_util::StreamExt as _;
    let mut response = Response::new(Body::from_stream(events.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_event_whatever_its_line_breaks() {
        assert_eq!(event(b"{}"), "event: message\ndata: {}\n\n");
        assert_eq!(
            event(b"{\n\"a\":1\r\n}"),
            "event: message\ndata: {\ndata: \"a\":1\ndata: }\n\n"
        );
        assert_eq!(event(b"{}\r"), "event: message\ndata: {}\ndata: \n\n");
    }
}
