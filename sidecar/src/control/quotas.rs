//! Limits that a fleet shares: minutes are leased in lots, totals are reserved call by call.

mod lots;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proto::v1;
use proto::v1::quota_key::Kind;
use proto::v1::quotas_client::QuotasClient;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;

use super::auth::Authenticated;
use super::shared::Shared;
use lots::{Leftover, Lot, Taken};

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
    /// A task gives back what is not used in time.
    is_watched: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    minutes: Mutex<HashMap<Key, Arc<Slot>>>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// The client of the quotas service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct QuotaClient {
    inner: Arc<Inner>,
}

impl QuotaClient {
    pub(super) fn new(shared: Arc<Shared>, tasks: TaskTracker, shutdown: CancellationToken) -> Self {
        let inner = Inner {
            shared,
            minutes: Mutex::default(),
            tasks,
            shutdown,
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
        let clock = &self.inner.shared.clock;
        let reached = |retry_after| Limited::Reached {
            policy: policy.to_owned(),
            retry_after: Some(retry_after),
        };
        let slot = self
            .slot(policy, agent)
            .ok_or_else(|| reached(Duration::from_secs(1)))?;
        let take = || lock(&slot.lot).take(clock.boot_now(), per_minute);
        match take() {
            Taken::Yes => return Ok(()),
            Taken::No { retry_after } => return Err(reached(retry_after)),
            Taken::Empty { .. } => {}
        }
        // INVARIANT: the semaphore is never closed.
        let _turn = slot.refill.acquire().await;
        let (want, unleased) = match take() {
            Taken::Yes => return Ok(()),
            Taken::No { retry_after } => return Err(reached(retry_after)),
            Taken::Empty { want, unleased } => (want, unleased),
        };
        let asked_at = clock.boot_now();
        let key = wire_key(policy, agent, Kind::PerMinute);
        let lease = self.lease(key.clone(), (want, unleased), per_minute).await;
        let (leftover, taken) = {
            // In one go: those who wait must not take it all before this attempt does.
            let mut lot = lock(&slot.lot);
            let now = clock.boot_now();
            let leftover = match lease {
                Ok(lease) => lot.refill(asked_at, &lease),
                Err(status) => {
                    tracing::debug!(policy, code = ?status.code(), "no lot could be leased: a share goes on");
                    lot.go_on_alone(now, per_minute);
                    None
                }
            };
            (leftover, lot.take(now, per_minute))
        };
        self.return_in_time(&key, &slot, leftover);
        match taken {
            Taken::Yes => Ok(()),
            Taken::No { retry_after } => Err(reached(retry_after)),
            Taken::Empty { .. } => Err(reached(Duration::from_secs(1))),
        }
    }

    /// Gives back what was left of the lot before, and sees to it that the present one is given back when it is void.
    fn return_in_time(&self, key: &v1::QuotaKey, slot: &Arc<Slot>, leftover: Option<Leftover>) {
        if let Some(Leftover { lease_id, unused }) = leftover {
            self.give_back(key.clone(), lease_id, unused);
        }
        if slot.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let (client, key, slot) = (self.clone(), key.clone(), slot.clone());
        let shutdown = self.inner.shutdown.clone();
        self.inner.tasks.spawn(async move {
            let clock = client.inner.shared.clock.clone();
            let work = async {
                loop {
                    let void_at = lock(&slot.lot).void_at();
                    let Some(void_at) = void_at else {
                        slot.is_watched.store(false, Ordering::Release);
                        // A lot that came just now has seen a watch that has ended.
                        if lock(&slot.lot).void_at().is_none() || slot.is_watched.swap(true, Ordering::AcqRel)
                        {
                            return;
                        }
                        continue;
                    };
                    clock.sleep_until(void_at).await;
                    let leftover = lock(&slot.lot).expire(clock.boot_now());
                    if let Some(Leftover { lease_id, unused }) = leftover {
                        client.give_back(key.clone(), lease_id, unused);
                    }
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Reserves one call out of a total. Spend it when the call is forwarded; dropped without that, it is given back.
    ///
    /// # Errors
    /// The total is used up, or cannot be charged.
    pub async fn reserve(&self, policy: &str, agent: &str, total: u64) -> Result<Reservation, Limited> {
        let key = wire_key(policy, agent, Kind::Total);
        let lease = self.lease(key.clone(), (1, 0), total).await;
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
            key: Some(key),
            lease_id: lease.lease_id,
        })
    }

    /// Gives back every lot that is held.
    pub(super) fn return_all(&self) {
        let slots: Vec<_> = lock(&self.inner.minutes).drain().collect();
        for ((policy, agent), slot) in slots {
            let leftover = lock(&slot.lot).give_back();
            if let Some(Leftover { lease_id, unused }) = leftover {
                self.give_back(wire_key(&policy, &agent, Kind::PerMinute), lease_id, unused);
            }
        }
    }

    /// `None`: more limits are in use than are remembered.
    fn slot(&self, policy: &str, agent: &str) -> Option<Arc<Slot>> {
        let key = (policy.to_owned(), agent.to_owned());
        let mut minutes = lock(&self.inner.minutes);
        if minutes.len() >= MAX_KEYS && !minutes.contains_key(&key) {
            let now = self.inner.shared.clock.boot_now();
            minutes.retain(|_, slot| !lock(&slot.lot).is_idle(now));
            if minutes.len() >= MAX_KEYS {
                return None;
            }
        }
        let slot = minutes.entry(key).or_insert_with(|| {
            Arc::new(Slot {
                lot: Mutex::default(),
                refill: Semaphore::new(1),
                is_watched: AtomicBool::new(false),
            })
        });
        Some(slot.clone())
    }

    fn remote(&self) -> QuotasClient<Authenticated> {
        QuotasClient::new(self.inner.shared.authenticated())
    }

    async fn lease(
        &self,
        key: v1::QuotaKey,
        (want, unleased): (u32, u32),
        limit: u64,
    ) -> Result<v1::LeaseQuotaResponse, Status> {
        let request = v1::LeaseQuotaRequest {
            key: Some(key),
            want,
            unleased,
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
        self.inner.tasks.spawn(async move {
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
