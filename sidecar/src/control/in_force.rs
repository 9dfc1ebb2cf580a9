//! What is in force right now, for the gate to read without waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use net::clock::{Clock, micros};
use tokio::sync::watch;

use super::lease::{Freshness, Lease, Waiting};
use super::snapshot::Snapshot;
use super::stops::StopSet;

/// Snapshot, lease and stops. Written by the watch alone, read by everybody.
#[derive(Debug)]
pub(super) struct InForce {
    clock: Clock,
    snapshot: ArcSwap<Snapshot>,
    lease: ArcSwapOption<Lease>,
    /// The newest statement of the database's time, whether or not its lease covers the view.
    database: ArcSwapOption<Lease>,
    waiting: Mutex<Waiting>,
    is_revoked: AtomicBool,
    stops: ArcSwap<StopSet>,
    changed: watch::Sender<u64>,
    stops_changed: watch::Sender<u64>,
}

impl InForce {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            snapshot: ArcSwap::default(),
            lease: ArcSwapOption::empty(),
            database: ArcSwapOption::empty(),
            waiting: Mutex::default(),
            is_revoked: AtomicBool::new(false),
            stops: ArcSwap::default(),
            changed: watch::Sender::new(0),
            stops_changed: watch::Sender::new(0),
        }
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub(super) fn stops(&self) -> Arc<StopSet> {
        self.stops.load_full()
    }

    pub(super) fn lease(&self) -> Option<Arc<Lease>> {
        self.lease.load_full()
    }

    pub(super) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(super) fn stops_changed(&self) -> watch::Receiver<u64> {
        self.stops_changed.subscribe()
    }

    /// Puts a view in force, with the lease that waited for it.
    pub(super) fn install(&self, snapshot: Snapshot) {
        let revision = snapshot.revision;
        self.snapshot.store(Arc::new(snapshot));
        let caught_up = self.lock_waiting().take_covering(revision);
        if let Some(lease) = caught_up {
            self.lease.store(Some(Arc::new(lease)));
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// Takes a lease; it counts once the view has its revision.
    pub(super) fn renew(&self, lease: Lease) {
        self.database.store(Some(Arc::new(lease)));
        if lease.covers(self.snapshot.load().revision) {
            self.lease.store(Some(Arc::new(lease)));
        } else {
            self.lock_waiting().push(lease);
        }
    }

    /// Replaces the stops unless these are older. Answers whether anything changed.
    pub(super) fn replace_stops(&self, stops: StopSet) -> bool {
        let held = self.stops.load();
        if stops.is_older_than(&held) || stops == **held {
            return false;
        }
        self.stops.store(Arc::new(stops));
        self.stops_changed.send_modify(|count| *count += 1);
        true
    }

    /// The control plane has revoked this sidecar, or has enrolled it anew. Written by the enrolment alone.
    pub(super) fn set_revoked(&self, is_revoked: bool) {
        self.is_revoked.store(is_revoked, Ordering::Release);
    }

    /// What may run now.
    pub(super) fn freshness(&self) -> Freshness {
        if self.is_revoked.load(Ordering::Acquire) {
            return Freshness::Revoked;
        }
        let snapshot = self.snapshot.load();
        if !snapshot.is_present {
            return Freshness::NoSnapshot;
        }
        match &*self.lease.load() {
            Some(lease) if lease.covers(snapshot.revision) => snapshot.staleness.at(lease.age(&self.clock)),
            Some(_) | None => Freshness::Nothing,
        }
    }

    /// Age of the lease that covers the view.
    pub(super) fn lease_age(&self) -> Option<Duration> {
        let lease = self.lease.load();
        let lease = lease.as_deref()?;
        lease
            .covers(self.snapshot.load().revision)
            .then(|| lease.age(&self.clock))
    }

    /// The database's time, never earlier than it really is: it was stated after the nonce was sent.
    pub(super) fn database_now(&self) -> i64 {
        match &*self.database.load() {
            Some(stated) => stated
                .database_time
                .saturating_add(micros(self.clock.since(stated.asked_at))),
            None => self.clock.wall_micros(),
        }
    }

    fn lock_waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
