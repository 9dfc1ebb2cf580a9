//! What the desired state says of limits, and how much of one is given out at a time.

use proto::body;

use crate::snapshot::Hub;
use crate::store::quotas::{QuotaKey, QuotaKind};

/// The limit by the policy in force, where it is known here.
#[must_use]
pub fn limit(hub: &Hub, key: &QuotaKey) -> Option<u64> {
    let entry = hub.resource(body::POLICY, &key.policy)?;
    let policy: Limits = serde_json::from_slice(entry.body()).ok()?;
    let limit = policy.rate_limit?;
    match key.kind {
        QuotaKind::PerMinute => limit.max_per_minute,
        QuotaKind::Total => limit.max_total,
    }
}

/// What matters here of a policy's sent form.
#[derive(serde::Deserialize)]
struct Limits {
    rate_limit: Option<RateLimit>,
}

#[derive(serde::Deserialize)]
struct RateLimit {
    max_per_minute: Option<u64>,
    max_total: Option<u64>,
}

/// How much of a limit one lease may take: of a window at most a tenth.
#[must_use]
pub fn lot(kind: QuotaKind, want: u32, limit: u64) -> u32 {
    let most = match kind {
        QuotaKind::PerMinute => limit / 10,
        QuotaKind::Total => limit,
    };
    want.min(u32::try_from(most.max(1)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lot_is_at_most_a_tenth_of_a_window_and_at_least_one_call() {
        assert_eq!(lot(QuotaKind::PerMinute, 50, 100), 10);
        assert_eq!(lot(QuotaKind::PerMinute, 5, 100), 5);
        assert_eq!(lot(QuotaKind::PerMinute, 5, 3), 1);
        assert_eq!(lot(QuotaKind::Total, 50, 100), 50);
    }
}
