//! The durable queue of records: a call's intent is here before the call is forwarded, its record until the control plane has
//! settled it.
//!
//! Segment files in one directory hold framed entries ([`entry`]); nothing is ever changed in place. What is in doubt after a
//! crash is decided by [`recover`]: a torn end is cut off, an intent without a record becomes an `interrupted` record. Numbers
//! and source links are given under the lock when a record is written, so that they are contiguous per epoch.
//!
//! INVARIANT: segments are deleted only from the oldest on, so a record never goes while its intent stays.

mod call;
mod draft;
mod entry;
mod epochs;
mod error;
mod flush;
mod left_out;
mod log;
mod reader;
mod recover;
mod segment;
mod tail;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chain::payload::Payload;
use chain::record::SourceRecord;
use net::clock::Clock;
use tokio::sync::Notify;

pub use call::OpenCall;
pub use draft::Draft;
pub use epochs::{EpochGrant, EpochStatus};
pub use error::SpoolError;
pub use log::Recorded;
pub use reader::{ReadLimit, Reader, StoredRecord};

use draft::Prepared;
use entry::Key;
use flush::Flusher;
use log::Log;

/// When an intent counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Handed to the operating system: survives the process' death, not the machine's.
    Process,
    /// Flushed to disk.
    Disk,
    /// `Disk` for what is not a plain read.
    #[default]
    Auto,
}

/// Where and how to keep records.
#[derive(Clone, Debug)]
pub struct Options {
    /// A directory of this process alone.
    pub dir: PathBuf,
    /// When an intent counts as kept.
    pub sync: SyncMode,
    /// Bytes in all segments at most; calls are denied beyond.
    pub max_bytes: u64,
    /// Tells boots of the machine apart.
    pub clock: Clock,
}

impl Options {
    /// Options with the default limit (256 MiB) and `auto`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            sync: SyncMode::default(),
            max_bytes: 256 * 1024 * 1024,
            clock: Clock::machine(),
        }
    }

    /// Segments are small beside the whole, so that settled bytes come free in small steps.
    fn segment_bytes(&self) -> u64 {
        (self.max_bytes / 16).clamp(4 * 1024, 8 * 1024 * 1024)
    }
}

/// What is about to be forwarded.
#[derive(Debug)]
pub struct Intent<'a> {
    /// What is known of the call. It becomes the record, with outcome `interrupted`, when nothing else does. Gets the payload's
    /// digest.
    pub source: &'a mut SourceRecord,
    /// The erasable part, already redacted.
    pub payload: &'a Payload,
    /// Under [`SyncMode::Auto`] a plain read does not wait for the disk.
    pub plain_read: bool,
}

/// Figures for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolStatus {
    /// Bytes in all segments.
    pub used: u64,
    /// Bytes allowed.
    pub limit: u64,
    /// Calls whose intent has no record.
    pub open_intents: usize,
    /// The current epoch.
    pub epoch: Option<u64>,
    /// Last number of the current epoch.
    pub high_water: u64,
    /// Records that may not be forgotten yet.
    pub unsettled: u64,
}

/// The durable queue. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Spool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    log: Arc<Mutex<Log>>,
    flusher: Option<Flusher>,
    sync: SyncMode,
    arrival: Notify,
    is_awaited: AtomicBool,
    /// Held for as long as the spool lives.
    _lock: File,
}

impl Spool {
    /// Opens the directory (made when missing), recovers what an earlier process left. Blocks on the disk.
    ///
    /// # Errors
    /// Another process holds the directory, or the file system refuses.
    pub fn open(options: &Options) -> Result<Self, SpoolError> {
        let dir = &options.dir;
        std::fs::create_dir_all(dir).map_err(SpoolError::io("create the spool directory", dir))?;
        let lock = take_lock(dir)?;
        let log = Arc::new(Mutex::new(recover::recover(options)?));
        let flusher = match options.sync {
            SyncMode::Process => None,
            SyncMode::Disk | SyncMode::Auto => Some(Flusher::start(log.clone())?),
        };
        let inner = Inner {
            log,
            flusher,
            sync: options.sync,
            arrival: Notify::new(),
            is_awaited: AtomicBool::new(false),
            _lock: lock,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Keeps the intent of a call, as durable as `spool.sync` says. The call MUST NOT be forwarded before this returns.
    ///
    /// # Errors
    /// The intent is not kept: deny the call with `audit_unavailable`.
    pub async fn begin(&self, intent: Intent<'_>) -> Result<OpenCall, SpoolError> {
        let (statement, stated) = draft::interrupted(intent.source, intent.payload)?;
        let (key, position) = self.with_log(|log| log.begin(statement))?;
        let call = OpenCall::new(self.clone(), key, stated);
        let waits_for_disk = match self.inner.sync {
            SyncMode::Process => false,
            SyncMode::Disk => true,
            SyncMode::Auto => !intent.plain_read,
        };
        if let Some(flusher) = self.inner.flusher.as_ref().filter(|_| waits_for_disk) {
            flusher.flushed(position).await?;
        }
        Ok(call)
    }

    /// Keeps the record of a call that was not forwarded.
    ///
    /// # Errors
    /// The record is not kept; the call stays refused.
    pub fn record(&self, draft: Draft) -> Result<Recorded, SpoolError> {
        let prepared = Prepared::new(draft)?;
        let recorded = self.with_log(|log| log.record(prepared))?;
        self.announce();
        Ok(recorded)
    }

    /// Whether a call could begin now.
    pub fn has_room(&self) -> bool {
        self.with_log(|log| log.has_room())
    }

    /// Figures for operators.
    pub fn status(&self) -> SpoolStatus {
        self.with_log(|log| SpoolStatus {
            used: log.used,
            limit: log.max_bytes,
            open_intents: log.open.len(),
            epoch: log.current,
            high_water: log
                .current
                .and_then(|epoch| log.epochs.get(&epoch))
                .map_or(0, |mark| mark.last),
            unsettled: log.epochs.values().map(|mark| mark.last - mark.settled).sum(),
        })
    }

    /// Starts a new epoch: older ones end, and what waited for an epoch gets its numbers.
    ///
    /// # Errors
    /// The epoch is not newer than every one used here, or the file system refuses.
    pub fn open_epoch(&self, grant: &EpochGrant) -> Result<(), SpoolError> {
        let opened = self.with_log(|log| log.open_epoch(grant));
        self.announce();
        opened
    }

    /// Ends the current epoch, unless calls are open (then it answers `false`).
    ///
    /// # Errors
    /// The file system refuses.
    pub fn end_epoch(&self) -> Result<bool, SpoolError> {
        let ended = self.with_log(|log| log.end_epoch());
        self.announce();
        ended
    }

    /// The highest epoch that was ever opened here.
    pub fn highest_epoch(&self) -> u64 {
        self.with_log(|log| log.highest)
    }

    /// Epochs that are not closed and settled, oldest first.
    pub fn epochs(&self) -> Vec<EpochStatus> {
        self.with_log(|log| log.status())
    }

    /// Records of `epoch` up to `through` may be forgotten.
    pub fn settle(&self, epoch: u64, through: u64) {
        self.with_log(|log| log.settle(epoch, through));
    }

    /// The control plane has taken the end of `epoch`.
    pub fn close_epoch(&self, epoch: u64) {
        self.with_log(|log| log.close(epoch));
    }

    /// A reader for delivery.
    pub fn reader(&self) -> Reader {
        Reader::new(self.clone())
    }

    /// Tries once more what the file system refused earlier.
    pub fn retry_writes(&self) {
        if self.with_log(|log| log.write_backlog()).is_ok() {
            self.announce();
        }
    }

    /// Waits until something was added after this was first polled, or `is_due` finds something there already. For one
    /// waiter at a time.
    pub async fn added(&self, is_due: impl Fn(&[EpochStatus]) -> bool) {
        loop {
            self.inner.is_awaited.store(true, Ordering::SeqCst);
            if is_due(&self.epochs()) {
                return;
            }
            self.inner.arrival.notified().await;
        }
    }

    /// Wakes the delivery once, however many records come before it looks.
    fn announce(&self) {
        if self.inner.is_awaited.load(Ordering::Relaxed)
            && self.inner.is_awaited.swap(false, Ordering::SeqCst)
        {
            self.inner.arrival.notify_one();
        }
    }

    fn finish(&self, key: Key, prepared: Prepared) -> Result<Recorded, SpoolError> {
        let recorded = self.with_log(|log| log.finish(key, prepared));
        self.announce();
        recorded
    }

    fn interrupt(&self, key: Key) -> Result<(), SpoolError> {
        let Some(statement) = self.with_log(|log| log.open_statement(key)) else {
            return Ok(());
        };
        self.finish(key, Prepared::from_statement(&statement)?)
            .map(|_| ())
    }

    fn with_log<T>(&self, then: impl FnOnce(&mut Log) -> T) -> T {
        then(&mut self.inner.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn take_lock(dir: &std::path::Path) -> Result<File, SpoolError> {
    let path = dir.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(SpoolError::io("open the lock file", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(SpoolError::Locked { path }),
        Err(std::fs::TryLockError::Error(error)) => Err(SpoolError::io("lock", path)(error)),
    }
}
