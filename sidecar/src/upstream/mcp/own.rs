//! Connections of one party each, to upstreams that keep state: an agent session's, or those of what one agent asks without a
//! session. They are opened by the first request that needs one, and end with their party.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::logging::Told;
use super::session::Session;
use super::standing::Standing;
use crate::upstream::Party;

/// One agent's share of the connections of one upstream.
const SHARE: usize = 4;

/// The party, and what it says that its client can do, which a legacy upstream is told once.
pub(super) type Key = (Party, Bytes);

/// The connections of one party each.
#[derive(Debug, Default)]
pub(super) struct OwnConnections {
    by_key: Mutex<HashMap<Key, Arc<Own>>>,
}

/// A connection of one party, or what is to become one.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) session: OnceCell<Arc<Session>>,
    /// What its party asked for that holds beyond one answer. It outlives the connection.
    pub(super) standing: Arc<Standing>,
    pub(super) told: Told,
    in_use: AtomicUsize,
    last_used: Mutex<Instant>,
    /// Cancelled when the connection is given up for another.
    pub(super) close: CancellationToken,
}

/// A use of a connection, which keeps it from being given up.
pub(super) struct Use(pub(super) Arc<Own>);

impl Use {
    fn begin(own: &Arc<Own>) -> Self {
        own.in_use.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(own))
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Own {
    fn new(standing: Arc<Standing>) -> Arc<Self> {
        Arc::new(Self {
            session: OnceCell::new(),
            standing,
            told: Told::default(),
            in_use: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            close: CancellationToken::new(),
        })
    }

    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it serves a request, or has to be there for what its party subscribed to.
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) > 0 || self.standing.has_subscriptions()
    }
}

impl OwnConnections {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Own>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// The connection of this key, or room for one. Where there is none, the one that was not used for the longest is given up.
    pub(super) fn claim(&self, key: &Key, limit: usize) -> Result<Use, Failure> {
        let mut by_key = self.lock();
        if let Some(own) = by_key.get(key) {
            return Ok(Use::begin(own));
        }
        let is_same_agent = |other: &Key| other.0.agent == key.0.agent;
        let share = (limit / SHARE).max(1);
        let is_over_share = by_key.keys().filter(|other| is_same_agent(other)).count() >= share;
        if is_over_share || by_key.len() >= limit {
            let oldest = by_key
                .iter()
                .filter(|(other, own)| !own.is_in_use() && (!is_over_share || is_same_agent(other)))
                .min_by_key(|(_, own)| own.last_used())
                .map(|(other, _)| other.clone());
            let given_up = oldest
                .and_then(|oldest| by_key.remove(&oldest))
                .ok_or(Failure::Busy(if is_over_share { share } else { limit }))?;
            given_up.close.cancel();
        }
        let own = Own::new(Arc::default());
        by_key.insert(key.clone(), Arc::clone(&own));
        Ok(Use::begin(&own))
    }

    /// The connections of a party.
    pub(super) fn of(&self, party: &Party) -> Vec<Use> {
        let by_key = self.lock();
        let of_party = by_key.iter().filter(|(key, _)| key.0 == *party);
        of_party.map(|(_, own)| Use::begin(own)).collect()
    }

    /// Forgets a connection, if it is still the one of its key.
    pub(super) fn forget(&self, key: &Key, own: &Arc<Own>) {
        let mut by_key = self.lock();
        if by_key.get(key).is_some_and(|known| Arc::ptr_eq(known, own)) {
            by_key.remove(key);
        }
    }

    /// A connection has ended whose party is still there. What is to follow it, where its party has asked for something that holds.
    pub(super) fn succeed(&self, key: &Key, own: &Arc<Own>) -> Option<Arc<Own>> {
        let mut by_key = self.lock();
        by_key.get(key).filter(|known| Arc::ptr_eq(known, own))?;
        if own.standing.is_empty() || own.close.is_cancelled() {
            by_key.remove(key);
            return None;
        }
        let next = Own::new(Arc::clone(&own.standing));
        by_key.insert(key.clone(), Arc::clone(&next));
        Some(next)
    }

    /// Whether a connection is still the one of its key.
    pub(super) fn is_current(&self, key: &Key, own: &Arc<Own>) -> bool {
        self.lock().get(key).is_some_and(|known| Arc::ptr_eq(known, own))
    }
}
