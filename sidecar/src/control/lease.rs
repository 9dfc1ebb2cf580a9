//! How fresh the view is: the lease and its age.

use std::time::Duration;

use net::clock::Clock;

use super::Revision;

/// What may run, by the age of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The view is current within `staleness.write`.
    Fresh,
    /// Older than `staleness.write`: only plain reads run.
    PlainReadsOnly,
    /// Older than `staleness.read`, or no lease covers the view: nothing runs.
    Nothing,
    /// There is no snapshot: nothing runs.
    NoSnapshot,
    /// The control plane has revoked this sidecar: nothing runs.
    Revoked,
}

/// The ages of the lease from which less may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// From here only plain reads run.
    pub write: Duration,
    /// From here nothing runs.
    pub read: Duration,
}

impl Staleness {
    /// The stricter of both in each bound. Writes never outlast reads.
    #[must_use]
    pub fn tightened(self, write: Option<Duration>, read: Option<Duration>) -> Self {
        let read = read.map_or(self.read, |local| local.min(self.read));
        let write = write.map_or(self.write, |local| local.min(self.write));
        Self {
            write: write.min(read),
            read,
        }
    }

    /// What runs under a lease of this age.
    pub fn at(self, age: Duration) -> Freshness {
        if age < self.write {
            Freshness::Fresh
        } else if age < self.read {
            Freshness::PlainReadsOnly
        } else {
            Freshness::Nothing
        }
    }
}

/// "As of that read of the primary, this revision was current."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Boot time at which the nonce was sent: nothing in the lease is older than the control plane's knowledge then.
    pub(crate) asked_at: Duration,
    /// How old the control plane's knowledge was when it answered.
    pub(crate) read_age: Duration,
    /// The revision that was current.
    pub(crate) revision: Revision,
    /// The database's clock at the answer, Unix microseconds.
    pub(crate) database_time: i64,
}

impl Lease {
    pub(crate) fn age(&self, clock: &Clock) -> Duration {
        clock.since(self.asked_at).saturating_add(self.read_age)
    }

    /// Whether a view at `applied` has everything that the lease speaks of.
    pub(crate) fn covers(&self, applied: Revision) -> bool {
        self.revision.generation == applied.generation && self.revision.number <= applied.number
    }
}

/// Leases that the view has not caught up with. Bounded: the oldest goes first.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Vec<Lease>);

const MAX_WAITING: usize = 8;

impl Waiting {
    pub(crate) fn push(&mut self, lease: Lease) {
        if self.0.len() >= MAX_WAITING {
            self.0.remove(0);
        }
        self.0.push(lease);
    }

    /// The youngest lease that covers `applied`; it and all older ones are gone afterwards.
    pub(crate) fn take_covering(&mut self, applied: Revision) -> Option<Lease> {
        let at = self.0.iter().rposition(|lease| lease.covers(applied))?;
        self.0.drain(..=at).next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(number: u64) -> Lease {
        Lease {
            asked_at: Duration::ZERO,
            read_age: Duration::ZERO,
            revision: Revision {
                generation: 1,
                number,
            },
            database_time: 0,
        }
    }

    #[test]
    fn local_bounds_tighten_and_never_loosen() {
        let fleet = Staleness {
            write: Duration::from_secs(180),
            read: Duration::from_secs(900),
        };
        let looser = fleet.tightened(Some(Duration::from_secs(9999)), Some(Duration::from_secs(9999)));
        assert_eq!(looser, fleet);
        let tighter = fleet.tightened(None, Some(Duration::from_secs(60)));
        assert_eq!(tighter.write, Duration::from_secs(60));
        assert_eq!(tighter.at(Duration::from_secs(60)), Freshness::Nothing);
    }

    #[test]
    fn a_lease_waits_until_the_view_has_its_revision() {
        let mut waiting = Waiting::default();
        waiting.push(lease(5));
        waiting.push(lease(7));
        assert_eq!(
            waiting.take_covering(Revision {
                generation: 1,
                number: 4
            }),
            None
        );
        assert_eq!(
            waiting.take_covering(Revision {
                generation: 2,
                number: 9
            }),
            None
        );
        let covering = waiting.take_covering(Revision {
            generation: 1,
            number: 6,
        });
        assert_eq!(covering, Some(lease(5)));
        assert_eq!(
            waiting.take_covering(Revision {
                generation: 1,
                number: 7
            }),
            Some(lease(7))
        );
    }
}
