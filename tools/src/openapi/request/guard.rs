//! Texts that would be understood in another way on their way to the service.

use super::BuildError;

/// Times that a text is decoded before it is taken for hostile.
const MAX_ROUNDS: usize = 4;
pub(super) const STEP: &str = "\".\" and \"..\" would change the path; send the name itself";
const SLASH: &str = "a slash or backslash, encoded or not, would change the path; send one name without them";
const CONTROL: &str = "control characters such as NUL and line breaks cannot stand in a URL; leave them out";
const EMPTY: &str = "an empty text would change the path; send a value";

/// A value that becomes a whole segment of a path, or a part of one: however often it is decoded on its way, it stays that.
pub(super) fn path(argument: &str, text: &str) -> Result<(), BuildError> {
    if text.is_empty() {
        return Err(BuildError::of(argument, EMPTY));
    }
    let mut text = text.as_bytes().to_vec();
    for _ in 0..MAX_ROUNDS {
        if text.iter().any(u8::is_ascii_control) {
            return Err(BuildError::of(argument, CONTROL));
        }
        if text.iter().any(|byte| matches!(byte, b'/' | b'\\')) {
            return Err(BuildError::of(argument, SLASH));
        }
        if text == b"." || text == b".." {
            return Err(BuildError::of(argument, STEP));
        }
        let decoded = decoded(&text);
        if decoded == text {
            return Ok(());
        }
        text = decoded;
    }
    Err(BuildError::of(
        argument,
        "it is percent-encoded several times; send the plain text",
    ))
}

/// A value of a query or a cookie.
pub(super) fn query(argument: &str, text: &str) -> Result<(), BuildError> {
    if text.contains('\0') {
        return Err(BuildError::of(argument, CONTROL));
    }
    Ok(())
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let value = match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => u8::try_from(high * 16 + low).ok(),
            _ => None,
        };
        out.push(value.unwrap_or(*byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    out
}
