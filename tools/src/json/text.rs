//! The inside of strings: finding their end, and undoing escapes.

use std::borrow::Cow;

use super::{JsonError, JsonErrorKind};

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Where a string ends, and whether it holds escapes.
pub(super) struct Span {
    /// Position of the closing quote.
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// Finds the end of the string whose first byte after the opening quote is at `at`.
pub(super) fn scan(bytes: &[u8], mut at: usize) -> Result<Span, JsonError> {
    let mut escaped = false;
    loop {
        at += plain_run(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'"') => return Ok(Span { end: at, escaped }),
            Some(b'\\') => {
                escaped = true;
                at = skip_escape(bytes, at)?;
            }
            Some(_) => return Err(error(at, JsonErrorKind::Syntax)),
            None => return Err(error(at, JsonErrorKind::UnexpectedEnd)),
        }
    }
}

/// How many bytes come before the first quote, backslash or control character.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut length = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let hits = zero_bytes(word ^ (LOW * 0x22)) | zero_bytes(word ^ (LOW * 0x5c)) | control_bytes(word);
        if hits != 0 {
            return length + (hits.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length + rest.iter().position(|b| is_special(*b)).unwrap_or(rest.len())
}

/// The high bit of each zero byte; bytes above the first hit may be marked wrongly.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// The high bit of each byte below 0x20; bytes above the first hit may be marked wrongly.
fn control_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW * 0x20) & !word & HIGH
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

fn skip_escape(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let unit = hex_unit(bytes, at)?;
            match unit {
                0xD800..=0xDBFF => skip_low_surrogate(bytes, at),
                0xDC00..=0xDFFF => Err(error(at, JsonErrorKind::LoneSurrogate)),
                _ => Ok(at + 6),
            }
        }
        Some(_) => Err(error(at, JsonErrorKind::Syntax)),
        None => Err(error(at + 1, JsonErrorKind::UnexpectedEnd)),
    }
}

fn skip_low_surrogate(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    if bytes.get(at + 6) != Some(&b'\\') || bytes.get(at + 7) != Some(&b'u') {
        return Err(error(at, JsonErrorKind::LoneSurrogate));
    }
    match hex_unit(bytes, at + 6)? {
        0xDC00..=0xDFFF => Ok(at + 12),
        _ => Err(error(at, JsonErrorKind::LoneSurrogate)),
    }
}

/// The UTF-16 unit of the `\uXXXX` that begins at `at`.
fn hex_unit(bytes: &[u8], at: usize) -> Result<u32, JsonError> {
    let mut unit = 0;
    for position in at + 2..at + 6 {
        let byte = bytes
            .get(position)
            .ok_or(error(position, JsonErrorKind::UnexpectedEnd))?;
        let digit = char::from(*byte)
            .to_digit(16)
            .ok_or(error(position, JsonErrorKind::Syntax))?;
        unit = unit * 16 + digit;
    }
    Ok(unit)
}

fn error(offset: usize, kind: JsonErrorKind) -> JsonError {
    JsonError { offset, kind }
}

/// Undoes the escapes of a string's inside. INVARIANT: [`scan`] has accepted it.
pub(super) fn unescape(inside: &str) -> Cow<'_, str> {
    let Some(first) = inside.find('\\') else {
        return Cow::Borrowed(inside);
    };
    let (plain, mut rest) = inside.split_at(first);
    let mut out = String::with_capacity(inside.len());
    out.push_str(plain);
    while let Some(escape) = rest.strip_prefix('\\') {
        let (character, after) = decode_escape(escape);
        out.push(character);
        let plain = after.find('\\').unwrap_or(after.len());
        let (plain, next) = after.split_at(plain);
        out.push_str(plain);
        rest = next;
    }
    Cow::Owned(out)
}

/// The character that an escape (without its backslash) stands for, and what follows it.
fn decode_escape(escape: &str) -> (char, &str) {
    let mut characters = escape.chars();
    let character = match characters.next() {
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => return decode_unicode(characters.as_str()),
        Some(other) => other,
        None => char::REPLACEMENT_CHARACTER,
    };
    (character, characters.as_str())
}

fn decode_unicode(hex: &str) -> (char, &str) {
    let (unit, rest) = take_unit(hex);
    if !(0xD800..0xDC00).contains(&unit) {
        return (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), rest);
    }
    let (low, rest) = take_unit(rest.strip_prefix("\\u").unwrap_or(rest));
    let code = 0x10000 + ((unit - 0xD800) << 10) + (low.wrapping_sub(0xDC00) & 0x3ff);
    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), rest)
}

fn take_unit(hex: &str) -> (u32, &str) {
    let (digits, rest) = hex.split_at_checked(4).unwrap_or((hex, ""));
    (u32::from_str_radix(digits, 16).unwrap_or(0xFFFD), rest)
}
