//! Approvals: asking, waiting, claiming, cancelling.

mod feed;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::v1;
use proto::v1::approvals_client::ApprovalsClient as Remote;
use tonic::{Code, Status};

use super::Revision;
use super::auth::{self, Authenticated, CALL_LIMIT};

pub use policy::approval::ApprovalStatus;

pub(super) use feed::{Feed, FeedStream};

/// How often a call is tried again when the control plane does not answer.
const ATTEMPTS: u32 = 4;

/// One approval as the control plane last stated it.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// Random hex.
    pub id: String,
    /// Where it stands.
    pub status: ApprovalStatus,
    /// Pending: its timeout; approved: the end of its time to live. Unix microseconds by the database's clock.
    pub expires_at: i64,
    /// Who answered.
    pub resolved_by: String,
    /// By which way the answer came.
    pub resolved_via: String,
    /// Why.
    pub reasoning: String,
    /// How sure the answerer was, 0 to 1.
    pub confidence: f64,
    /// When it was opened, Unix microseconds by the database's clock.
    pub created_at: i64,
    /// When it was answered; 0: not yet.
    pub resolved_at: i64,
    /// Already taken by a call.
    pub consumed: bool,
    /// Position in the feed of events.
    pub(super) cursor: u64,
}

impl Approval {
    fn from_wire(state: v1::ApprovalState) -> Result<Self, ApprovalError> {
        use v1::approval_state::Status as Wire;
        let status = match Wire::try_from(state.status) {
            Ok(Wire::Pending) => ApprovalStatus::Pending,
            Ok(Wire::Approved) => ApprovalStatus::Approved,
            Ok(Wire::Denied) => ApprovalStatus::Denied,
            Ok(Wire::Timeout) => ApprovalStatus::Timeout,
            Ok(Wire::Cancelled) => ApprovalStatus::Cancelled,
            Ok(Wire::Expired) => ApprovalStatus::Expired,
            Ok(Wire::Unspecified) | Err(_) => {
                return Err(ApprovalError::Unavailable {
                    reason: format!("the control plane stated the unknown status {}", state.status),
                });
            }
        };
        Ok(Self {
            id: state.id,
            status,
            expires_at: state.expires_at,
            resolved_by: state.resolved_by,
            resolved_via: state.resolved_via,
            reasoning: state.reasoning,
            confidence: state.confidence,
            created_at: state.created_at,
            resolved_at: state.resolved_at,
            consumed: state.consumed,
            cursor: state.cursor,
        })
    }
}

/// What one approval is bound to: equal bindings are the same question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// The agent.
    pub agent: String,
    /// The verified user; empty: none.
    pub user: String,
    /// Full tool name.
    pub tool: String,
    /// The tool's fingerprint.
    pub fingerprint: [u8; 32],
    /// Keyed digest of the canonical arguments.
    pub arguments_digest: [u8; 32],
    /// Id of the key of the digest.
    pub digest_key_id: String,
    /// The session that the client named; empty: none.
    pub session: String,
}

impl Binding {
    fn to_wire(&self) -> v1::Binding {
        v1::Binding {
            agent: self.agent.clone(),
            user: self.user.clone(),
            tool: self.tool.clone(),
            fingerprint: Bytes::copy_from_slice(&self.fingerprint),
            arguments_digest: Bytes::copy_from_slice(&self.arguments_digest),
            digest_key_id: self.digest_key_id.clone(),
            session: self.session.clone(),
        }
    }
}

/// A question to people about one exact call.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Id of the call.
    pub call_id: String,
    /// What the answer will be bound to.
    pub binding: Binding,
    /// Redacted arguments, exact JSON text.
    pub params: Bytes,
    /// JSON of the call's classification.
    pub classification: Bytes,
    /// Name of the policy whose rule asks.
    pub policy_rule: String,
    /// Index of the rule.
    pub rule_index: u32,
    /// The revision that the call was decided at.
    pub revision: Revision,
    /// The rule's message.
    pub message: String,
    /// The arguments hold phrases that are used to steer reviewers.
    pub injection_risk: bool,
    /// What the call touches.
    pub resources: Vec<String>,
    /// Identity strength: `verified`, `bound`, `asserted`, `anonymous`.
    pub identity: String,
    /// Floors that ask for a person, by name.
    pub floors: Vec<String>,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The approval is this call's alone. Decide again at this revision and stop sequence or later before forwarding
    /// ([`super::Control::caught_up`]).
    Claimed {
        /// Desired state that the claim was checked against.
        revision: Revision,
        /// Stops that the claim was checked against.
        stop_sequence: u64,
        /// The approval, consumed.
        approval: Approval,
    },
    /// It is not; the call does not run.
    Refused {
        /// From the closed list of `Refusal.code`: `stopped`, `denied_by_policy`, `already_claimed`, `expired`, `not_found`, …
        code: String,
        /// For people.
        message: String,
    },
}

/// Why there is no answer about an approval. The call does not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    /// The control plane does not answer.
    #[error("approvals are not available: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
    },
    /// The control plane refuses.
    #[error("the control plane refuses: {message}")]
    Refused {
        /// From the closed list of `Refusal.code`, or the gRPC code.
        code: String,
        /// For people.
        message: String,
    },
    /// As many calls wait as are allowed.
    #[error("too many calls wait for approvals; try again later")]
    TooManyWaiters,
}

impl ApprovalError {
    fn from_status(status: &Status) -> Self {
        match status.code() {
            Code::Unavailable | Code::Unknown | Code::DeadlineExceeded | Code::Cancelled | Code::Internal => {
                Self::Unavailable {
                    reason: status.message().to_owned(),
                }
            }
            code => Self::Refused {
                code: auth::refusal_code(status).unwrap_or_else(|| format!("{code:?}")),
                message: status.message().to_owned(),
            },
        }
    }
}

/// The client of the approvals service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ApprovalsClient {
    remote: Remote<Authenticated>,
    feed: Arc<Feed>,
}

impl ApprovalsClient {
    pub(super) fn new(channel: Authenticated, feed: Arc<Feed>) -> Self {
        Self {
            remote: Remote::new(channel),
            feed,
        }
    }

    pub(super) fn feed(&self) -> Arc<Feed> {
        self.feed.clone()
    }

    /// Opens an approval, or joins one that is pending, or approved and not consumed, for the same binding.
    ///
    /// # Errors
    /// The control plane does not answer, or refuses.
    pub async fn open(&self, question: Question) -> Result<Approval, ApprovalError> {
        let request = v1::OpenApprovalRequest {
            call_id: question.call_id,
            binding: Some(question.binding.to_wire()),
            params: question.params,
            classification: question.classification,
            policy_rule: question.policy_rule,
            rule_index: question.rule_index,
            revision: Some(question.revision.into()),
            message: question.message,
            injection_risk: question.injection_risk,
            resources: question.resources,
            identity: question.identity,
            floors: question.floors,
        };
        // Opening is idempotent: an equal binding joins what the lost attempt opened.
        let state = retried(|| async { self.remote.clone().open(bounded(request.clone())).await }).await?;
        Approval::from_wire(state)
    }

    /// Waits until the approval is no longer pending, at most for `limit`; then it answers with the last known state.
    ///
    /// # Errors
    /// Too many calls wait.
    pub async fn wait(&self, approval: &Approval, limit: Duration) -> Result<Approval, ApprovalError> {
        if approval.status != ApprovalStatus::Pending {
            return Ok(approval.clone());
        }
        self.feed.wait(approval, limit).await
    }

    /// Takes an approved approval for one call, once. Repeating it for the same call answers the same.
    ///
    /// # Errors
    /// The control plane does not answer: whether the claim was made is not known, and the call does not run.
    pub async fn claim(&self, id: &str, call_id: &str, binding: &Binding) -> Result<Claim, ApprovalError> {
        let request = v1::ClaimRequest {
            id: id.to_owned(),
            call_id: call_id.to_owned(),
            binding: Some(binding.to_wire()),
        };
        let response =
            retried(|| async { self.remote.clone().claim(bounded(request.clone())).await }).await?;
        let malformed = || ApprovalError::Unavailable {
            reason: "the control plane's answer to the claim is incomplete".to_owned(),
        };
        match response.outcome.ok_or_else(malformed)? {
            v1::claim_response::Outcome::Claimed(claimed) => Ok(Claim::Claimed {
                revision: claimed.revision.ok_or_else(malformed)?.into(),
                stop_sequence: claimed.stop_sequence,
                approval: Approval::from_wire(claimed.approval.ok_or_else(malformed)?)?,
            }),
            v1::claim_response::Outcome::Refused(refusal) => Ok(Claim::Refused {
                code: refusal.code,
                message: refusal.message,
            }),
        }
    }

    /// The client that asked cancelled the call.
    ///
    /// # Errors
    /// The control plane does not answer, or refuses.
    pub async fn cancel(&self, id: &str, call_id: &str) -> Result<Approval, ApprovalError> {
        let request = v1::CancelApprovalRequest {
            id: id.to_owned(),
            call_id: call_id.to_owned(),
        };
        let state = retried(|| async { self.remote.clone().cancel(bounded(request.clone())).await }).await?;
        Approval::from_wire(state)
    }
}

fn bounded<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(CALL_LIMIT);
    request
}

/// Calls, and calls again a few times when the control plane does not answer.
async fn retried<T, F>(mut call: impl FnMut() -> F) -> Result<T, ApprovalError>
where
    F: Future<Output = Result<tonic::Response<T>, Status>>,
{
    let mut backoff = net::backoff::Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    let mut attempt = 1;
    loop {
        let error = match call().await {
            Ok(response) => return Ok(response.into_inner()),
            Err(status) => ApprovalError::from_status(&status),
        };
        if attempt >= ATTEMPTS || !matches!(error, ApprovalError::Unavailable { .. }) {
            return Err(error);
        }
        attempt += 1;
        backoff.wait().await;
    }
}
