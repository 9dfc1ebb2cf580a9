//! Asking people: open or join the approval, wait, and claim it for exactly this call.

use std::time::Duration;

use bytes::Bytes;
use chain::vocabulary::Reason;
use policy::decide::Decision;
use tools::json::canonical;

use super::Gate;
use super::call::{CallRequest, PendingApproval};
use super::loops::LoopKey;
use super::pass::Stopped;
use super::refusal::Refusal;
use super::subject::Subject;
use super::trail::Trail;
use super::verdict::NeedsPerson;
use crate::agent::mcp::splice::with_member;
use crate::control::Revision;
use crate::control::approvals::{Approval, ApprovalError, ApprovalStatus, Binding, Claim, Question};
use crate::control::redact::Redactor;

/// How long past its end an approval is waited for, in case word of its end is late.
const GRACE: Duration = Duration::from_secs(10);
/// How long a claim's view is waited for.
const CATCH_UP: Duration = Duration::from_secs(10);

/// An approved approval, not claimed yet.
#[derive(Debug)]
pub(super) struct Approved {
    approval: Approval,
    binding: Binding,
    waited: Duration,
}

/// Proof that the approval is this call's alone.
#[derive(Debug)]
pub(super) struct Claimed(());

impl Gate {
    /// Opens or joins the approval for this exact call, and waits for people as long as the caller does.
    pub(super) async fn approved(
        &self,
        _proof: NeedsPerson,
        subject: &Subject<'_>,
        decision: &Decision,
        request: &mut CallRequest<'_>,
        trail: &mut Trail,
        key: LoopKey,
    ) -> Result<Approved, Stopped> {
        let binding = self.binding(subject)?;
        let question = self.question(subject, decision, trail, &binding);
        let approvals = self.control.approvals();
        let mut approval = tokio::select! {
            biased;
            opened = approvals.open(question) => opened.map_err(|error| unavailable(&error))?,
            () = request.cancel.cancelled() => return Err(Stopped::Cancelled),
        };
        let began = self.clock.boot_now();
        trail.asked(&approval, Duration::ZERO);
        if approval.status == ApprovalStatus::Pending {
            self.loops.waits(key, began.saturating_add(self.left(&approval)));
            let left = self.left(&approval);
            let mut limit = request.patience.wait.map_or(left, |wait| wait.min(left));
            if let Some(told) = request.patience.on_pending.take_if(|_| !limit.is_zero()) {
                let waits = told(PendingApproval {
                    approval: approval.id.clone(),
                    call: trail.id.clone(),
                    trace_id: trail.trace.trace_id.clone(),
                    summary: trail.summary.clone(),
                });
                limit = waits.wait.map_or(limit, |wait| wait.min(limit));
                if waits.origin.is_some() {
                    request.origin = waits.origin;
                }
            }
            approval = tokio::select! {
                biased;
                waited = approvals.wait(&approval, limit) => waited.map_err(|error| unavailable(&error))?,
                () = request.cancel.cancelled() => {
                    return Err(self.withdraw(&approval, trail, key).await);
                }
                () = self.shutdown.cancelled() => approval,
            };
        }
        let waited = self.clock.since(began);
        trail.asked(&approval, waited);
        if approval.status != ApprovalStatus::Pending {
            self.loops.no_longer_waits(key);
        }
        match refused(subject, &approval) {
            Some(refusal) => Err(Stopped::Refused(refusal)),
            None => Ok(Approved {
                approval,
                binding,
                waited,
            }),
        }
    }

    /// Takes the approval for this call, and waits until the view here is the one that the claim was checked against.
    pub(super) async fn claim(&self, approved: Approved, trail: &mut Trail) -> Result<Claimed, Refusal> {
        let Approved {
            approval,
            binding,
            waited,
        } = approved;
        let claim = self
            .control
            .approvals()
            .claim(&approval.id, &trail.id, &binding)
            .await
            .map_err(|error| unavailable(&error))?;
        let (revision, stop_sequence) = match claim {
            Claim::Claimed {
                revision,
                stop_sequence,
                approval,
            } => {
                net::crash::passes(net::crash::Point::ApprovalClaimed);
                trail.asked(&approval, waited);
                (revision, stop_sequence)
            }
            Claim::Refused { code, message } => return Err(claim_refused(&code, &message)),
        };
        self.caught_up(revision, stop_sequence).await?;
        Ok(Claimed(()))
    }

    async fn caught_up(&self, revision: Revision, stop_sequence: u64) -> Result<(), Refusal> {
        if self.control.caught_up(revision, stop_sequence, CATCH_UP).await {
            return Ok(());
        }
        Err(Refusal::new(
            Reason::Stale,
            format!(
                "the sidecar did not reach revision {revision}, which the approval was claimed at, in time"
            ),
        ))
    }

    /// The client cancelled: the question is taken back.
    async fn withdraw(&self, approval: &Approval, trail: &mut Trail, key: LoopKey) -> Stopped {
        self.loops.no_longer_waits(key);
        match self.control.approvals().cancel(&approval.id, &trail.id).await {
            Ok(cancelled) => trail.asked(&cancelled, Duration::ZERO),
            Err(error) => {
                tracing::debug!(%error, approval = approval.id, "an approval could not be taken back")
            }
        }
        Stopped::Cancelled
    }

    /// Until the pending approval ends by the database's clock, and a little longer.
    fn left(&self, approval: &Approval) -> Duration {
        let left = approval.expires_at.saturating_sub(self.control.database_now());
        Duration::from_micros(u64::try_from(left).unwrap_or_default()).saturating_add(GRACE)
    }

    /// What an approval of this call is bound to.
    pub(super) fn binding(&self, subject: &Subject<'_>) -> Result<Binding, Refusal> {
        let Some(identity) = self.control.identity() else {
            return Err(Refusal::new(
                Reason::ApprovalUnavailable,
                "the sidecar has not enrolled, so nobody can be asked",
            ));
        };
        let canonical = subject.arguments.map_or_else(|| b"{}".to_vec(), canonical);
        let session = subject.session.as_ref().filter(|session| session.is_named);
        Ok(Binding {
            agent: subject.identity.agent.to_string(),
            user: subject
                .identity
                .user
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            tool: subject.tool.name.to_string(),
            fingerprint: *subject.tool.fingerprint.as_bytes(),
            arguments_digest: identity.digest_key.digest(&canonical),
            digest_key_id: identity.digest_key.id().to_owned(),
            session: session.map(|session| session.id.to_string()).unwrap_or_default(),
        })
    }

    fn question(
        &self,
        subject: &Subject<'_>,
        decision: &Decision,
        trail: &Trail,
        binding: &Binding,
    ) -> Question {
        // The approver sees the arguments whole but for secrets, whatever is recorded of them.
        let redactor = self.redactor(&self.control.snapshot());
        let params = subject.arguments.map(|node| redactor.redacted(node));
        let params = match params {
            Some(params) => Bytes::copy_from_slice(params.as_bytes()),
            None => Bytes::from_static(b"{}"),
        };
        let rule = decision.rule.as_ref();
        Question {
            call_id: trail.id.clone(),
            binding: binding.clone(),
            params: with_argv(params, subject, &redactor),
            classification: serde_json::to_vec(subject.classification().as_ref())
                .unwrap_or_default()
                .into(),
            policy_rule: rule.map(|rule| rule.policy.to_string()).unwrap_or_default(),
            rule_index: rule.map_or(0, |rule| u32::try_from(rule.index).unwrap_or(u32::MAX)),
            revision: trail.summary.revision,
            message: decision.message.as_deref().unwrap_or_default().to_owned(),
            injection_risk: false,
            resources: Vec::new(),
            identity: subject.identity.strength.as_str().to_owned(),
            floors: decision
                .floors
                .iter()
                .map(|floor| floor.source.to_string())
                .collect(),
        }
    }
}

/// Why an approval that is not approved lets nothing run.
fn refused(subject: &Subject<'_>, approval: &Approval) -> Option<Refusal> {
    let tool = &subject.tool.name;
    let by = if approval.resolved_by.is_empty() {
        "a person"
    } else {
        &approval.resolved_by
    };
    let because = if approval.reasoning.is_empty() {
        String::new()
    } else {
        format!(": {}", approval.reasoning)
    };
    let (reason, message) = match approval.status {
        ApprovalStatus::Approved => return None,
        ApprovalStatus::Pending => (
            Reason::ApprovalPending,
            format!(
                "{tool} needs the approval of a person, which is pending (approval {})",
                approval.id
            ),
        ),
        ApprovalStatus::Denied => (
            Reason::ApprovalDenied,
            format!("{by} has refused {tool}{because}"),
        ),
        ApprovalStatus::Timeout => (
            Reason::ApprovalTimeout,
            format!(
                "nobody answered the question about {tool} in time (approval {})",
                approval.id
            ),
        ),
        ApprovalStatus::Cancelled => (
            Reason::ApprovalCancelled,
            format!(
                "the approval for {tool} was cancelled (approval {}){because}",
                approval.id
            ),
        ),
        ApprovalStatus::Expired => (
            Reason::ApprovalExpired,
            format!(
                "the approval for {tool} was not used in time (approval {})",
                approval.id
            ),
        ),
    };
    Some(Refusal::new(reason, message))
}

/// What an approver sees of a program's call: the argument vector too, which is what runs.
fn with_argv(params: Bytes, subject: &Subject<'_>, redactor: &Redactor) -> Bytes {
    let Some(call) = subject.program_call() else {
        return params;
    };
    let argv = redactor.redacted_argv(&call.argv, subject.arguments);
    let argv = serde_json::to_vec(&argv).unwrap_or_default();
    with_member(&params, "argv", &argv).map_or(params, Bytes::from)
}

fn claim_refused(code: &str, message: &str) -> Refusal {
    let reason = match code {
        "stopped" => Reason::Stopped,
        "denied_by_policy" => Reason::Policy,
        "already_claimed" => Reason::ApprovalConsumed,
        "expired" => Reason::ApprovalExpired,
        _ => Reason::ApprovalCancelled,
    };
    Refusal::new(reason, format!("the approval could not be used: {message}"))
}

fn unavailable(error: &ApprovalError) -> Refusal {
    let reason = match error {
        ApprovalError::Refused { code, .. } if code == "stopped" => Reason::Stopped,
        ApprovalError::Refused { code, .. } if code == "denied_by_policy" => Reason::Policy,
        ApprovalError::Refused { code, .. } if code == "too_many_pending" => Reason::RateLimited,
        ApprovalError::Unavailable { .. } | ApprovalError::Refused { .. } | ApprovalError::TooManyWaiters => {
            Reason::ApprovalUnavailable
        }
    };
    Refusal::new(reason, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_questions_are_a_denial_that_says_so() {
        let refused = ApprovalError::Refused {
            code: "too_many_pending".into(),
            message: "100 questions of this agent wait for people".into(),
        };
        let refusal = unavailable(&refused);
        assert_eq!(refusal.reason, Reason::RateLimited);
        assert!(refusal.message.contains("100 questions"), "{}", refusal.message);
    }
}
