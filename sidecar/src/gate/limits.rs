//! Limits of policies: attempts per minute for every call, totals for what is forwarded.

use chain::vocabulary::Reason;

use super::Gate;
use super::refusal::Refusal;
use super::subject::Subject;
use crate::control::Snapshot;
use crate::control::quotas::{Limited, Reservation};

/// Calls reserved out of totals. Dropped without [`Reserved::spend`], they are given back.
#[must_use = "dropped, it is given back"]
#[derive(Debug, Default)]
pub(super) struct Reserved(Vec<Reservation>);

impl Reserved {
    /// The call is forwarded.
    pub(super) fn spend(self) {
        for reservation in self.0 {
            reservation.spend();
        }
    }
}

impl Gate {
    /// Counts the attempt in every window that applies.
    pub(super) async fn within_burst(&self, view: &Snapshot, subject: &Subject<'_>) -> Result<(), Refusal> {
        let agent = &subject.identity.agent;
        for (policy, limit) in view.policies.limits_for(&subject.namespace, agent) {
            if let Some(per_minute) = limit.max_per_minute {
                let attempt =
                    self.control
                        .quotas()
                        .attempt(policy.as_str(), agent.as_str(), per_minute.get());
                Box::pin(attempt)
                    .await
                    .map_err(|limited| rate_limited(&limited))?;
            }
        }
        Ok(())
    }

    /// Reserves one call out of every total that applies.
    pub(super) async fn reserve_total(
        &self,
        view: &Snapshot,
        subject: &Subject<'_>,
    ) -> Result<Reserved, Refusal> {
        let agent = &subject.identity.agent;
        let mut reserved = Reserved::default();
        for (policy, limit) in view.policies.limits_for(&subject.namespace, agent) {
            if let Some(total) = limit.max_total {
                let reservation = self
                    .control
                    .quotas()
                    .reserve(policy.as_str(), agent.as_str(), total.get());
                reserved.0.push(
                    Box::pin(reservation)
                        .await
                        .map_err(|limited| rate_limited(&limited))?,
                );
            }
        }
        Ok(reserved)
    }

    /// Looks whether the totals have room, before a person is asked: what is reserved goes back at once.
    pub(super) async fn peek_total(&self, view: &Snapshot, subject: &Subject<'_>) -> Result<(), Refusal> {
        self.reserve_total(view, subject).await.map(drop)
    }
}

fn rate_limited(limited: &Limited) -> Refusal {
    let refusal = Refusal::new(Reason::RateLimited, limited.to_string());
    match limited {
        Limited::Reached {
            retry_after: Some(wait),
            ..
        } => refusal.retry_after(*wait),
        Limited::Reached {
            retry_after: None, ..
        }
        | Limited::Unavailable { .. } => refusal,
    }
}
