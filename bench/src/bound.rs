//! Where a load ends.

use std::time::Duration;

/// A load ends at whichever comes first.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    /// Calls sent.
    pub calls: u64,
    /// Time passed.
    pub time: Duration,
}

impl Bound {
    /// By time alone, with a count that no loopback reaches in it.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        Self {
            calls: u64::MAX,
            time,
        }
    }
}
