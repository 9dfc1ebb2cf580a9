//! Messages that go out, put together from raw pieces.

use std::sync::Arc;

use bytes::Bytes;

use super::scan;
use super::{Dialect, Era};
use crate::upstream::{AnswerKind, Audience, Reply, UpstreamRequest};

/// The member of a modern request's `_meta` by which log messages are asked for (2026-07-28, server/utilities/logging).
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Members of `_meta` that never pass from the client: the sidecar states them itself.
const OURS: [&str; 7] = [
    "progressToken",
    "art.flux7/agent",
    "art.flux7/user",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    LOG_LEVEL,
];

/// A request with raw `params`.
pub(super) fn request(id: u64, method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.len() + method.len() + 64);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.to_string().as_bytes());
    out.extend_from_slice(b",\"method\":");
    push_string(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    out.extend_from_slice(params);
    out.push(b'}');
    out
}

/// A notification, with raw `params` where there are some.
pub(super) fn notification(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
    push_string(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out
}

/// Tells the upstream that nobody waits for the answer to `id` any more.
pub(super) fn cancelled(id: u64) -> Vec<u8> {
    let params = format!("{{\"requestId\":{id},\"reason\":\"the caller no longer waits\"}}");
    notification("notifications/cancelled", Some(params.as_bytes()))
}

/// The answer to a request of the upstream.
pub(super) fn reply(id: &[u8], reply: &Reply) -> Vec<u8> {
    let member: &[u8] = match reply.kind {
        AnswerKind::Result => b"result",
        AnswerKind::Error => b"error",
    };
    answer(id, member, &reply.raw)
}

/// A result that answers a request of the upstream.
pub(super) fn result(id: &[u8], raw: &[u8]) -> Vec<u8> {
    answer(id, b"result", raw)
}

fn answer(id: &[u8], member: &[u8], raw: &[u8]) -> Vec<u8> {
    [
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        id,
        b",\"",
        member,
        b"\":",
        raw,
        b"}",
    ]
    .concat()
}

/// `params` of a request of our own: raw members, and the `_meta` that the era asks for.
pub(super) fn params(dialect: &Dialect, members: &[u8]) -> Vec<u8> {
    let mut out = b"{".to_vec();
    out.extend_from_slice(members);
    if dialect.era == Era::Modern {
        if !members.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(b"\"_meta\":{");
        push_identification(&mut out, dialect, dialect.capabilities.as_bytes());
        out.push(b'}');
    }
    out.push(b'}');
    out
}

/// A `tools/call`, or another request that an agent made.
pub(super) fn call(
    id: u64,
    request: &UpstreamRequest,
    dialect: &Dialect,
    forwards_identity: bool,
) -> Vec<u8> {
    let raw = [&request.arguments, &request.meta, &request.extra];
    let size: usize = raw.into_iter().flatten().map(Bytes::len).sum();
    let mut out = Vec::with_capacity(size + request.tool.len() + 512);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.to_string().as_bytes());
    let mut has_members = true;
    let decided: &[&str] = if let Some(method) = &request.method {
        out.extend_from_slice(b",\"method\":");
        push_string(&mut out, method);
        out.extend_from_slice(b",\"params\":{");
        has_members = false;
        &["_meta"]
    } else {
        out.extend_from_slice(b",\"method\":\"tools/call\",\"params\":{\"name\":");
        push_string(&mut out, &request.tool);
        if let Some(arguments) = &request.arguments {
            out.extend_from_slice(b",\"arguments\":");
            out.extend_from_slice(arguments);
        }
        &["name", "arguments", "_meta"]
    };
    for member in scan::members(request.extra.as_deref().unwrap_or_default()).map_while(Result::ok) {
        // Some servers match keys without case, and the last one wins: nothing may pass for what was decided.
        if !decided.iter().any(|name| member.passes_for(name)) {
            if has_members {
                out.push(b',');
            }
            has_members = true;
            push_member(&mut out, &member);
        }
    }
    let meta = meta(id, request, dialect, forwards_identity);
    if !meta.is_empty() {
        if has_members {
            out.push(b',');
        }
        out.extend_from_slice(b"\"_meta\":{");
        out.extend_from_slice(&meta);
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
    out
}

/// Whether a line feed or carriage return is in `message`; outside strings, JSON allows both.
pub(super) fn on_one_line(mut message: Vec<u8>) -> Vec<u8> {
    if memchr::memchr2(b'\n', b'\r', &message).is_some() {
        for byte in &mut message {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    message.push(b'\n');
    message
}

/// The members of `_meta`, joined by commas.
fn meta(id: u64, request: &UpstreamRequest, dialect: &Dialect, forwards_identity: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let replaces_trace = request.traceparent.is_some();
    for member in scan::members(request.meta.as_deref().unwrap_or_default()).map_while(Result::ok) {
        let is_trace = member.is("traceparent") || member.is("tracestate");
        if (is_trace && replaces_trace) || OURS.iter().any(|name| member.passes_for(name)) {
            continue;
        }
        separate(&mut out);
        push_member(&mut out, &member);
    }
    let wants_progress = |audience: &Arc<dyn Audience>| audience.wants_progress();
    if request.audience.as_ref().is_some_and(wants_progress) {
        separate(&mut out);
        out.extend_from_slice(b"\"progressToken\":");
        out.extend_from_slice(id.to_string().as_bytes());
    }
    let identity = request.identity.as_ref().filter(|_| forwards_identity);
    let texts = [
        ("traceparent", request.traceparent.as_deref()),
        (
            "tracestate",
            request.tracestate.as_deref().filter(|_| replaces_trace),
        ),
        (
            "art.flux7/agent",
            identity.map(|identity| identity.agent.as_str()),
        ),
        (
            "art.flux7/user",
            identity.and_then(|identity| identity.user.as_deref()),
        ),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            separate(&mut out);
            push_string(&mut out, key);
            out.push(b':');
            push_string(&mut out, text);
        }
    }
    if dialect.era == Era::Modern {
        separate(&mut out);
        let capabilities = request
            .origin
            .as_ref()
            .map(|origin| dialect.asks.of_agent(&origin.capabilities, false));
        push_identification(&mut out, dialect, capabilities.as_deref().unwrap_or(b"{}"));
        if let Some(level) = request.log_level {
            out.extend_from_slice(format!(",\"{LOG_LEVEL}\":\"{}\"", level.as_str()).as_bytes());
        }
    }
    out
}

fn push_identification(out: &mut Vec<u8>, dialect: &Dialect, capabilities: &[u8]) {
    out.extend_from_slice(b"\"io.modelcontextprotocol/protocolVersion\":");
    push_string(out, dialect.revision);
    out.extend_from_slice(
        concat!(
            ",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"toolgate\",\"version\":\"",
            env!("CARGO_PKG_VERSION"),
            "\"},\"io.modelcontextprotocol/clientCapabilities\":"
        )
        .as_bytes(),
    );
    out.extend_from_slice(capabilities);
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}

fn push_member(out: &mut Vec<u8>, member: &scan::Member<'_>) {
    out.push(b'"');
    out.extend_from_slice(member.key);
    out.extend_from_slice(b"\":");
    out.extend_from_slice(member.value);
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    // INVARIANT: writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Asks, ForwardedIdentity, LogLevel};

    fn text(message: Vec<u8>) -> String {
        String::from_utf8(message).unwrap()
    }

    fn request_with(meta: &'static str) -> UpstreamRequest {
        UpstreamRequest {
            tool: "echo".into(),
            arguments: Some(Bytes::from_static(br#"{"b":9223372036854775813,"a":1.00}"#)),
            meta: Some(Bytes::from_static(meta.as_bytes())),
            ..UpstreamRequest::default()
        }
    }

    #[test]
    fn arguments_and_foreign_meta_stay_byte_for_byte() {
        let request = request_with(r#"{"com.example/x":{"n":1.0}, "progressToken":"t"}"#);
        assert_eq!(
            text(call(
                5,
                &request,
                &Dialect::legacy("2025-11-25", Asks::ALL),
                false
            )),
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"b":9223372036854775813,"a":1.00},"_meta":{"com.example/x":{"n":1.0}}}}"#
        );
    }

    #[test]
    fn what_the_client_says_about_identity_never_passes() {
        let mut request = request_with(
            r#"{"art.flux7\/agent":"forged","art.flux7/user":"forged","io.modelcontextprotocol/clientInfo":{},"traceparent":"client","tracestate":"client"}"#,
        );
        request.identity = Some(ForwardedIdentity {
            agent: "claude".to_owned(),
            user: None,
        });
        request.traceparent = Some("ours".to_owned());
        let forwarded = text(call(1, &request, &Dialect::legacy("2025-11-25", Asks::ALL), true));
        assert!(
            forwarded.ends_with(r#""_meta":{"traceparent":"ours","art.flux7/agent":"claude"}}}"#),
            "{forwarded}"
        );
        let kept_back = text(call(
            1,
            &request,
            &Dialect::legacy("2025-11-25", Asks::ALL),
            false,
        ));
        assert!(
            kept_back.ends_with(r#""_meta":{"traceparent":"ours"}}}"#),
            "{kept_back}"
        );
    }

    #[test]
    fn a_modern_call_says_who_speaks_and_carries_further_members() {
        let mut request = request_with("{}");
        request.arguments = None;
        request.extra = Some(Bytes::from_static(br#"{"requestState":"s","name":"other"}"#));
        let sent = text(call(1, &request, &Dialect::modern(Asks::ALL), false));
        assert!(sent.contains(r#""params":{"name":"echo","requestState":"s","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28""#), "{sent}");
    }

    #[test]
    fn a_level_of_log_messages_is_the_sidecars_to_tell() {
        let mut request = request_with(r#"{"io.modelcontextprotocol/logLevel":"debug"}"#);
        let dialect = Dialect::modern(Asks::ALL);
        let silent = text(call(1, &request, &dialect, false));
        assert!(!silent.contains("logLevel"), "{silent}");
        request.log_level = Some(LogLevel::Warning);
        let told = text(call(1, &request, &dialect, false));
        assert!(
            told.ends_with(r#","io.modelcontextprotocol/logLevel":"warning"}}}"#),
            "{told}"
        );
        let legacy = text(call(
            1,
            &request,
            &Dialect::legacy("2025-11-25", Asks::ALL),
            false,
        ));
        assert!(!legacy.contains("logLevel"), "{legacy}");
    }

    #[test]
    fn a_member_that_passes_for_the_name_or_the_arguments_is_left_out() {
        let mut request = request_with("{}");
        request.extra = Some(Bytes::from_static(
            r#"{"Name":"delete","argument\u017f":{"a":2},"ARGUMENTS":{},"_Meta":{},"task":{"ttl":1}}"#
                .as_bytes(),
        ));
        let sent = text(call(
            1,
            &request,
            &Dialect::legacy("2025-11-25", Asks::ALL),
            false,
        ));
        assert!(
            sent.ends_with(r#""arguments":{"b":9223372036854775813,"a":1.00},"task":{"ttl":1}}}"#),
            "{sent}"
        );
    }

    #[test]
    fn another_request_has_the_params_that_were_decided_and_our_meta() {
        let mut request = request_with(r#"{"x":1}"#);
        request.method = Some("resources/read".into());
        request.arguments = None;
        request.extra = Some(Bytes::from_static(br#"{"uri":"a://b","n":1.0,"_META":{}}"#));
        assert_eq!(
            text(call(
                5,
                &request,
                &Dialect::legacy("2025-11-25", Asks::ALL),
                false
            )),
            r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"a://b","n":1.0,"_meta":{"x":1}}}"#
        );
        request.extra = None;
        request.meta = None;
        assert!(
            text(call(
                5,
                &request,
                &Dialect::legacy("2025-11-25", Asks::ALL),
                false
            ))
            .ends_with(r#""params":{}}"#)
        );
    }

    #[test]
    fn a_message_over_stdio_is_one_line() {
        assert_eq!(text(on_one_line(b"{\n \"a\":\r\n1}".to_vec())), "{  \"a\":  1}\n");
    }
}
