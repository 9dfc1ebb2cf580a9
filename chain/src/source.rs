//! The source's own chain: each record of an epoch is numbered and linked to the one before.

use crate::hash::Hash;
use crate::record::{RecordError, SourceRecord, Text};

/// The end of a source's chain in one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceChain {
    sidecar: Text,
    epoch: u64,
    last: u64,
    prev: Hash,
}

/// A record that has its place in its source's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The number within the epoch.
    pub n: u64,
    /// The canonical text.
    pub text: String,
    /// What the next record's `source_prev` is.
    pub hash: Hash,
}

impl SourceChain {
    /// The chain of an epoch that has no record yet.
    pub fn new(sidecar: impl Into<Text>, epoch: u64) -> Self {
        Self::resume(sidecar, epoch, 0, Hash::ZERO)
    }

    /// The chain of an epoch whose last record has the number `last` and the hash `prev`.
    pub fn resume(sidecar: impl Into<Text>, epoch: u64, last: u64, prev: Hash) -> Self {
        Self {
            sidecar: sidecar.into(),
            epoch,
            last,
            prev,
        }
    }

    /// Numbers, links and encodes a record. The chain moves on only when that succeeds.
    ///
    /// # Errors
    /// When the record cannot be serialised.
    pub fn seal(&mut self, record: &mut SourceRecord) -> Result<Sealed, RecordError> {
        let n = self.last + 1;
        record.sidecar = Some(self.sidecar.clone());
        record.epoch = Some(self.epoch);
        record.n = Some(n);
        record.source_prev = Some(self.prev);
        let text = record.encode()?;
        let hash = Hash::of(&[text.as_bytes()]);
        self.last = n;
        self.prev = hash;
        Ok(Sealed { n, text, hash })
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of the last record; 0 when there is none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The hash of the last record; zeros when there is none.
    pub fn prev(&self) -> Hash {
        self.prev
    }
}
