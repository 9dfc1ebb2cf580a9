//! Raw params as they are forwarded: what was decided about takes the place of what the client wrote, and nothing else of
//! them passes for it.

use tools::json::Node;

use crate::upstream::mcp::scan;

/// The params without `_meta`, with texts in place of the values of some members. A member with `None` stays what it is.
/// What a server that reads keys without case would take for one of them is left out.
pub(super) fn with_texts(params: Option<Node<'_>>, decided: &[(&str, Option<&str>)]) -> Vec<u8> {
    let decided: Vec<_> = decided
        .iter()
        .map(|(key, text)| (*key, text.map(quoted)))
        .collect();
    rewritten(params, &decided)
}

/// The params without `_meta`, with one member replaced.
pub(super) fn with_raw(params: Option<Node<'_>>, key: &str, value: &[u8]) -> Vec<u8> {
    rewritten(params, &[(key, Some(value.to_vec()))])
}

/// The params without `_meta` and without one member.
pub(super) fn without(params: Node<'_>, key: &str) -> Vec<u8> {
    let mut out = b"{".to_vec();
    for member in scan::members(params.raw()).map_while(Result::ok) {
        if member.passes_for("_meta") || member.passes_for(key) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(&[b"\"", member.key, b"\":", member.value].concat());
    }
    out.push(b'}');
    out
}

fn rewritten(params: Option<Node<'_>>, decided: &[(&str, Option<Vec<u8>>)]) -> Vec<u8> {
    let raw = params.map_or(&b"{}"[..], Node::raw);
    let mut out = Vec::with_capacity(raw.len() + 64);
    out.push(b'{');
    for member in scan::members(raw).map_while(Result::ok) {
        if member.passes_for("_meta") {
            continue;
        }
        let replaced = decided.iter().find(|(key, _)| member.passes_for(key));
        if replaced.is_some_and(|(key, _)| !member.is(key)) {
            continue;
        }
        let value = replaced.and_then(|(_, value)| value.as_deref());
        if out.len() > 1 {
            out.push(b',');
        }
        out.push(b'"');
        out.extend_from_slice(member.key);
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value.unwrap_or(member.value));
    }
    out.push(b'}');
    out
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    // INVARIANT: a text can be written as JSON.
    serde_json::to_vec(text).unwrap_or_else(|_| b"\"\"".to_vec())
}

/// One object of the arguments and the `_meta` of a request.
pub(super) fn gathered(arguments: Option<&[u8]>, meta: Option<&[u8]>) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (key, value) in [("arguments", arguments), ("_meta", meta)] {
        if let Some(value) = value {
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(format!("\"{key}\":").as_bytes());
            out.extend_from_slice(value);
        }
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use tools::json::{Document, Limits};

    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_what_was_decided_is_replaced() {
        let raw = r#"{ "uri":"a.b://c", "x" : [1.00], "_meta":{"p":1}, "URI":"other", "n":1e2}"#;
        let document = Document::parse(raw.as_bytes(), Limits::MESSAGE).unwrap();
        assert_eq!(
            text(with_texts(Some(document.root()), &[("uri", Some("b://c"))])),
            r#"{"uri":"b://c","x":[1.00],"n":1e2}"#
        );
        assert_eq!(
            text(with_texts(Some(document.root()), &[("uri", None)])),
            r#"{"uri":"a.b://c","x":[1.00],"n":1e2}"#
        );
        assert_eq!(text(with_texts(None, &[])), "{}");
        assert_eq!(text(without(document.root(), "uri")), r#"{"x":[1.00],"n":1e2}"#);
    }

    #[test]
    fn arguments_and_meta_are_gathered() {
        assert_eq!(text(gathered(None, None)), "{}");
        assert_eq!(
            text(gathered(Some(b"{}"), Some(b"{\"a\":1}"))),
            r#"{"arguments":{},"_meta":{"a":1}}"#
        );
    }
}
