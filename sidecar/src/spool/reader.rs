//! Reading records for delivery: from memory where they are new, from their segment where not.

use std::path::PathBuf;

use bytes::Bytes;

use super::entry::{self, Entry, Statement};
use super::log::Log;
use super::segment::{self, SegmentId};
use super::{Spool, SpoolError};

/// Bytes that one look into a segment reads.
const READ_BYTES: u64 = 2 * 1024 * 1024;

/// A record as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The number within its epoch.
    pub n: u64,
    /// The exact bytes of the source record.
    pub source: Bytes,
    /// The exact bytes of the payload; empty: none.
    pub payload: Bytes,
}

/// How much to read at once.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimit {
    /// Records at most.
    pub records: usize,
    /// Bytes at most, except that one record is always read.
    pub bytes: usize,
}

/// Reads the records of epochs in the order of their numbers, and remembers where it was in the files.
#[derive(Debug)]
pub struct Reader {
    spool: Spool,
    place: Option<Place>,
}

/// The record `next` of `epoch` is at `offset` or later.
#[derive(Clone, Copy, Debug)]
struct Place {
    epoch: u64,
    next: u64,
    segment: SegmentId,
    offset: u64,
}

/// Where to look.
enum Look {
    Memory(Vec<(u64, Statement)>),
    File {
        dir: PathBuf,
        segment: SegmentId,
        end: u64,
    },
    Nothing,
}

impl Reader {
    pub(super) fn new(spool: Spool) -> Self {
        Self { spool, place: None }
    }

    /// The records of `epoch` from number `from` on, contiguous; empty when there are none. Files are read on a thread for
    /// blocking work.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub async fn read(
        &mut self,
        epoch: u64,
        from: u64,
        limit: ReadLimit,
    ) -> Result<Vec<StoredRecord>, SpoolError> {
        loop {
            let look = self.spool.with_log(|log| look(log, epoch, from, limit));
            let (dir, segment, end) = match look {
                Look::Nothing => return Ok(Vec::new()),
                Look::Memory(records) => return Ok(records.into_iter().map(stored).collect()),
                Look::File { dir, segment, end } => (dir, segment, end),
            };
            let place = self
                .place
                .filter(|at| (at.epoch, at.next, at.segment) == (epoch, from, segment));
            let offset = place.map_or(0, |place| place.offset);
            let scan = move || scan(&dir, (segment, offset, end), epoch, from, limit);
            let (records, offset) =
                tokio::task::spawn_blocking(scan)
                    .await
                    .map_err(|error| SpoolError::Invalid {
                        reason: format!("reading the spool was cut off: {error}"),
                    })??;
            let next = records.last().map_or(from, |record| record.n + 1);
            self.place = Some(Place {
                epoch,
                next,
                segment,
                offset,
            });
            if !records.is_empty() || offset >= end {
                return Ok(records);
            }
        }
    }
}

fn stored((n, statement): (u64, Statement)) -> StoredRecord {
    StoredRecord {
        n,
        source: statement.source,
        payload: statement.payload,
    }
}

fn look(log: &Log, epoch: u64, from: u64, limit: ReadLimit) -> Look {
    if let Some(records) = log.tail.read(epoch, from, limit.records, limit.bytes) {
        return Look::Memory(records);
    }
    let holds = |records: &std::collections::BTreeMap<u64, (u64, u64)>| {
        records.get(&epoch).is_some_and(|(_, last)| *last >= from)
    };
    let older = log.older.iter().find(|(_, summary)| holds(&summary.records));
    let found = older
        .map(|(id, summary)| (*id, summary.len))
        .or_else(|| holds(&log.written_to_active.records).then(|| (log.active.id, log.active.len())));
    match found {
        Some((segment, end)) => Look::File {
            dir: log.dir.clone(),
            segment,
            end,
        },
        None => Look::Nothing,
    }
}

/// Reads on from an offset until something is found or the end of the segment is reached; returns where it stopped.
fn scan(
    dir: &std::path::Path,
    (segment, mut offset, end): (SegmentId, u64, u64),
    epoch: u64,
    from: u64,
    limit: ReadLimit,
) -> Result<(Vec<StoredRecord>, u64), SpoolError> {
    let mut records: Vec<StoredRecord> = Vec::new();
    let mut size = 0;
    while records.is_empty() && offset < end {
        let mut bytes = segment::read(dir, segment, offset, end, READ_BYTES)?;
        let before = bytes.len();
        let mut taken = 0;
        while let Some(entry) = entry::decode(&mut bytes) {
            if let Entry::Record {
                epoch: of,
                n,
                statement,
                ..
            } = entry
            {
                let expected = records.last().map_or(from, |record| record.n + 1);
                if of == epoch && n >= expected {
                    let is_over = records.len() >= limit.records || size + statement.len() > limit.bytes;
                    if is_over && !records.is_empty() {
                        break;
                    }
                    size += statement.len();
                    records.push(stored((n, statement)));
                }
            }
            taken = before - bytes.len();
        }
        if taken == 0 {
            return Ok((records, end));
        }
        offset += taken as u64;
    }
    Ok((records, offset))
}
