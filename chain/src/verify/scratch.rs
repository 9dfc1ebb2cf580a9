//! The quick way to read a record's line: exactly as [`RecordLine::to_line`] lays it out, into buffers that are used
//! again. Whatever is laid out differently is left to the general reader.

use super::lines::RecordLine;
use crate::hash::Hash;

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Buffers for the texts of one line.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    header: Vec<u8>,
    payload: Vec<u8>,
}

impl Scratch {
    /// The record on this line; `None` when the line is not laid out as expected.
    pub(super) fn record<'s>(&'s mut self, line: &'s [u8]) -> Option<RecordLine<'s>> {
        let rest = unescape(line.strip_prefix(b"{\"header\":\"")?, &mut self.header)?;
        let rest = rest.strip_prefix(b",\"payload\":")?;
        let (has_payload, rest) = match rest.strip_prefix(b"null") {
            Some(rest) => (false, rest),
            None => (true, unescape(rest.strip_prefix(b"\"")?, &mut self.payload)?),
        };
        let (hash, rest) = digest(rest.strip_prefix(b",\"hash\":\"")?)?;
        let (mac, key_id) = match rest.strip_prefix(b",\"mac\":\"") {
            Some(rest) => {
                let (mac, rest) = digest(rest)?;
                let id = rest.strip_prefix(b",\"key_id\":\"")?.strip_suffix(b"\"}")?;
                let is_plain = id.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b));
                (
                    Some(mac),
                    Some(std::str::from_utf8(id).ok().filter(|_| is_plain)?),
                )
            }
            None if rest == b"}" => (None, None),
            None => return None,
        };
        let payload = if has_payload {
            Some(std::str::from_utf8(&self.payload).ok()?)
        } else {
            None
        };
        Some(RecordLine {
            header: std::str::from_utf8(&self.header).ok()?,
            payload,
            hash,
            mac,
            key_id,
        })
    }
}

/// Reads a hash up to its closing quote.
fn digest(text: &[u8]) -> Option<(Hash, &[u8])> {
    let (digits, rest) = text.split_at_checked(64)?;
    let hash = Hash::from_hex(digits).ok()?;
    Some((hash, rest.strip_prefix(b"\"")?))
}

/// Undoes the escapes of a string whose opening quote was before `text`; returns what follows its closing quote.
/// Only `\"` and `\\` are expected: these texts are JSON themselves, made without raw control characters.
fn unescape<'t>(text: &'t [u8], out: &mut Vec<u8>) -> Option<&'t [u8]> {
    out.clear();
    out.reserve(text.len());
    let mut rest = text;
    loop {
        rest = copy_plain(rest, out);
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', character @ (b'"' | b'\\'), after @ ..] => {
                out.push(*character);
                rest = after;
            }
            _ => return None,
        }
    }
}

/// Copies what comes before the first quote, backslash or control character, and returns what is left.
fn copy_plain<'t>(mut text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    while let Some((chunk, after)) = text.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let hits = zero_bytes(word ^ (LOW * 0x22)) | zero_bytes(word ^ (LOW * 0x5c)) | control_bytes(word);
        let length = out.len();
        out.extend_from_slice(chunk);
        if hits != 0 {
            let plain = (hits.trailing_zeros() / 8) as usize;
            out.truncate(length + plain);
            return text.get(plain..).unwrap_or_default();
        }
        text = after;
    }
    let is_special = |b: &u8| *b < 0x20 || *b == b'"' || *b == b'\\';
    let plain = text.iter().position(is_special).unwrap_or(text.len());
    let (before, after) = text.split_at_checked(plain).unwrap_or((text, &[]));
    out.extend_from_slice(before);
    after
}

/// The high bit of each zero byte; bytes above the first hit may be marked wrongly.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// The high bit of each byte below 0x20; bytes above the first hit may be marked wrongly.
fn control_bytes(word: u64) -> u64 {
    word.wrapping_sub(LOW * 0x20) & !word & HIGH
}
