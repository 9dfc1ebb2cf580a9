//! The life of one approval, as a pure state machine. Times are microseconds of the database's clock.
//!
//! `pending -> approved | denied | timeout | cancelled`; `approved -> expired | cancelled` while it is not consumed;
//! consumed at most once, by one call.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStatus {
    /// Nobody has answered.
    Pending,
    /// Somebody said yes; it may be consumed once.
    Approved,
    /// Somebody said no, or a stop did.
    Denied,
    /// Nobody answered in time.
    Timeout,
    /// The client cancelled, or what it was granted against is gone.
    Cancelled,
    /// It was approved and not used in time.
    Expired,
}

impl ApprovalStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Approved,
        Self::Denied,
        Self::Timeout,
        Self::Cancelled,
        Self::Expired,
    ];

    /// The status's name in answers and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for ApprovalStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl std::str::FromStr for ApprovalStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| UnknownStatus(text.to_owned()))
    }
}

/// The text names no status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "approval status \"{0}\" is unknown; valid are pending, approved, denied, timeout, cancelled, expired"
)]
pub struct UnknownStatus(pub String);

/// Everything about an approval that its transitions look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalState {
    /// Where it stands.
    pub status: ApprovalStatus,
    /// While pending: when it times out. Once approved: when it expires.
    pub expires_at: i64,
    /// Which call consumed it, and when.
    pub consumed: Option<Consumption>,
}

/// The one use of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumption {
    /// The id of the call that runs.
    pub call: Arc<str>,
    /// When it was claimed.
    pub at: i64,
}

/// What happens to an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalEvent {
    /// A person, a supervisor or a precedent says yes; it may be used for so many microseconds.
    Approve {
        /// Microseconds, from now.
        usable_for: i64,
    },
    /// Somebody says no.
    Deny,
    /// The client cancelled.
    Cancel,
    /// A call wants to run on it.
    Claim {
        /// The call's id: the same one may claim again.
        call: Arc<str>,
    },
    /// Time has passed.
    Tick,
    /// A stop covers the call.
    Stop,
    /// Commits may have been lost: what was approved and not used no longer counts.
    NewGeneration,
}

/// Why an event is refused. The state stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no longer pending.
    #[error("the approval is already {status}")]
    AlreadyResolved {
        /// Where it stands.
        status: ApprovalStatus,
    },
    /// It is not approved, so nothing can run on it.
    #[error("the approval is {status}, not approved")]
    NotApproved {
        /// Where it stands.
        status: ApprovalStatus,
    },
    /// Another call ran on it.
    #[error("the approval was already used by another call; ask for a new one")]
    AlreadyConsumed,
    /// Its time is over; the next [`ApprovalEvent::Tick`] says so in the status.
    #[error("the approval's time is over")]
    TooLate,
}

impl ApprovalState {
    /// A new approval that times out at `expires_at`.
    pub fn pending(expires_at: i64) -> Self {
        Self {
            status: ApprovalStatus::Pending,
            expires_at,
            consumed: None,
        }
    }

    /// Whether nothing can happen to it any more.
    pub fn is_final(&self) -> bool {
        match self.status {
            ApprovalStatus::Pending => false,
            ApprovalStatus::Approved => self.consumed.is_some(),
            ApprovalStatus::Denied
            | ApprovalStatus::Timeout
            | ApprovalStatus::Cancelled
            | ApprovalStatus::Expired => true,
        }
    }
}

/// The state after an event at `now`.
///
/// # Errors
/// When the event cannot happen in this state; the state then stays as it is.
pub fn transition(state: &ApprovalState, event: &ApprovalEvent, now: i64) -> Result<ApprovalState, Refused> {
    match event {
        ApprovalEvent::Approve { usable_for } => {
            open(state, now)?;
            let expires_at = now.saturating_add(*usable_for);
            Ok(ApprovalState {
                status: ApprovalStatus::Approved,
                expires_at,
                consumed: None,
            })
        }
        ApprovalEvent::Deny => {
            open(state, now)?;
            Ok(with(state, ApprovalStatus::Denied))
        }
        ApprovalEvent::Cancel if state.is_final() => Err(Refused::AlreadyResolved { status: state.status }),
        ApprovalEvent::Cancel => Ok(with(state, ApprovalStatus::Cancelled)),
        ApprovalEvent::Claim { call } => claim(state, call, now),
        ApprovalEvent::Tick if state.is_final() || now < state.expires_at => Ok(state.clone()),
        ApprovalEvent::Tick if state.status == ApprovalStatus::Pending => {
            Ok(with(state, ApprovalStatus::Timeout))
        }
        ApprovalEvent::Tick => Ok(with(state, ApprovalStatus::Expired)),
        ApprovalEvent::Stop | ApprovalEvent::NewGeneration if state.is_final() => Ok(state.clone()),
        ApprovalEvent::Stop if state.status == ApprovalStatus::Pending => {
            Ok(with(state, ApprovalStatus::Denied))
        }
        ApprovalEvent::NewGeneration if state.status == ApprovalStatus::Pending => Ok(state.clone()),
        ApprovalEvent::Stop | ApprovalEvent::NewGeneration => Ok(with(state, ApprovalStatus::Cancelled)),
    }
}

fn with(state: &ApprovalState, status: ApprovalStatus) -> ApprovalState {
    ApprovalState {
        status,
        ..state.clone()
    }
}

/// Whether somebody may still answer.
fn open(state: &ApprovalState, now: i64) -> Result<(), Refused> {
    if state.status != ApprovalStatus::Pending {
        return Err(Refused::AlreadyResolved { status: state.status });
    }
    if now >= state.expires_at {
        Err(Refused::TooLate)
    } else {
        Ok(())
    }
}

fn claim(state: &ApprovalState, call: &Arc<str>, now: i64) -> Result<ApprovalState, Refused> {
    if state.status != ApprovalStatus::Approved {
        return Err(Refused::NotApproved { status: state.status });
    }
    match &state.consumed {
        Some(consumed) if consumed.call == *call => Ok(state.clone()),
        Some(_) => Err(Refused::AlreadyConsumed),
        None if now >= state.expires_at => Err(Refused::TooLate),
        None => {
            let consumed = Some(Consumption {
                call: Arc::clone(call),
                at: now,
            });
            Ok(ApprovalState {
                consumed,
                ..state.clone()
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(call: &str) -> ApprovalEvent {
        ApprovalEvent::Claim {
            call: Arc::from(call),
        }
    }

    #[test]
    fn an_approved_call_runs_once_and_its_claim_is_idempotent() {
        let pending = ApprovalState::pending(100);
        assert_eq!(
            transition(&pending, &claim("a"), 1),
            Err(Refused::NotApproved {
                status: ApprovalStatus::Pending
            })
        );
        let approved = transition(&pending, &ApprovalEvent::Approve { usable_for: 50 }, 10).unwrap();
        let consumed = transition(&approved, &claim("a"), 59).unwrap();
        assert_eq!(
            consumed.consumed,
            Some(Consumption {
                call: Arc::from("a"),
                at: 59
            })
        );
        assert_eq!(transition(&consumed, &claim("a"), 1_000), Ok(consumed.clone()));
        assert_eq!(
            transition(&consumed, &claim("b"), 60),
            Err(Refused::AlreadyConsumed)
        );
        for event in [
            ApprovalEvent::Tick,
            ApprovalEvent::Stop,
            ApprovalEvent::NewGeneration,
        ] {
            assert_eq!(transition(&consumed, &event, 1_000), Ok(consumed.clone()));
        }
    }

    #[test]
    fn nobody_can_answer_after_the_deadline() {
        let pending = ApprovalState::pending(100);
        assert_eq!(
            transition(&pending, &ApprovalEvent::Approve { usable_for: 1 }, 100),
            Err(Refused::TooLate)
        );
        let late = transition(&pending, &ApprovalEvent::Tick, 100).unwrap();
        assert_eq!(late.status, ApprovalStatus::Timeout);
        assert_eq!(
            transition(&late, &ApprovalEvent::Deny, 101),
            Err(Refused::AlreadyResolved {
                status: ApprovalStatus::Timeout
            })
        );
    }

    #[test]
    fn an_approval_that_is_not_used_expires() {
        let approved = transition(
            &ApprovalState::pending(100),
            &ApprovalEvent::Approve { usable_for: 50 },
            0,
        )
        .unwrap();
        assert_eq!(transition(&approved, &claim("a"), 50), Err(Refused::TooLate));
        assert_eq!(
            transition(&approved, &ApprovalEvent::Tick, 50).unwrap().status,
            ApprovalStatus::Expired
        );
    }

    #[test]
    fn a_stop_denies_what_is_pending_and_cancels_what_is_approved() {
        let pending = ApprovalState::pending(100);
        assert_eq!(
            transition(&pending, &ApprovalEvent::Stop, 1).unwrap().status,
            ApprovalStatus::Denied
        );
        let approved = transition(&pending, &ApprovalEvent::Approve { usable_for: 50 }, 0).unwrap();
        assert_eq!(
            transition(&approved, &ApprovalEvent::Stop, 1).unwrap().status,
            ApprovalStatus::Cancelled
        );
    }

    #[test]
    fn a_new_generation_cancels_what_is_approved_and_keeps_what_is_pending() {
        let pending = ApprovalState::pending(100);
        assert_eq!(
            transition(&pending, &ApprovalEvent::NewGeneration, 1),
            Ok(pending.clone())
        );
        let approved = transition(&pending, &ApprovalEvent::Approve { usable_for: 50 }, 0).unwrap();
        let after = transition(&approved, &ApprovalEvent::NewGeneration, 1).unwrap();
        assert_eq!(after.status, ApprovalStatus::Cancelled);
    }

    fn event() -> impl Strategy<Value = ApprovalEvent> {
        prop_oneof![
            (1..40_i64).prop_map(|usable_for| ApprovalEvent::Approve { usable_for }),
            Just(ApprovalEvent::Deny),
            Just(ApprovalEvent::Cancel),
            prop_oneof![Just("a"), Just("b")].prop_map(claim),
            Just(ApprovalEvent::Tick),
            Just(ApprovalEvent::Stop),
            Just(ApprovalEvent::NewGeneration),
        ]
    }

    proptest! {
        #[test]
        fn no_order_of_events_consumes_twice_or_leaves_a_final_state(
            events in prop::collection::vec((event(), 0..10_i64), 0..20)
        ) {
            let mut state = ApprovalState::pending(30);
            let mut now = 0;
            for (event, passed) in events {
                now += passed;
                let Ok(next) = transition(&state, &event, now) else { continue };
                if state.is_final() {
                    prop_assert_eq!(&next, &state);
                }
                if let Some(consumed) = &next.consumed {
                    prop_assert_eq!(next.status, ApprovalStatus::Approved);
                    prop_assert!(consumed.at < next.expires_at);
                    prop_assert!(state.consumed.is_none() || state.consumed == next.consumed);
                }
                state = next;
            }
        }
    }
}
