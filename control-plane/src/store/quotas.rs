//! Limits that several replicas share: windows leased in lots, and totals.

use std::time::Duration;

use async_trait::async_trait;

use super::{error::StoreResult, types::Act};

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaKind {
    /// Attempts in a sliding minute.
    PerMinute,
    /// Calls forwarded, until reset.
    Total,
}

/// A limit of one policy for one agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuotaKey {
    /// Policy name.
    pub policy: String,
    /// Namespace of the agent: agents of one name in two namespaces are two agents, neither uses up what the other has.
    pub namespace: String,
    /// Agent id.
    pub agent: String,
    /// What is limited.
    pub kind: QuotaKind,
}

/// A request for a lot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRequest {
    /// The limit.
    pub key: QuotaKey,
    /// Id of the lease; repeating it takes nothing twice.
    pub lease_id: String,
    /// Calls wanted.
    pub want: u32,
    /// The limit's value.
    pub limit: u64,
}

/// What was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaLot {
    /// Calls granted; 0: none left now.
    pub granted: u32,
    /// When nothing was granted: after how long a request can succeed; `None`: only a reset helps.
    pub retry_after: Option<Duration>,
}

/// What a counter holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaUse {
    /// The limit.
    pub key: QuotaKey,
    /// Taken and not given back: in the last minute, or in total.
    pub used: u64,
}

/// A lot that was taken out of a window and still counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenLot {
    /// Id of its lease.
    pub lease_id: String,
    /// How long ago it was taken.
    pub age: Duration,
    /// Calls of it that count.
    pub granted: u32,
}

/// Which limits are meant. Nothing given: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaFilter {
    /// Of this policy.
    pub policy: Option<String>,
    /// Of agents in this namespace.
    pub namespace: Option<String>,
    /// Of this agent.
    pub agent: Option<String>,
}

impl QuotaFilter {
    /// Whether a limit is meant.
    #[must_use]
    pub fn covers(&self, key: &QuotaKey) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.policy, &key.policy) && is(&self.namespace, &key.namespace) && is(&self.agent, &key.agent)
    }
}

/// Quotas.
#[async_trait]
pub trait Quotas: Send + Sync {
    /// Takes a lot.
    async fn lease_quota(&self, request: QuotaRequest) -> StoreResult<QuotaLot>;

    /// Gives back what was not used of a lot; repeating it gives nothing back twice.
    async fn return_quota(&self, key: QuotaKey, lease_id: &str, unused: u32) -> StoreResult<()>;

    /// The lots that were taken out of a window in the last minute.
    async fn taken_lots(&self, key: &QuotaKey) -> StoreResult<Vec<TakenLot>>;

    /// Counts lots that were given out elsewhere, unless they are known here.
    async fn carry_lots(&self, key: &QuotaKey, lots: &[TakenLot]) -> StoreResult<()>;

    /// What is used.
    async fn quota_uses(&self, filter: &QuotaFilter) -> StoreResult<Vec<QuotaUse>>;

    /// Sets counters back to nothing; answers how many.
    async fn reset_quotas(&self, filter: &QuotaFilter, act: Act) -> StoreResult<u64>;
}
