//! The requests that wait for their answers on one connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::envelope::Answer;
use super::failure::Failure;
use crate::upstream::Audience;

/// What a waiting request gets.
pub(super) type Outcome = Result<Answer, Failure>;

/// The requests that wait for their answers on one connection. Bounded.
#[derive(Debug)]
pub(super) struct Pending {
    inner: Mutex<Inner>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Inner {
    closed: Option<String>,
    slots: HashMap<u64, Slot>,
}

#[derive(Debug)]
struct Slot {
    answer: oneshot::Sender<Outcome>,
    audience: Option<Arc<dyn Audience>>,
}

impl Pending {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            inner: Mutex::default(),
            limit,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request that is about to be sent.
    pub(super) fn add(
        &self,
        id: u64,
        audience: Option<Arc<dyn Audience>>,
    ) -> Result<oneshot::Receiver<Outcome>, Failure> {
        let (answer, receiver) = oneshot::channel();
        let mut inner = self.lock();
        if let Some(reason) = &inner.closed {
            return Err(Failure::Unreachable(reason.clone()));
        }
        if inner.slots.len() >= self.limit {
            return Err(Failure::Busy(self.limit));
        }
        inner.slots.insert(id, Slot { answer, audience });
        Ok(receiver)
    }

    /// Hands a request its outcome. `false` when nobody waits for it.
    pub(super) fn settle(&self, id: u64, outcome: Outcome) -> bool {
        let slot = self.lock().slots.remove(&id);
        slot.is_some_and(|slot| slot.answer.send(outcome).is_ok())
    }

    /// Hands a request the raw `params` of a progress notification. `false` when it wants none.
    pub(super) fn progress(&self, token: u64, params: &Bytes) -> bool {
        let audience = self
            .lock()
            .slots
            .get(&token)
            .and_then(|slot| slot.audience.clone())
            .filter(|audience| audience.wants_progress());
        if let Some(audience) = &audience {
            audience.progressed(params);
        }
        audience.is_some()
    }

    /// Forgets a request. `false` when it was settled already.
    pub(super) fn forget(&self, id: u64) -> bool {
        self.lock().slots.remove(&id).is_some()
    }

    /// Fails all that wait, and all that come.
    pub(super) fn close(&self, reason: &str) {
        let slots = {
            let mut inner = self.lock();
            inner.closed.get_or_insert_with(|| reason.to_owned());
            std::mem::take(&mut inner.slots)
        };
        for slot in slots.into_values() {
            let _ = slot.answer.send(Err(Failure::Lost(reason.to_owned())));
        }
    }

    /// Why the connection ended.
    pub(super) fn reason(&self) -> Option<String> {
        self.lock().closed.clone()
    }
}
