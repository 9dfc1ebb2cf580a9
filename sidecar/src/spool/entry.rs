//! The framing of one entry in a segment file.
//!
//! A frame is `length (u32) crc (u32) kind (u8) content`, integers little-endian; the length counts kind and content, the
//! CRC-32C covers them. A frame whose end is missing or whose sum differs is torn: nothing behind it in its file counts.

use bytes::{Buf, BufMut, Bytes};
use chain::hash::Hash;
use crc::{CRC_32_ISCSI, Crc, Table};
use serde::{Deserialize, Serialize};

/// Bytes before the content: length, sum, kind.
const HEADER: usize = 9;
/// No entry is longer; a longer length is damage.
const MAX_ENTRY: usize = 64 * 1024 * 1024;

static SUM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// Names an intent within a spool, across restarts.
pub(super) type Key = u64;

/// What is stated of one call: the exact bytes of the source record (or of its draft) and of the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Statement {
    /// JSON of a `chain::record::SourceRecord`.
    pub(super) source: Bytes,
    /// JSON of the payload; empty: none.
    pub(super) payload: Bytes,
}

impl Statement {
    pub(super) fn len(&self) -> usize {
        self.source.len() + self.payload.len()
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A call is about to be forwarded; the statement is the record to write when nothing else comes.
    Intent { key: Key, statement: Statement },
    /// A call has ended while the spool has no epoch; it gets its number when one opens.
    Draft { key: Key, statement: Statement },
    /// A numbered record. It ends the intent or draft with its key.
    Record {
        key: Key,
        epoch: u64,
        n: u64,
        statement: Statement,
    },
    /// The state of all epochs from here on.
    State(State),
}

/// What the spool knows beside its records. Written whole at the start of each segment and at each change, so that no older
/// segment is needed to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// The boot during which this was written.
    pub(super) boot_id: String,
    /// Id of the sidecar, once it has enrolled.
    pub(super) sidecar: String,
    /// Namespace of the sidecar, once it has enrolled.
    pub(super) namespace: String,
    /// Globs over the agents that the sidecar may speak for.
    #[serde(default)]
    pub(super) agents: Vec<String>,
    /// The next intent's key.
    pub(super) next_key: Key,
    /// The epoch that new records belong to.
    pub(super) current: Option<u64>,
    /// The highest epoch ever opened here.
    pub(super) highest: u64,
    /// Epochs that are not closed and settled.
    pub(super) epochs: Vec<EpochMark>,
}

/// Where one epoch stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EpochMark {
    pub(super) epoch: u64,
    /// Every number up to here may be forgotten.
    pub(super) settled: u64,
    /// Last number given.
    pub(super) last: u64,
    /// SHA-256 of the last record's source bytes.
    pub(super) previous: Hash,
    /// No further number will come.
    pub(super) ended: bool,
    /// The control plane has taken its end.
    pub(super) closed: bool,
}

const INTENT: u8 = 1;
const DRAFT: u8 = 2;
const RECORD: u8 = 3;
const STATE: u8 = 4;

/// Appends the frame of `entry` to `out`.
pub(super) fn encode(entry: &Entry, out: &mut Vec<u8>) {
    let start = out.len();
    out.put_bytes(0, HEADER - 1);
    match entry {
        Entry::Intent { key, statement } => {
            out.put_u8(INTENT);
            out.put_u64_le(*key);
            put_statement(statement, out);
        }
        Entry::Draft { key, statement } => {
            out.put_u8(DRAFT);
            out.put_u64_le(*key);
            put_statement(statement, out);
        }
        Entry::Record {
            key,
            epoch,
            n,
            statement,
        } => {
            out.put_u8(RECORD);
            out.put_u64_le(*key);
            out.put_u64_le(*epoch);
            out.put_u64_le(*n);
            put_statement(statement, out);
        }
        Entry::State(state) => {
            out.put_u8(STATE);
            // INVARIANT: a state has only string keys, so it always has a JSON form; a vector takes every write.
            let _ = serde_json::to_writer(&mut *out, state);
        }
    }
    let Some(frame) = out.get_mut(start..) else { return };
    let Some((header, content)) = frame.split_at_mut_checked(HEADER - 1) else {
        return;
    };
    let mut header = header;
    header.put_u32_le(u32::try_from(content.len()).unwrap_or(u32::MAX));
    header.put_u32_le(SUM.checksum(content));
}

/// Bytes that the frame of a statement takes.
pub(super) fn frame_len(statement: &Statement) -> u64 {
    let fixed = HEADER + 3 * size_of::<u64>() + size_of::<u32>();
    (fixed + statement.len()) as u64
}

fn put_statement(statement: &Statement, out: &mut Vec<u8>) {
    out.put_u32_le(u32::try_from(statement.source.len()).unwrap_or(u32::MAX));
    out.put_slice(&statement.source);
    out.put_slice(&statement.payload);
}

/// Takes the first frame off `bytes`; `None` when it is torn or there is none, and then `bytes` is as before.
pub(super) fn decode(bytes: &mut Bytes) -> Option<Entry> {
    let mut rest = bytes.clone();
    let length = rest.try_get_u32_le().ok()? as usize;
    let sum = rest.try_get_u32_le().ok()?;
    if length == 0 || length > MAX_ENTRY || rest.len() < length {
        return None;
    }
    let content = rest.split_to(length);
    if SUM.checksum(&content) != sum {
        return None;
    }
    let entry = decode_content(content)?;
    *bytes = rest;
    Some(entry)
}

/// The length of the first frame of `bytes`, without looking at its content.
pub(super) fn peek_len(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    let length = rest.try_get_u32_le().ok()? as usize;
    Some(length.saturating_add(HEADER - 1))
}

fn decode_content(mut content: Bytes) -> Option<Entry> {
    match content.try_get_u8().ok()? {
        INTENT => {
            let key = content.try_get_u64_le().ok()?;
            get_statement(content).map(|statement| Entry::Intent { key, statement })
        }
        DRAFT => {
            let key = content.try_get_u64_le().ok()?;
            get_statement(content).map(|statement| Entry::Draft { key, statement })
        }
        RECORD => {
            let key = content.try_get_u64_le().ok()?;
            let epoch = content.try_get_u64_le().ok()?;
            let n = content.try_get_u64_le().ok()?;
            get_statement(content).map(|statement| Entry::Record {
                key,
                epoch,
                n,
                statement,
            })
        }
        STATE => serde_json::from_slice(&content).ok().map(Entry::State),
        _ => None,
    }
}

fn get_statement(mut content: Bytes) -> Option<Statement> {
    let length = content.try_get_u32_le().ok()? as usize;
    if content.len() < length {
        return None;
    }
    let source = content.split_to(length);
    Some(Statement {
        source,
        payload: content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Entry {
        Entry::Record {
            key: 7,
            epoch: 3,
            n: 12,
            statement: Statement {
                source: Bytes::from_static(b"{\"a\":1}"),
                payload: Bytes::from_static(b"{}"),
            },
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let state = Entry::State(State {
            next_key: 9,
            ..State::default()
        });
        let mut out = Vec::new();
        encode(&record(), &mut out);
        encode(&state, &mut out);
        let mut bytes = Bytes::from(out);
        assert_eq!(decode(&mut bytes), Some(record()));
        assert_eq!(decode(&mut bytes), Some(state));
        assert_eq!(decode(&mut bytes), None);
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let mut out = Vec::new();
        encode(&record(), &mut out);
        for at in 0..out.len() {
            let mut damaged = out.clone();
            damaged[at] ^= 0x10;
            let decoded = decode(&mut Bytes::from(damaged));
            assert_ne!(decoded, Some(record()), "byte {at}");
        }
    }
}
