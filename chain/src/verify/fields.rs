//! The few fields of a header that verification needs, read from its text without parsing the rest.

use crate::hash::Hash;
use crate::link::number;

/// A record's place in its source's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SourceLink<'a> {
    pub(super) sidecar: &'a str,
    pub(super) epoch: u64,
    pub(super) n: u64,
    pub(super) prev: Hash,
    /// Hash of what the source sent, when the record stands for it.
    pub(super) stands_for: Option<Hash>,
}

/// The source's link; `Ok(None)` when the record has none.
///
/// `source` is the source record's text without its first brace. In its canonical form the link's fields come after
/// `id`, `time`, `kind` and `namespace`, which are strings.
pub(super) fn source_link(source: &str) -> Result<Option<SourceLink<'_>>, Malformed> {
    let mut rest = source;
    for key in ["\"id\":\"", "\"time\":\"", "\"kind\":\"", "\"namespace\":\""] {
        let value = rest.strip_prefix(key).ok_or(Malformed)?;
        (_, rest) = string(value)?;
        rest = rest.strip_prefix(',').ok_or(Malformed)?;
    }
    let Some(value) = rest.strip_prefix("\"sidecar\":\"") else {
        return Ok(None);
    };
    let (sidecar, rest) = string(value)?;
    let (epoch, rest) = rest
        .strip_prefix(",\"epoch\":")
        .and_then(number)
        .ok_or(Malformed)?;
    let (n, rest) = rest.strip_prefix(",\"n\":").and_then(number).ok_or(Malformed)?;
    let value = rest.strip_prefix(",\"source_prev\":\"").ok_or(Malformed)?;
    let (prev, rest) = hash(value)?;
    let stands_for = match rest.strip_prefix(",\"stands_for\":\"") {
        Some(value) => Some(hash(value)?.0),
        None => None,
    };
    Ok(Some(SourceLink {
        sidecar,
        epoch,
        n,
        prev,
        stands_for,
    }))
}

/// The text of the payload's digest: in the canonical form it is the last field.
pub(super) fn payload_digest(source: &str) -> Option<&str> {
    let rest = source.strip_suffix("\"}")?;
    let start = rest.len().checked_sub(64)?;
    let (rest, digest) = rest.split_at_checked(start)?;
    rest.ends_with(",\"payload_digest\":\"").then_some(digest)
}

/// The hash whose opening quote was before `text`, and what follows it.
fn hash(text: &str) -> Result<(Hash, &str), Malformed> {
    let (hex, rest) = string(text)?;
    let hash = Hash::from_hex(hex.as_bytes()).map_err(|_| Malformed)?;
    Ok((hash, rest))
}

/// The header is not laid out as records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// The inside of the string whose opening quote was before `text`, escapes as written, and what follows its end.
fn string(text: &str) -> Result<(&str, &str), Malformed> {
    let mut from = 0;
    loop {
        let (_, rest) = text.split_at_checked(from).ok_or(Malformed)?;
        let end = from + rest.find('"').ok_or(Malformed)?;
        let (inside, after) = text.split_at_checked(end).ok_or(Malformed)?;
        let backslashes = inside.bytes().rev().take_while(|b| *b == b'\\').count();
        if backslashes % 2 == 0 {
            let after = after.strip_prefix('"').ok_or(Malformed)?;
            return Ok((inside, after));
        }
        from = end + 1;
    }
}
