//! Where the windows of a fleet are counted, and the ways from one place to another.

use std::time::Duration;

use net::clock::Clock;
use net::tls::TlsError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::memory::{Memory, Place};
use super::redis::{Lease, Redis, Server, Up};
use crate::metrics::Metrics;
use crate::store::quotas::{QuotaFilter, QuotaKey, QuotaKind, QuotaLot, QuotaRequest, QuotaUse, TakenLot};
use crate::store::{SharedStore, StoreError};

/// The sliding window.
const MINUTE: Duration = Duration::from_secs(60);
/// A lot that is about to be too old to count may be forgotten in Redis already.
const NEARLY_OVER: Duration = Duration::from_secs(2);

/// A lot cannot be given out now. The sidecar goes on with its even share.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// The store that the replicas share failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// More agents are limited than this process counts.
    #[error("this control plane counts the calls of too many agents at once; use Postgres or Redis")]
    Full,
}

/// Where windows are counted at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CountedIn {
    /// In Redis.
    Redis,
    /// In the database that the replicas share.
    Postgres,
    /// In this process.
    Memory,
}

/// The windows of `max_per_minute`.
pub struct Windows {
    redis: Option<Redis>,
    /// Where several replicas count without Redis; `None`: one process does, in memory.
    shared: Option<SharedStore>,
    /// What this process counts itself, or knows of what is counted elsewhere.
    known: Memory,
    metrics: Metrics,
}

impl std::fmt::Debug for Windows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Windows")
            .field("counted_in", &self.counted_in())
            .finish_non_exhaustive()
    }
}

impl Windows {
    /// Windows in Redis, where a server is given; without it, and while it is away, in `shared`, or in memory. The tasks end with
    /// `shutdown`.
    ///
    /// # Errors
    /// The certificate authority of Redis cannot be read. A server that is not there is no error: it is tried again and again.
    pub fn start(
        redis: Option<Server>,
        shared: Option<SharedStore>,
        clock: &Clock,
        metrics: &Metrics,
        (tasks, shutdown): (&TaskTracker, &CancellationToken),
    ) -> Result<Self, TlsError> {
        let redis = redis
            .map(|server| Redis::start(server, MINUTE, metrics, tasks, shutdown))
            .transpose()?;
        Ok(Self {
            redis,
            shared,
            known: Memory::new(clock.clone(), MINUTE),
            metrics: metrics.clone(),
        })
    }

    /// Takes a lot out of a window, in which also count the calls that ran `unleased` while nobody answered the sidecar.
    ///
    /// # Errors
    /// No place can count it now.
    pub async fn lease(&self, request: &QuotaRequest, unleased: u32) -> Result<QuotaLot, WindowError> {
        self.metrics.quota_leases.inc();
        let unleased = (unleased > 0).then(|| TakenLot {
            lease_id: format!("{}, unleased", request.lease_id),
            age: Duration::ZERO,
            granted: unleased,
        });
        let unleased = unleased.as_slice();
        if let Some((redis, up)) = self.redis_up() {
            match self.lease_in_redis(redis, &up, request, unleased).await? {
                Some(lot) => return Ok(lot),
                None => redis.lost(&up),
            }
        }
        let key = &request.key;
        let Some(shared) = &self.shared else {
            let lot = self.known.with(key, |entry, now| {
                entry.window.carry(now, unleased);
                entry
                    .window
                    .take(now, &request.lease_id, request.want, request.limit)
            });
            return lot.ok_or(WindowError::Full);
        };
        if !unleased.is_empty() {
            shared.carry_lots(key, unleased).await?;
        }
        if let Some(redis) = &self.redis {
            self.carry_to_store(&**shared, key, Place::Base(redis.epoch()))
                .await?;
        }
        let lot = shared.lease_quota(request.clone()).await?;
        if self.redis.is_some() && lot.granted > 0 {
            self.learn(key, &[just_taken(&request.lease_id, lot.granted)]);
        }
        Ok(lot)
    }

    /// Gives back what was not used of a lot; repeating it gives nothing back twice.
    ///
    /// # Errors
    /// No place can count it now.
    pub async fn give_back(&self, key: &QuotaKey, lease_id: &str, unused: u32) -> Result<(), WindowError> {
        self.known
            .with(key, |entry, _| entry.window.give_back(lease_id, unused));
        if let Some((redis, up)) = self.redis_up() {
            if redis.give_back(&up, key, lease_id, unused).await.is_some() {
                return Ok(());
            }
            redis.lost(&up);
        }
        if let Some(shared) = &self.shared {
            shared.return_quota(key.clone(), lease_id, unused).await?;
        }
        Ok(())
    }

    /// Where windows are counted at the moment.
    #[must_use]
    pub fn counted_in(&self) -> CountedIn {
        match (self.redis_up(), &self.shared) {
            (Some(_), _) => CountedIn::Redis,
            (None, Some(_)) => CountedIn::Postgres,
            (None, None) => CountedIn::Memory,
        }
    }

    /// What was taken in the last minute, in the order of policies and agents.
    ///
    /// # Errors
    /// The store failed.
    pub async fn uses(&self, filter: &QuotaFilter) -> Result<Vec<QuotaUse>, WindowError> {
        let in_redis = match self.redis_up() {
            Some((redis, up)) => redis.uses(&up, filter).await,
            None => None,
        };
        let mut uses = match (in_redis, &self.shared) {
            (Some(uses), _) => uses,
            (None, Some(shared)) => shared.quota_uses(filter).await?,
            (None, None) => self.known.uses(filter),
        };
        uses.retain(|counted| counted.key.kind == QuotaKind::PerMinute);
        uses.sort_by(|a, b| order(&a.key).cmp(&order(&b.key)));
        Ok(uses)
    }

    /// Sets windows back to nothing, wherever they are counted but in the store; answers how many.
    pub async fn reset(&self, filter: &QuotaFilter) -> u64 {
        let known = self.known.reset(filter);
        let in_redis = match self.redis_up() {
            Some((redis, up)) => redis.reset(&up, filter).await,
            None => None,
        };
        match (in_redis, &self.shared) {
            (Some(touched), _) => touched,
            (None, Some(_)) => 0,
            (None, None) => known,
        }
    }

    fn redis_up(&self) -> Option<(&Redis, Up)> {
        let redis = self.redis.as_ref()?;
        Some((redis, redis.up()?))
    }

    /// `None`: Redis did not do it.
    async fn lease_in_redis(
        &self,
        redis: &Redis,
        up: &Up,
        request: &QuotaRequest,
        unleased: &[TakenLot],
    ) -> Result<Option<QuotaLot>, WindowError> {
        let key = &request.key;
        let place = Place::Redis(up.epoch());
        let known = self.known.with(key, |entry, now| {
            let youngest = entry.window.youngest(now);
            let anchor = youngest.filter(|(_, age)| *age + NEARLY_OVER < MINUTE);
            let is_settled = entry.place == place;
            (is_settled, entry.seen, anchor.map(|(lease_id, _)| lease_id))
        });
        let mut lease = Lease {
            request,
            seen: 0,
            anchor: None,
            carried: Vec::new(),
        };
        let mut is_new = true;
        match known {
            Some((true, seen, anchor)) => (is_new, lease.seen, lease.anchor) = (false, seen, anchor),
            Some((false, ..)) | None => lease.carried = self.last_minute(key).await?,
        }
        lease.carried.extend_from_slice(unleased);
        let mut taken = redis.lease(up, &lease).await;
        if taken.as_ref().is_some_and(|taken| taken.is_forgotten) {
            tracing::warn!(
                policy = key.policy,
                "Redis has forgotten a window: what is known of it is carried over"
            );
            (is_new, lease.seen, lease.anchor) = (true, 0, None);
            lease.carried = self.last_minute(key).await?;
            lease.carried.extend_from_slice(unleased);
            taken = redis.lease(up, &lease).await;
        }
        let Some(taken) = taken.filter(|taken| !taken.is_forgotten) else {
            return Ok(None);
        };
        let wants_listing = self.known.with(key, |entry, now| {
            entry.window.carry(now, &taken.news);
            (entry.place, entry.seen) = (place, taken.seen);
            let is_due = is_new || entry.listed_at.is_none_or(|at| at + MINUTE / 4 <= now);
            if is_due {
                entry.listed_at = Some(now);
            }
            is_due
        });
        if wants_listing.unwrap_or(true) {
            redis.list(up, key).await;
        }
        Ok(Some(taken.lot))
    }

    /// What is known of the last minute here and in the store.
    async fn last_minute(&self, key: &QuotaKey) -> Result<Vec<TakenLot>, WindowError> {
        let known = self.known.with(key, |entry, now| entry.window.taken(now));
        let mut lots = known.unwrap_or_default();
        if let Some(shared) = &self.shared {
            // What is known here comes first: it knows what was given back.
            lots.extend(shared.taken_lots(key).await?);
        }
        Ok(lots)
    }

    /// The first time that a window is counted in the store after Redis was lost.
    async fn carry_to_store(
        &self,
        shared: &dyn crate::store::Store,
        key: &QuotaKey,
        place: Place,
    ) -> Result<(), WindowError> {
        let known = self.known.with(key, |entry, now| {
            (entry.place != place).then(|| entry.window.taken(now))
        });
        let Some(lots) = known.flatten() else {
            return Ok(());
        };
        if !lots.is_empty() {
            shared.carry_lots(key, &lots).await?;
        }
        self.known.with(key, |entry, _| entry.place = place);
        Ok(())
    }

    fn learn(&self, key: &QuotaKey, lots: &[TakenLot]) {
        self.known.with(key, |entry, now| entry.window.carry(now, lots));
    }
}

fn just_taken(lease_id: &str, granted: u32) -> TakenLot {
    TakenLot {
        lease_id: lease_id.to_owned(),
        age: Duration::ZERO,
        granted,
    }
}

fn order(key: &QuotaKey) -> (&str, &str, &str) {
    (&key.policy, &key.namespace, &key.agent)
}
