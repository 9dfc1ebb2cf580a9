//! What a start finds in the directory, and how it goes on from there.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::OpenOptions;
use std::path::Path;

use chain::hash::Hash;

use super::draft::Prepared;
use super::entry::{Entry, EpochMark, Key, State};
use super::epochs::globs;
use super::log::{Held, Log};
use super::segment::{self, Active, SegmentId, Summary};
use super::tail::Tail;
use super::{Options, SpoolError, SyncMode};

/// What the segments say, read in order.
#[derive(Default)]
struct Found {
    state: State,
    epochs: BTreeMap<u64, EpochMark>,
    open: HashMap<Key, Held>,
    drafts: BTreeMap<Key, Held>,
    segments: BTreeMap<SegmentId, Summary>,
}

impl Found {
    fn take(&mut self, segment: SegmentId, summary: &mut Summary, entry: Entry) {
        match entry {
            Entry::State(state) => {
                self.epochs = state
                    .epochs
                    .iter()
                    .map(|mark| (mark.epoch, mark.clone()))
                    .collect();
                let next_key = self.state.next_key.max(state.next_key);
                self.state = State { next_key, ..state };
            }
            Entry::Intent { key, statement } => {
                self.saw(key);
                self.open.insert(key, Held { segment, statement });
            }
            Entry::Draft { key, statement } => {
                self.saw(key);
                self.open.remove(&key);
                self.drafts.insert(key, Held { segment, statement });
            }
            Entry::Record {
                key,
                epoch,
                n,
                statement,
            } => {
                self.saw(key);
                self.open.remove(&key);
                self.drafts.remove(&key);
                summary.add(epoch, n);
                self.recorded(epoch, n, Hash::of(&[&statement.source]));
            }
        }
    }

    fn saw(&mut self, key: Key) {
        self.state.next_key = self.state.next_key.max(key + 1);
    }

    fn recorded(&mut self, epoch: u64, n: u64, previous: Hash) {
        // An epoch that no state names any more is closed: its records only wait for their segment to go.
        if let Some(mark) = self.epochs.get_mut(&epoch).filter(|mark| n > mark.last) {
            mark.last = n;
            mark.previous = previous;
        }
    }
}

/// Reads the directory, cuts torn ends, writes `interrupted` records for calls that a crash cut off.
pub(super) fn recover(options: &Options) -> Result<Log, SpoolError> {
    let dir = &options.dir;
    let mut found = Found::default();
    for id in segment::list(dir)? {
        let mut summary = Summary::default();
        summary.len = segment::scan(dir, id, |entry| found.take(id, &mut summary, entry))?;
        cut(dir, id, summary.len)?;
        found.segments.insert(id, summary);
    }
    let next = found.segments.last_key_value().map_or(1, |(id, _)| id + 1);
    let durable = options.sync != SyncMode::Process;
    let boot_id = options.clock.boot_id().to_string();
    // After a power failure the chain can be ahead of what is left here, so the old epoch takes no more numbers.
    let is_same_boot = found.state.boot_id == boot_id;
    let mut log = Log {
        boot_id,
        max_bytes: options.max_bytes,
        segment_bytes: options.segment_bytes(),
        durable,
        active: Active::create(dir, next, durable)?,
        dir: dir.clone(),
        written_to_active: Summary::default(),
        used: found.segments.values().map(|summary| summary.len).sum(),
        older: found.segments,
        sidecar: found.state.sidecar,
        namespace: found.state.namespace,
        agents: globs(&found.state.agents),
        next_key: found.state.next_key.max(1),
        current: found.state.current.filter(|_| is_same_boot),
        highest: found.state.highest,
        epochs: found.epochs,
        open: HashMap::new(),
        drafts: found.drafts,
        backlog: VecDeque::new(),
        reserved: 0,
        written: 0,
        unflushed: Vec::new(),
        tail: Tail::default(),
        buffer: Vec::new(),
        left_out: None,
        is_stale: false,
        broken: None,
    };
    log.write_state()?;
    interrupt(&mut log, found.open)?;
    log.forget_settled();
    Ok(log)
}

fn interrupt(log: &mut Log, open: HashMap<Key, Held>) -> Result<(), SpoolError> {
    let open: BTreeMap<_, _> = open.into_iter().collect();
    for (key, held) in open {
        if log.current.is_none() {
            log.drafts.insert(key, held);
            continue;
        }
        match Prepared::from_statement(&held.statement) {
            Ok(mut prepared) => log.number(key, &mut prepared).map(|_| ())?,
            Err(error) => {
                tracing::error!(%error, "the intent of a cut-off call cannot be read and is left out")
            }
        }
    }
    Ok(())
}

fn cut(dir: &Path, id: SegmentId, len: u64) -> Result<(), SpoolError> {
    let path = segment::path(dir, id);
    let file = OpenOptions::new()
        .write(true)
        .open(&path)
        .map_err(SpoolError::io("open the spool segment", &path))?;
    let length = file
        .metadata()
        .map_err(SpoolError::io("look at the spool segment", &path))?
        .len();
    if length > len {
        file.set_len(len)
            .map_err(SpoolError::io("cut the torn end of the spool segment", &path))?;
    }
    Ok(())
}
