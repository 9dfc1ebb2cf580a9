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

/// Quotas.
#[async_trait]
pub trait Quotas: Send + Sync {
    /// Takes a lot.
    async fn lease_quota(&self, request: QuotaRequest) -> StoreResult<QuotaLot>;

    /// Gives back what was not used of a lot; repeating it gives nothing back twice.
    async fn return_quota(&self, key: QuotaKey, lease_id: &str, unused: u32) -> StoreResult<()>;

    /// What is used, of one agent or of all.
    async fn quota_uses(&self, agent: Option<&str>) -> StoreResult<Vec<QuotaUse>>;

    /// Sets counters back to nothing. Empty: any.
    async fn reset_quotas(&self, policy: Option<&str>, agent: Option<&str>, act: Act) -> StoreResult<u64>;
}
