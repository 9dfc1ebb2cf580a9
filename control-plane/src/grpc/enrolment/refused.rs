//! Enrolments that were refused, on the record.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use proto::v1::enrol_request::Proof;
use serde_json::json;
use tonic::{Code, Status};

use crate::core::Core;
use crate::store::Act;

const MINUTE: Duration = Duration::from_secs(60);
/// Refusals that get a record of their own in a minute: who can reach the port must not be able to fill the chain.
const IN_A_MINUTE: u32 = 10;
/// Bytes of a reason that are kept: a part of it can be the caller's.
const REASON: usize = 512;

/// Which refusals were recorded of late.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    begun: Option<Duration>,
    recorded: u32,
    left_out: u64,
}

impl Refusals {
    /// Counts a refusal. `Some`: it is to be recorded, with how many were left out since the last that was.
    fn admit(&self, now: Duration) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window
            .begun
            .is_none_or(|begun| now.saturating_sub(begun) >= MINUTE)
        {
            window.begun = Some(now);
            window.recorded = 0;
        }
        if window.recorded >= IN_A_MINUTE {
            window.left_out += 1;
            return None;
        }
        window.recorded += 1;
        Some(std::mem::take(&mut window.left_out))
    }
}

/// Counts and records a refusal, if what was shown is the reason for it. It stays refused where it cannot be recorded.
pub(super) async fn keep(core: &Core, proof: &Proof, status: &Status) {
    let is_of_the_proof = matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition | Code::NotFound
    );
    if !is_of_the_proof {
        return;
    }
    core.metrics.enrolments_refused.inc();
    let Some(left_out) = core.refusals.admit(core.clock.boot_now()) else {
        return;
    };
    let shown = match proof {
        Proof::JoinToken(_) => "join token",
        Proof::Resume(_) => "renewal secret",
        Proof::ServiceAccountToken(_) => "service-account token",
    };
    let reason = short(status.message());
    tracing::warn!(shown, reason, left_out, "an enrolment was refused");
    let act = Act::new(
        "mesh.sidecar_refuse",
        "system",
        json!({"shown": shown, "reason": reason, "left_out": left_out}),
    );
    if let Err(error) = core.store.append_act(act).await {
        tracing::warn!(%error, "the refusal of an enrolment is not recorded");
    }
}

fn short(text: &str) -> String {
    let end = text.floor_char_boundary(REASON);
    let kept = text.get(..end).unwrap_or_default();
    kept.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_refusals_some_are_recorded_and_the_others_counted() {
        let refusals = Refusals::default();
        let at = Duration::from_secs;
        for _ in 0..IN_A_MINUTE {
            assert_eq!(refusals.admit(at(5)), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(refusals.admit(at(64)), None);
        }
        assert_eq!(refusals.admit(at(65)), Some(7));
        assert_eq!(refusals.admit(at(65)), Some(0));
    }

    #[test]
    fn a_reason_is_cut_at_a_character_and_has_no_controls() {
        let text = format!("a\n{}", "ä".repeat(600));
        let kept = short(&text);
        assert!(kept.len() <= REASON && kept.starts_with("a ä"), "{kept}");
    }
}
