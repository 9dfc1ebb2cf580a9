//! What the last successful read of the primary said, and how long ago it was. Leases are made of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use net::clock::{Clock, micros};

use crate::store::{Head, Micros, Revision};

/// One successful read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The revision that was current.
    pub revision: Revision,
    /// The stop sequence that was current.
    pub stop_sequence: u64,
    /// The database's clock at the read.
    pub database_time: Micros,
    /// Boot time just before the read began.
    pub began: Duration,
}

/// The last successful read. A revision gets in here only after the view in memory contains it.
#[derive(Debug)]
pub struct Primary {
    clock: Clock,
    last: Mutex<Reading>,
}

impl Primary {
    /// Starts from a read that began at `began`.
    #[must_use]
    pub fn new(clock: Clock, head: Head, began: Duration) -> Self {
        Self {
            clock,
            last: Mutex::new(reading(head, began)),
        }
    }

    /// A later read succeeded and what it found is in force here.
    pub fn read(&self, head: Head, began: Duration) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = reading(head, began);
    }

    /// The last successful read.
    #[must_use]
    pub fn last(&self) -> Reading {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long ago it began.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.clock.since(self.last().began)
    }

    /// The database's clock now, by the last read and the time since.
    #[must_use]
    pub fn database_now(&self) -> Micros {
        let last = self.last();
        last.database_time
            .saturating_add(micros(self.clock.since(last.began)))
    }
}

fn reading(head: Head, began: Duration) -> Reading {
    Reading {
        revision: head.revision,
        stop_sequence: head.stop_sequence,
        database_time: head.database_time,
        began,
    }
}
