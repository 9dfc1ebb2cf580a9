//! The chain as it is exported and verified: records with the checkpoints between them, in order, a batch at a time.

use std::collections::VecDeque;

use chain::checkpoint::SignedCheckpoint;

use crate::store::records::{ChainPosition, CheckpointRow, StoredRecord};
use crate::store::{SharedStore, StoreResult};

/// Checkpoints that are read: more than a week of them. Older ones are left out; the records are not.
const CHECKPOINTS: u32 = 100_000;
/// Records of the first batch, and of the largest.
const BATCH: (u32, u32) = (64, 1_024);
/// A batch beyond so many bytes makes the next one smaller.
const BATCH_BYTES: usize = 4 << 20;

/// A record or a checkpoint.
#[derive(Debug)]
pub(crate) enum ChainItem {
    Record(StoredRecord),
    Checkpoint(SignedCheckpoint),
}

/// Which part of the chain is read, both ends inclusive. What verifies begins at a checkpoint, so the part begins right after the last
/// one before `from`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub(crate) from: Option<ChainPosition>,
    pub(crate) until: Option<ChainPosition>,
}

/// Reads a part of the chain. What is committed after it was opened is not in it.
pub(crate) struct ChainReader {
    store: SharedStore,
    after: ChainPosition,
    until: ChainPosition,
    /// Those that were not given yet, oldest first.
    checkpoints: VecDeque<CheckpointRow>,
    batch: u32,
    is_done: bool,
}

impl ChainReader {
    /// Opens a part.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn open(store: SharedStore, part: Part) -> StoreResult<Self> {
        // In this order: a checkpoint that speaks of records after the head is then a sign of damage.
        let mut checkpoints: VecDeque<CheckpointRow> = store.checkpoints(CHECKPOINTS).await?.into();
        checkpoints.make_contiguous().reverse();
        let head = store.chain_head().await?;
        let mut after = ChainPosition::default();
        if let Some(from) = part.from {
            while checkpoints.get(1).is_some_and(|next| next.at < from) {
                checkpoints.pop_front();
            }
            match checkpoints.front() {
                Some(start) if start.at < from => after = start.at,
                _ => {}
            }
        }
        if let Some(until) = part.until {
            checkpoints.retain(|checkpoint| checkpoint.at <= until);
        }
        Ok(Self {
            store,
            after,
            until: part.until.map_or(head.at, |until| until.min(head.at)),
            checkpoints,
            batch: BATCH.0,
            is_done: false,
        })
    }

    /// The next items; `None` after the last.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn next(&mut self) -> StoreResult<Option<Vec<ChainItem>>> {
        if self.is_done {
            return Ok(None);
        }
        let records = self.store.records_after(self.after, self.batch).await?;
        let bytes: usize = records.iter().map(size).sum();
        self.batch = match bytes > BATCH_BYTES {
            true => (self.batch / 2).max(1),
            false => (self.batch * 2).min(BATCH.1),
        };
        self.is_done = records.is_empty();
        let mut items = Vec::with_capacity(records.len() + 1);
        for record in records {
            if record.at > self.until {
                self.is_done = true;
                break;
            }
            let at = record.at;
            self.give_checkpoints(&mut items, |checkpoint| checkpoint < at);
            items.push(ChainItem::Record(record));
            self.give_checkpoints(&mut items, |checkpoint| checkpoint == at);
            self.after = at;
            self.is_done = at == self.until;
        }
        if self.is_done {
            self.give_checkpoints(&mut items, |_| true);
        }
        Ok(Some(items))
    }

    fn give_checkpoints(&mut self, items: &mut Vec<ChainItem>, wanted: impl Fn(ChainPosition) -> bool) {
        while self.checkpoints.front().is_some_and(|next| wanted(next.at)) {
            let Some(row) = self.checkpoints.pop_front() else {
                return;
            };
            items.push(ChainItem::Checkpoint(signed(row)));
        }
    }
}

fn size(record: &StoredRecord) -> usize {
    record.header.len() + record.payload.as_ref().map_or(0, String::len)
}

/// A stored checkpoint as it is published.
#[must_use]
pub(crate) fn signed(row: CheckpointRow) -> SignedCheckpoint {
    SignedCheckpoint::from_parts(row.text, &row.signature, row.key_id)
}
