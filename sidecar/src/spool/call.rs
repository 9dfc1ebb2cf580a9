//! A call between its intent and its record.

use super::draft::{Draft, Prepared, Stated};
use super::entry::Key;
use super::{Recorded, Spool, SpoolError};

/// A call whose intent is in the spool. It ends by [`OpenCall::finish`]; dropped without that (a panic, a lost task), it
/// leaves an `interrupted` record.
#[must_use = "dropping it records the call as interrupted"]
#[derive(Debug)]
pub struct OpenCall {
    spool: Spool,
    key: Key,
    stated: Stated,
    is_open: bool,
}

impl OpenCall {
    pub(super) fn new(spool: Spool, key: Key, stated: Stated) -> Self {
        Self {
            spool,
            key,
            stated,
            is_open: true,
        }
    }

    /// Replaces the intent by the record of what happened; a draft without a payload keeps the intent's.
    ///
    /// # Errors
    /// The record is not on disk. When the file system refused, it is kept in memory, is written before anything else begins,
    /// and the intent remains: after a crash the call would be `interrupted`.
    pub fn finish(mut self, draft: Draft) -> Result<Recorded, SpoolError> {
        let prepared = Prepared::after(&self.stated, draft)?;
        self.is_open = false;
        self.spool.finish(self.key, prepared)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        if let Err(error) = self.spool.interrupt(self.key) {
            tracing::error!(%error, "the record of an interrupted call is not written yet");
        }
    }
}
