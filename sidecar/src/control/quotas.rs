//! Limits that a fleet shares: minutes are leased in lots, totals are reserved call by call.

mod lots;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto::v1;
use proto::v1::quota_key::Kind;
use proto::v1::quotas_client::QuotasClient;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tonic::Status;

use super::auth::Authenticated;
use super::shared::Shared;
use lots::{Lot, Taken};

/// How long a call waits for a lot.
const LEASE_LIMIT: Duration = Duration::from_secs(2);
/// Limits of agents that are remembered.
const MAX_KEYS: usize = 10_000;

/// A call is beyond a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limited {
    /// The limit is used up.
    #[error("the rate limit of policy {policy:?} is reached")]
    Reached {
        /// The policy whose limit it is.
        policy: String,
        /// How long until another call can succeed; `None`: never, or not by waiting.
        retry_after: Option<Duration>,
    },
    /// A total cannot be charged without the control plane.
    #[error("the total limit of policy {policy:?} cannot be checked: {reason}")]
    Unavailable {
        /// The policy whose limit it is.
        policy: String,
        /// What happened.
        reason: String,
    },
}

type Key = (String, String);

/// What is held of one limit.
#[derive(Debug)]
struct Slot {
    lot: Mutex<Lot>,
    /// One request for a lot at a time.
    refill: Semaphore,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    minutes: Mutex<HashMap<Key, Arc<Slot>>>,
    returns: TaskTracker,
}

/// The client of the quotas service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct QuotaClient {
    inner: Arc<Inner>,
}

impl QuotaClient {
    pub(super) fn new(shared: Arc<Shared>, returns: TaskTracker) -> Self {
        let inner = Inner {
            shared,
            minutes: Mutex::default(),
            returns,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Counts one attempt against a limit per minute. Mostly answered from the lot that is held.
    ///
    /// # Errors
    /// The window is used up.
    pub async fn attempt(&self, policy: &str, agent: &str, per_minute: u64) -> Result<(), Limited> {
        let slot = self.slot(policy, agent);
        let clock = &self.inner.shared.clock;
        let take = || lock(&slot.lot).take(clock.boot_now(), per_minute);
        let reached = |retry_after| Limited::Reached {
            policy: policy.to_owned(),
            retry_after: Some(retry_after),
        };
        match take() {
            Taken::Yes => return Ok(()),
            Taken::No { retry_after } => return Err(reached(retry_after)),
            Taken::Empty { .. } => {}
        }
        // INVARIANT: the semaphore is never closed.
        let _turn = slot.refill.acquire().await;
        let want = match take() {
            Taken::Yes => return Ok(()),
            Taken::No { retry_after } => return Err(reached(retry_after)),
            Taken::Empty { want } => want,
        };
        let asked_at = clock.boot_now();
        let lease = self.lease(policy, agent, Kind::PerMinute, want, per_minute).await;
        let mut lot = lock(&slot.lot);
        match lease {
            Ok(lease) => lot.refill(asked_at, &lease),
            Err(status) => {
                tracing::debug!(policy, code = ?status.code(), "no lot could be leased: an even share goes on");
                lot.go_on_alone(clock.boot_now(), per_minute);
            }
        }
        match lot.take(clock.boot_now(), per_minute) {
            Taken::Yes => Ok(()),
            Taken::No { retry_after } => Err(reached(retry_after)),
            Taken::Empty { .. } => Err(reached(Duration::from_secs(1))),
        }
    }

    /// Reserves one call out of a total. Spend it when the call is forwarded; dropped without that, it is given back.
    ///
    /// # Errors
    /// The total is used up, or cannot be charged.
    pub async fn reserve(&self, policy: &str, agent: &str, total: u64) -> Result<Reservation, Limited> {
        let lease = self.lease(policy, agent, Kind::Total, 1, total).await;
        let lease = lease.map_err(|status| Limited::Unavailable {
            policy: policy.to_owned(),
            reason: status.message().to_owned(),
        })?;
        if lease.granted == 0 {
            return Err(Limited::Reached {
                policy: policy.to_owned(),
                retry_after: (lease.retry_after_ms > 0).then(|| Duration::from_millis(lease.retry_after_ms)),
            });
        }
        Ok(Reservation {
            client: self.clone(),
            key: Some(wire_key(policy, agent, Kind::Total)),
            lease_id: lease.lease_id,
        })
    }

    /// Gives back every lot that is held.
    pub(super) fn return_all(&self) {
        let slots: Vec<_> = lock(&self.inner.minutes).drain().collect();
        for ((policy, agent), slot) in slots {
            if let Some((lease_id, unused)) = lock(&slot.lot).give_back() {
                self.give_back(wire_key(&policy, &agent, Kind::PerMinute), lease_id, unused);
            }
        }
    }

    fn slot(&self, policy: &str, agent: &str) -> Arc<Slot> {
        let key = (policy.to_owned(), agent.to_owned());
        let mut minutes = lock(&self.inner.minutes);
        if minutes.len() >= MAX_KEYS && !minutes.contains_key(&key) {
            let now = self.inner.shared.clock.boot_now();
            minutes.retain(|_, slot| !lock(&slot.lot).is_idle(now));
        }
        let slot = minutes.entry(key).or_insert_with(|| {
            Arc::new(Slot {
                lot: Mutex::default(),
                refill: Semaphore::new(1),
            })
        });
        slot.clone()
    }

    fn remote(&self) -> QuotasClient<Authenticated> {
        QuotasClient::new(self.inner.shared.authenticated())
    }

    async fn lease(
        &self,
        policy: &str,
        agent: &str,
        kind: Kind,
        want: u32,
        limit: u64,
    ) -> Result<v1::LeaseQuotaResponse, Status> {
        let request = v1::LeaseQuotaRequest {
            key: Some(wire_key(policy, agent, kind)),
            want,
            lease_id: uuid::Uuid::new_v4().simple().to_string(),
            limit,
        };
        let mut remote = self.remote();
        match tokio::time::timeout(LEASE_LIMIT, remote.lease(request)).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded(
                "the control plane did not answer in time",
            )),
        }
    }

    /// Gives back in the background; a lost return only costs what was reserved.
    fn give_back(&self, key: v1::QuotaKey, lease_id: String, unused: u32) {
        let mut remote = self.remote();
        let request = v1::ReturnQuotaRequest {
            key: Some(key),
            lease_id,
            unused,
        };
        self.inner.returns.spawn(async move {
            match tokio::time::timeout(LEASE_LIMIT, remote.r#return(request)).await {
                Ok(Ok(_)) => {}
                Ok(Err(status)) => tracing::warn!(code = ?status.code(), "an unused quota is not given back"),
                Err(_) => tracing::warn!("an unused quota is not given back in time"),
            }
        });
    }
}

/// One call out of a total.
#[must_use = "dropped, it is given back"]
#[derive(Debug)]
pub struct Reservation {
    client: QuotaClient,
    key: Option<v1::QuotaKey>,
    lease_id: String,
}

impl Reservation {
    /// The call is forwarded: the total is charged.
    pub fn spend(mut self) {
        self.key = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.client.give_back(key, std::mem::take(&mut self.lease_id), 1);
        }
    }
}

fn wire_key(policy: &str, agent: &str, kind: Kind) -> v1::QuotaKey {
    v1::QuotaKey {
        policy: policy.to_owned(),
        agent: agent.to_owned(),
        kind: kind.into(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
