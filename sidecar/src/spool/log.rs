//! The state of the spool behind its lock: what is written where, what is open, what may be forgotten.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use chain::source::SourceChain;
use policy::glob::Glob;

use super::SpoolError;
use super::draft::Prepared;
use super::entry::{self, Entry, EpochMark, Key, State, Statement};
use super::left_out::LeftOut;
use super::segment::{self, Active, SegmentId, Summary};
use super::tail::Tail;

/// Kept free for the record of a call that has an intent, beside the size of its intent.
const RECORD_ALLOWANCE: u64 = 4 * 1024;
/// A call is not begun with less room than this.
const LEAST_ROOM: u64 = 64 * 1024;
/// The part of all room that refusals leave to calls: an agent that is refused without end must not have everybody denied.
const KEPT_FROM_REFUSALS: u64 = 4;
/// Records that may wait for the first epoch.
const MAX_DRAFTS: usize = 10_000;
/// Segments that may be kept only because of open calls before these are written again at the end.
const CARRY_AFTER: usize = 2;

/// Where a record went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The epoch; `None` while there is none: the record gets its number when one opens.
    pub epoch: Option<u64>,
    /// The number within the epoch; 0 while there is no epoch.
    pub n: u64,
}

/// An intent or draft that has no record yet.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) segment: SegmentId,
    pub(super) statement: Statement,
}

#[derive(Debug)]
pub(super) struct Log {
    pub(super) dir: PathBuf,
    pub(super) boot_id: String,
    pub(super) max_bytes: u64,
    pub(super) segment_bytes: u64,
    /// New segments' names are flushed.
    pub(super) durable: bool,
    pub(super) active: Active,
    /// Records in the active segment.
    pub(super) written_to_active: Summary,
    /// Segments that take nothing more.
    pub(super) older: BTreeMap<SegmentId, Summary>,
    pub(super) sidecar: String,
    pub(super) namespace: String,
    /// Agents that the sidecar may speak for; empty: not known.
    pub(super) agents: Vec<Glob>,
    pub(super) next_key: Key,
    pub(super) current: Option<u64>,
    pub(super) highest: u64,
    pub(super) epochs: BTreeMap<u64, EpochMark>,
    /// Calls whose intent has no record.
    pub(super) open: HashMap<Key, Held>,
    /// Ended calls that wait for an epoch.
    pub(super) drafts: BTreeMap<Key, Held>,
    /// Records that could not be written yet. Their intents are on disk, and no call begins before these are written.
    pub(super) backlog: VecDeque<(Key, Prepared)>,
    /// Refusals that found no room in their share.
    pub(super) left_out: Option<LeftOut>,
    /// Bytes in all segments.
    pub(super) used: u64,
    /// Bytes promised to the records of open calls.
    pub(super) reserved: u64,
    /// Bytes appended since the process started.
    pub(super) written: u64,
    /// Files that were written since the last flush and are not the active one.
    pub(super) unflushed: Vec<Arc<File>>,
    pub(super) tail: Tail,
    pub(super) buffer: Vec<u8>,
    /// The state on disk is older than the one here.
    pub(super) is_stale: bool,
    pub(super) broken: Option<Arc<str>>,
}

impl Log {
    /// Appends an intent; returns its key and the position behind it.
    pub(super) fn begin(&mut self, statement: Statement) -> Result<(Key, u64), SpoolError> {
        self.write_backlog()?;
        let size = entry::frame_len(&statement);
        self.check_room(2 * size + RECORD_ALLOWANCE)?;
        let key = self.take_key();
        let entry = Entry::Intent { key, statement };
        self.append(&entry)?;
        if let Entry::Intent { statement, .. } = entry {
            let segment = self.active.id;
            self.open.insert(key, Held { segment, statement });
            self.reserved += size + RECORD_ALLOWANCE;
        }
        Ok((key, self.written))
    }

    /// Ends the call with this key by its record. A record that cannot be written now is written before anything else begins.
    pub(super) fn finish(&mut self, key: Key, mut prepared: Prepared) -> Result<Recorded, SpoolError> {
        let _ = self.write_backlog();
        match self.number(key, &mut prepared) {
            Ok(recorded) => {
                self.release(key);
                Ok(recorded)
            }
            Err(error) => {
                self.backlog.push_back((key, prepared));
                Err(error)
            }
        }
    }

    /// Appends the record of a call that had no intent: a refusal. One beyond the refusals' share of the room is counted.
    pub(super) fn record(&mut self, mut prepared: Prepared) -> Result<Recorded, SpoolError> {
        self.write_backlog()?;
        if !self.has_room_for_refusal(&prepared) {
            self.left_out = Some(LeftOut::with(self.left_out.take(), prepared.source()));
            return Err(self.full());
        }
        let key = self.take_key();
        self.number(key, &mut prepared)
    }

    fn has_room_for_refusal(&self, prepared: &Prepared) -> bool {
        let kept = self.max_bytes / KEPT_FROM_REFUSALS;
        let may_be_kept = self.current.is_some() || self.drafts.len() < MAX_DRAFTS;
        may_be_kept
            && self
                .check_room(prepared.size_hint() + RECORD_ALLOWANCE + kept)
                .is_ok()
    }

    /// Says how many refusals were left out, once there is room for refusals again.
    fn write_left_out(&mut self) -> Result<(), SpoolError> {
        let Some(left_out) = &self.left_out else {
            return Ok(());
        };
        let mut summary = left_out.summary()?;
        if self.has_room_for_refusal(&summary) {
            let key = self.take_key();
            self.number(key, &mut summary)?;
            self.left_out = None;
        }
        Ok(())
    }

    /// The statement of an open call.
    pub(super) fn open_statement(&self, key: Key) -> Option<Statement> {
        self.open.get(&key).map(|held| held.statement.clone())
    }

    pub(super) fn has_room(&self) -> bool {
        self.broken.is_none() && self.backlog.is_empty() && self.check_room(RECORD_ALLOWANCE).is_ok()
    }

    /// Gives the next number, or keeps a draft while there is no epoch.
    pub(super) fn number(&mut self, key: Key, prepared: &mut Prepared) -> Result<Recorded, SpoolError> {
        let current = self.current.and_then(|epoch| self.epochs.get(&epoch)).cloned();
        let Some(mark) = current else {
            let statement = prepared.statement()?;
            let entry = Entry::Draft { key, statement };
            self.append(&entry)?;
            if let Entry::Draft { statement, .. } = entry {
                let segment = self.active.id;
                self.drafts.insert(key, Held { segment, statement });
            }
            return Ok(Recorded { epoch: None, n: 0 });
        };
        let (epoch, n) = (mark.epoch, mark.last + 1);
        let place = SourceChain::resume(self.sidecar.clone(), epoch, mark.last, mark.previous);
        let (statement, sealed) = prepared.numbered(place, &self.namespace, &self.agents)?;
        let entry = Entry::Record {
            key,
            epoch,
            n,
            statement,
        };
        self.append(&entry)?;
        if let Some(mark) = self.epochs.get_mut(&epoch) {
            mark.last = n;
            mark.previous = sealed.hash;
        }
        self.written_to_active.add(epoch, n);
        if let Entry::Record { statement, .. } = entry {
            self.tail.push(epoch, n, statement);
        }
        Ok(Recorded {
            epoch: Some(epoch),
            n,
        })
    }

    fn release(&mut self, key: Key) {
        if let Some(held) = self.open.remove(&key) {
            let promised = entry::frame_len(&held.statement) + RECORD_ALLOWANCE;
            self.reserved = self.reserved.saturating_sub(promised);
        }
    }

    /// Writes what could not be written earlier.
    pub(super) fn write_backlog(&mut self) -> Result<(), SpoolError> {
        while let Some((key, mut prepared)) = self.backlog.pop_front() {
            match self.number(key, &mut prepared) {
                Ok(_) => self.release(key),
                Err(error) => {
                    self.backlog.push_front((key, prepared));
                    return Err(error);
                }
            }
        }
        self.write_left_out()
    }

    pub(super) fn take_key(&mut self) -> Key {
        let key = self.next_key;
        self.next_key += 1;
        key
    }

    fn full(&self) -> SpoolError {
        SpoolError::Full {
            used: self.used,
            limit: self.max_bytes,
        }
    }

    fn check_room(&self, wanted: u64) -> Result<(), SpoolError> {
        let taken = self.used + self.reserved + wanted;
        if taken + LEAST_ROOM.min(self.max_bytes / 8) > self.max_bytes {
            return Err(self.full());
        }
        Ok(())
    }

    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), SpoolError> {
        if let Some(reason) = &self.broken {
            return Err(SpoolError::Broken {
                reason: reason.clone(),
            });
        }
        if self.active.len() >= self.segment_bytes || self.active.is_torn() {
            self.rotate()?;
        }
        self.append_here(entry)
    }

    fn append_here(&mut self, entry: &Entry) -> Result<(), SpoolError> {
        self.buffer.clear();
        entry::encode(entry, &mut self.buffer);
        self.active.append(&self.buffer)?;
        let length = self.buffer.len() as u64;
        self.used += length;
        self.written += length;
        if self.buffer.capacity() > 1024 * 1024 {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    /// Starts a new segment with the state in it.
    fn rotate(&mut self) -> Result<(), SpoolError> {
        let next = Active::create(&self.dir, self.active.id + 1, self.durable)?;
        let full = std::mem::replace(&mut self.active, next);
        let mut summary = std::mem::take(&mut self.written_to_active);
        summary.len = full.len();
        self.older.insert(full.id, summary);
        if self.durable {
            self.unflushed.push(full.file);
        }
        self.write_state()?;
        self.forget_settled();
        Ok(())
    }

    /// Appends the state as it is now.
    pub(super) fn write_state(&mut self) -> Result<(), SpoolError> {
        let state = State {
            boot_id: self.boot_id.clone(),
            sidecar: self.sidecar.clone(),
            namespace: self.namespace.clone(),
            agents: self.agents.iter().map(|glob| glob.as_str().to_owned()).collect(),
            next_key: self.next_key,
            current: self.current,
            highest: self.highest,
            epochs: self.epochs.values().cloned().collect(),
        };
        self.append_here(&Entry::State(state))?;
        self.is_stale = false;
        Ok(())
    }

    /// Deletes segments from the oldest on, as long as nothing in them is needed.
    pub(super) fn forget_settled(&mut self) {
        while let Some((&id, summary)) = self.older.first_key_value() {
            let is_needed = summary
                .records
                .iter()
                .any(|(epoch, (_, last))| self.epochs.get(epoch).is_some_and(|mark| *last > mark.settled));
            if is_needed {
                return;
            }
            let is_held = self
                .open
                .values()
                .chain(self.drafts.values())
                .any(|held| held.segment == id);
            if is_held && (self.older.len() <= CARRY_AFTER || self.carry(id).is_err()) {
                return;
            }
            if self.is_stale && self.write_state().is_err() {
                return;
            }
            let path = segment::path(&self.dir, id);
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::warn!(segment = %path.display(), %error, "cannot delete a settled spool segment");
                return;
            }
            let freed = self.older.remove(&id).map_or(0, |summary| summary.len);
            self.used = self.used.saturating_sub(freed);
        }
    }

    /// Writes the open calls of a segment again at the end, so that the segment can go.
    fn carry(&mut self, id: SegmentId) -> Result<(), SpoolError> {
        let here = |held: &&mut Held| held.segment == id;
        let intents: Vec<_> = keys(self.open.iter_mut().filter(|(_, held)| here(held)));
        let drafts: Vec<_> = keys(self.drafts.iter_mut().filter(|(_, held)| here(held)));
        for (key, statement) in intents {
            self.append_here(&Entry::Intent { key, statement })?;
            if let Some(held) = self.open.get_mut(&key) {
                held.segment = self.active.id;
            }
        }
        for (key, statement) in drafts {
            self.append_here(&Entry::Draft { key, statement })?;
            if let Some(held) = self.drafts.get_mut(&key) {
                held.segment = self.active.id;
            }
        }
        Ok(())
    }
}

fn keys<'a>(held: impl Iterator<Item = (&'a Key, &'a mut Held)>) -> Vec<(Key, Statement)> {
    held.map(|(key, held)| (*key, held.statement.clone())).collect()
}
