//! The export: one record or checkpoint a line, as JSON.
//!
//! The header's and the payload's exact texts travel as JSON strings, so that what is hashed is what was stored:
//! `{"header": "…", "payload": "…" | null, "hash": "…", "mac": "…", "key_id": "…"}` or `{"checkpoint": {…}}`.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use serde::{Deserialize, Serialize};

use super::report::Report;
use super::scratch::Scratch;
use super::verifier::Verifier;
use crate::checkpoint::SignedCheckpoint;
use crate::hash::Hash;

/// A longer line is not read.
pub const MAX_LINE_BYTES: u64 = 64 << 20;
/// After so many items the progress is told.
const PROGRESS_EVERY: u64 = 10_000;

/// A record as it stands in an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RecordLine<'a> {
    /// The header's exact text.
    pub header: &'a str,
    /// The payload's exact text; none when it was erased, or never was.
    pub payload: Option<&'a str>,
    /// The record's hash.
    pub hash: Hash,
    /// Its MAC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Hash>,
    /// The id of the MAC's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_id: Option<&'a str>,
}

impl RecordLine<'_> {
    /// The line, with its end.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|line| line + "\n")
    }
}

/// A checkpoint as it stands in an export: right after the record of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CheckpointLine<'a> {
    /// The checkpoint.
    pub checkpoint: &'a SignedCheckpoint,
}

impl CheckpointLine<'_> {
    /// The line, with its end.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|line| line + "\n")
    }
}

/// The input cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The reader failed.
    #[error("the export cannot be read after line {line}: {source}")]
    Io {
        /// The last line that was read.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
    /// A line is too long.
    #[error("line {line} has more than {MAX_LINE_BYTES} bytes")]
    TooLong {
        /// The line.
        line: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedLine<'a> {
    #[serde(borrow)]
    header: Cow<'a, str>,
    #[serde(default)]
    payload: Option<String>,
    hash: Hash,
    #[serde(default)]
    mac: Option<Hash>,
    #[serde(default)]
    key_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnedCheckpoint {
    checkpoint: SignedCheckpoint,
}

/// Reads an export to its end through a verifier; `progress` is told from time to time how many items have been read.
/// Empty lines are skipped.
///
/// # Errors
/// When the input cannot be read; what is readable but not right is damage in the report.
pub fn verify_lines(
    mut reader: impl BufRead,
    mut verifier: Verifier,
    mut progress: impl FnMut(u64),
) -> Result<Report, ReadError> {
    let mut buffer = Vec::new();
    let mut scratch = Scratch::default();
    let mut line = 0;
    loop {
        buffer.clear();
        let mut limited = reader.by_ref().take(MAX_LINE_BYTES + 1);
        let read = limited
            .read_until(b'\n', &mut buffer)
            .map_err(|source| ReadError::Io { line, source })?;
        if read == 0 {
            return Ok(verifier.finish());
        }
        line += 1;
        if read as u64 > MAX_LINE_BYTES {
            return Err(ReadError::TooLong { line });
        }
        let text = buffer.trim_ascii();
        if !text.is_empty() {
            take_line(text, line, &mut scratch, &mut verifier);
        }
        if line % PROGRESS_EVERY == 0 {
            progress(verifier.items());
        }
    }
}

fn take_line(text: &[u8], line: u64, scratch: &mut Scratch, verifier: &mut Verifier) {
    if let Some(record) = scratch.record(text) {
        verifier.record(&record);
        return;
    }
    if text.starts_with(b"{\"checkpoint\"") {
        match serde_json::from_slice::<OwnedCheckpoint>(text) {
            Ok(owned) => verifier.checkpoint(&owned.checkpoint),
            Err(error) => verifier.unreadable(format!("line {line} is not a checkpoint: {error}")),
        }
        return;
    }
    match serde_json::from_slice::<OwnedLine<'_>>(text) {
        Ok(owned) => verifier.record(&RecordLine {
            header: &owned.header,
            payload: owned.payload.as_deref(),
            hash: owned.hash,
            mac: owned.mac,
            key_id: owned.key_id.as_deref(),
        }),
        Err(error) => verifier.unreadable(format!("line {line} is not a record: {error}")),
    }
}
