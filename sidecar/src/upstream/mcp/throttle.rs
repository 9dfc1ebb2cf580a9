//! Keeps a misbehaving upstream from filling the log.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lets the first ten through, then ever fewer.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    seen: AtomicU64,
}

impl Throttle {
    /// The number of this occurrence when it is worth a line.
    pub(super) fn admit(&self) -> Option<u64> {
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        (number <= 10 || number.is_power_of_two()).then_some(number)
    }
}
