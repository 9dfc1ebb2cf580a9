//! Canonical JSON, version c1: the key order and escaping of RFC 8785, and numbers as exact normalised decimals.
//!
//! Two documents have the same canonical bytes exactly when they mean the same; numbers never pass through binary
//! floating point, so 2^53 and 2^53 + 1 differ.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::node::{Kind, Node};
use super::text::plain_run;

/// A number's text of at most this many bytes that is digits only is canonical as it is.
const PLAIN_INTEGER_BYTES: usize = 21;

/// The canonical bytes of a value.
pub fn canonical(node: Node<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(node.raw().len());
    canonical_into(node, &mut out);
    out
}

/// Appends the canonical bytes of a value.
pub fn canonical_into(node: Node<'_>, out: &mut Vec<u8>) {
    match node.kind() {
        Kind::Null | Kind::Bool => out.extend_from_slice(node.raw()),
        Kind::Number => number_into(node, out),
        Kind::String if node.is_plain_string() => out.extend_from_slice(node.raw()),
        Kind::String => canonical_string_into(&node.as_str().unwrap_or_default(), out),
        Kind::Array => {
            out.push(b'[');
            for (position, element) in node.elements().enumerate() {
                if position > 0 {
                    out.push(b',');
                }
                // INVARIANT: documents nest at most MAX_DEPTH deep.
                canonical_into(element, out);
            }
            out.push(b']');
        }
        Kind::Object => object_into(node, out),
    }
}

fn object_into(node: Node<'_>, out: &mut Vec<u8>) {
    let mut members: Vec<(Cow<'_, str>, Node<'_>)> = node.members().collect();
    if !members.is_sorted_by(|(left, _), (right, _)| utf16_order(left, right).is_le()) {
        members.sort_unstable_by(|(left, _), (right, _)| utf16_order(left, right));
    }
    out.push(b'{');
    for (position, (key, value)) in members.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        canonical_string_into(&key, out);
        out.push(b':');
        canonical_into(value, out);
    }
    out.push(b'}');
}

/// Order by UTF-16 code units. It differs from byte order only where surrogates meet U+E000 to U+FFFF.
fn utf16_order(left: &str, right: &str) -> Ordering {
    if left.is_ascii() || right.is_ascii() {
        return left.cmp(right);
    }
    left.encode_utf16().cmp(right.encode_utf16())
}

/// Appends a string with quotes, escaped as RFC 8785 says.
pub fn canonical_string_into(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at_checked(plain_run(rest)).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        let Some((byte, after)) = special.split_first() else {
            break;
        };
        escape_into(*byte, out);
        rest = after;
    }
    out.push(b'"');
}

fn escape_into(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x09 => out.extend_from_slice(b"\\t"),
        0x0a => out.extend_from_slice(b"\\n"),
        0x0c => out.extend_from_slice(b"\\f"),
        0x0d => out.extend_from_slice(b"\\r"),
        other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
    }
}

fn number_into(node: Node<'_>, out: &mut Vec<u8>) {
    let text = node.raw();
    if text.len() <= PLAIN_INTEGER_BYTES && text.iter().all(u8::is_ascii_digit) {
        out.extend_from_slice(text);
    } else if let Some(number) = node.number() {
        number.write_canonical(out);
    }
}
