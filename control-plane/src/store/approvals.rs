//! Approvals: compare-and-set on the row plus an ordered feed of events. Deadlines are by the database's clock.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::v1;

use super::{
    error::StoreResult,
    types::{Act, Micros, Revision},
};

pub use policy::approval::ApprovalStatus;

fn wire(status: ApprovalStatus) -> v1::approval_state::Status {
    use v1::approval_state::Status;
    match status {
        ApprovalStatus::Pending => Status::Pending,
        ApprovalStatus::Approved => Status::Approved,
        ApprovalStatus::Denied => Status::Denied,
        ApprovalStatus::Timeout => Status::Timeout,
        ApprovalStatus::Cancelled => Status::Cancelled,
        ApprovalStatus::Expired => Status::Expired,
    }
}

/// What one approval is bound to, beside its namespace: equal bindings are the same question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Agent id.
    pub agent: String,
    /// User, or empty.
    pub user: String,
    /// Full tool name.
    pub tool: String,
    /// Of the tool.
    pub fingerprint: Vec<u8>,
    /// Keyed digest of the canonical arguments.
    pub arguments_digest: Vec<u8>,
    /// Id of the digest's key.
    pub digest_key_id: String,
    /// Session, or empty.
    pub session: String,
}

impl From<v1::Binding> for Binding {
    fn from(binding: v1::Binding) -> Self {
        Self {
            agent: binding.agent,
            user: binding.user,
            tool: binding.tool,
            fingerprint: binding.fingerprint.to_vec(),
            arguments_digest: binding.arguments_digest.to_vec(),
            digest_key_id: binding.digest_key_id,
            session: binding.session,
        }
    }
}

/// A question to be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalDraft {
    /// Of the sidecar.
    pub namespace: String,
    /// Sidecar id.
    pub sidecar: String,
    /// Id of the call that asks.
    pub call_id: String,
    /// What the answer holds for.
    pub binding: Binding,
    /// Arguments as an approver may see them (JSON).
    pub params: Bytes,
    /// Classification of the call (JSON).
    pub classification: Bytes,
    /// Policy of the deciding rule.
    pub policy_rule: String,
    /// Its index in the policy.
    pub rule_index: u32,
    /// Revision that the question was decided at.
    pub revision: Revision,
    /// Message of the rule.
    pub message: String,
    /// The arguments contain phrases that steer reviewers.
    pub injection_risk: bool,
    /// What the call touches, as far as known.
    pub resources: Vec<String>,
    /// `verified`, `bound`, `asserted`, `anonymous`.
    pub identity: String,
    /// Floors that asked for a person.
    pub floors: Vec<String>,
    /// How long it waits for an answer.
    pub timeout: Duration,
}

/// An approval as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// 32 hex digits, random.
    pub id: String,
    /// What was asked.
    pub asked: ApprovalDraft,
    /// Where it stands.
    pub status: ApprovalStatus,
    /// When it was asked.
    pub created_at: Micros,
    /// Pending: its timeout; approved: the end of its time to live.
    pub expires_at: Micros,
    /// When it left `pending`.
    pub resolved_at: Option<Micros>,
    /// By whom.
    pub resolved_by: String,
    /// Through what: `rest`, `console`, `cli`, `precedent`, `stop`, `system`, …
    pub resolved_via: String,
    /// The answerer's words.
    pub reasoning: String,
    /// The answerer's confidence, if said.
    pub confidence: Option<f64>,
    /// When a call took it.
    pub consumed_at: Option<Micros>,
    /// The call that took it; empty: none.
    pub consumed_by: String,
    /// Of its newest event.
    pub cursor: u64,
}

impl Approval {
    /// What sidecars are told of it.
    #[must_use]
    pub fn state(&self, database_time: Micros) -> v1::ApprovalState {
        v1::ApprovalState {
            id: self.id.clone(),
            status: wire(self.status).into(),
            expires_at: self.expires_at,
            resolved_by: self.resolved_by.clone(),
            resolved_via: self.resolved_via.clone(),
            reasoning: self.reasoning.clone(),
            confidence: self.confidence.unwrap_or_default(),
            created_at: self.created_at,
            resolved_at: self.resolved_at.unwrap_or_default(),
            consumed: self.consumed_at.is_some(),
            database_time,
            cursor: self.cursor,
        }
    }
}

/// What asking led to.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// A new approval is pending.
    New(Approval),
    /// The same question is pending, approved and unconsumed, or was denied by a person a short while ago.
    Joined(Approval),
    /// As many questions of this agent are pending as may be: nothing was opened.
    TooMany {
        /// How many.
        pending: u32,
    },
    /// A stop concerns the call: nothing was opened.
    Stopped {
        /// The stop's id.
        stop: String,
        /// The stop's reason.
        reason: String,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolution {
    /// Approved or denied.
    pub approve: bool,
    /// The proven identity of the answerer.
    pub by: String,
    /// Through what.
    pub via: String,
    /// Words.
    pub reasoning: String,
    /// Confidence, if said.
    pub confidence: Option<f64>,
    /// How long an approved one may be used.
    pub ttl: Duration,
}

/// A call that wants to use an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Approval id, whole.
    pub id: String,
    /// The sidecar's namespace.
    pub namespace: String,
    /// The call; repeating a claim with it answers the same.
    pub call_id: String,
    /// Must equal what was asked.
    pub binding: Binding,
}

/// What a claim led to.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// The call may run, once it has been decided again at `revision` or later.
    Claimed {
        /// The approval, consumed.
        approval: Box<Approval>,
        /// Of desired state, read in the claim's transaction.
        revision: Revision,
        /// Of the stops that were looked at.
        stop_sequence: u64,
        /// The database's clock.
        database_time: Micros,
    },
    /// It may not.
    Refused(ClaimRefusal),
}

/// Why a claim was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimRefusal {
    /// No such approval in the namespace, or for another binding.
    #[error("there is no such approval for this call")]
    NotFound,
    /// Another call took it.
    #[error("another call has used this approval")]
    AlreadyClaimed,
    /// Not approved: pending, or ended otherwise.
    #[error("the approval is {0}")]
    NotApproved(ApprovalStatus),
    /// A stop concerns the call.
    #[error("stop {stop} concerns this call: {reason}")]
    Stopped {
        /// The stop's id.
        stop: String,
        /// The stop's reason.
        reason: String,
    },
}

/// Which approvals to list. Everything empty: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApprovalFilter {
    /// Where it stands.
    pub status: Option<ApprovalStatus>,
    /// Literal.
    pub namespace: Option<String>,
    /// Glob.
    pub agent: Option<String>,
    /// Glob.
    pub tool: Option<String>,
    /// Literal: whose tool is asked for, whether or not the tool's name begins with it.
    pub upstream: Option<String>,
    /// Only older than the approval with this id (paging).
    pub before: Option<String>,
    /// At most so many; 0: 100.
    pub limit: u32,
}

/// One change of one approval.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalEvent {
    /// Position in the feed, without gaps.
    pub cursor: u64,
    /// What it became by this event.
    pub status: ApprovalStatus,
    /// It was consumed by this event.
    pub consumed: bool,
    /// When.
    pub at: Micros,
    /// The approval as it is now (possibly later than the event).
    pub approval: Approval,
}

/// Approvals.
#[async_trait]
pub trait Approvals: Send + Sync {
    /// Asks, or joins the same question that is pending or approved and unconsumed. An overdue one is ended first. A new question is
    /// refused when its agent has `max_pending` of them in its namespace.
    async fn open_approval(&self, draft: ApprovalDraft, max_pending: u32) -> StoreResult<Opened>;

    /// One by its id or a unique prefix; within a namespace, or in all.
    async fn approval(&self, id: &str, namespace: Option<&str>) -> StoreResult<Approval>;

    /// Newest first.
    async fn approvals(&self, filter: ApprovalFilter) -> StoreResult<Vec<Approval>>;

    /// Answers one by its id or a unique prefix. [`AlreadyResolved`](super::StoreError::AlreadyResolved) when it is not pending; one that
    /// is overdue becomes `timeout` by this.
    async fn resolve_approval(
        &self,
        id: &str,
        resolution: Resolution,
        act: Option<Act>,
    ) -> StoreResult<Approval>;

    /// Takes an approved approval for one call, once. Revision and stops are read in the same transaction.
    async fn claim_approval(&self, claim: Claim) -> StoreResult<ClaimOutcome>;

    /// The client cancelled the call that asked: `pending` and approved, unconsumed become `cancelled`, others stay.
    async fn cancel_approval(&self, namespace: &str, id: &str) -> StoreResult<Approval>;

    /// Ends what is overdue: pending ones by `timeout`, approved ones by `expired`. Answers how many.
    async fn sweep_approvals(&self) -> StoreResult<u64>;

    /// At most `limit` events after `cursor`, in order.
    async fn approval_events_after(&self, cursor: u64, limit: u32) -> StoreResult<Vec<ApprovalEvent>>;
}
