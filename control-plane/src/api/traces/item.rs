//! A record as clients read it: with the field names that existing clients know, ours beside them.

use std::borrow::Cow;

use chain::payload::Payload;
use chain::record::{FloorHit, Header, Shadow};
use chain::vocabulary::{IdentityStrength, Outcome, Reason, RecordKind};
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::text;
use crate::keys::hex;
use crate::store::approvals::Approval;
use crate::store::records::StoredRecord;

/// The namespace of a record; of one that cannot be read, none.
pub(super) fn namespace_of(stored: &StoredRecord) -> String {
    Header::decode(&stored.header)
        .map(|header| header.record.namespace)
        .unwrap_or_default()
}

/// A record, or the question of a call that still waits.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in super::super) enum TraceItem {
    Record(Box<RecordItem>),
    Pending(Box<PendingItem>),
    /// The stored text is not a record; verification says more.
    Unreadable {
        id: String,
        generation: u64,
        seq: u64,
        timestamp: String,
        error: &'static str,
    },
}

#[derive(Debug, Serialize)]
pub(in super::super) struct RecordItem {
    id: String,
    trace_id: String,
    session_id: String,
    agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    tool: String,
    params: Box<RawValue>,
    policy: &'static str,
    policy_rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<u32>,
    status_code: u16,
    latency_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    timestamp: String,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(flatten)]
    approval: ApprovalFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_output_tokens: Option<u64>,
    kind: RecordKind,
    generation: u64,
    seq: u64,
    namespace: String,
    #[serde(flatten)]
    source: SourceFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    floors: Vec<FloorHit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<Shadow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    risks: Vec<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    side_effect: Option<Cow<'static, str>>,
    #[serde(flatten)]
    measures: Measures,
    #[serde(flatten)]
    reached: Reached,
    payload: &'static str,
    hash: String,
}

#[derive(Debug, Default, Serialize)]
struct ApprovalFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_status: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_via: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supervisor_reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supervisor_confidence: Option<f64>,
}

#[derive(Debug, Serialize)]
struct SourceFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentityStrength>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sidecar: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct Measures {
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_bytes: Option<u64>,
}

#[derive(Debug, Default, Serialize)]
struct Reached {
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipients: Option<Vec<String>>,
}

/// A call that waits for a person. It becomes a record when it ends.
#[derive(Debug, Serialize)]
pub(in super::super) struct PendingItem {
    id: String,
    trace_id: String,
    session_id: String,
    agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    tool: String,
    params: Box<RawValue>,
    policy: &'static str,
    policy_rule: String,
    rule_index: u32,
    status_code: u16,
    latency_ms: u64,
    timestamp: String,
    outcome: &'static str,
    status: &'static str,
    approval_id: String,
    approval_status: &'static str,
    kind: RecordKind,
    namespace: String,
    sidecar: String,
    revision: String,
    identity: String,
}

impl TraceItem {
    pub(in super::super) fn new(stored: &StoredRecord) -> Self {
        match Header::decode(&stored.header) {
            Ok(header) => Self::Record(Box::new(RecordItem::new(header, stored))),
            Err(_) => Self::Unreadable {
                id: stored.id.clone(),
                generation: stored.at.generation,
                seq: stored.at.seq,
                timestamp: text::time(stored.time),
                error: "the stored header cannot be read; run `toolgate trace verify`",
            },
        }
    }

    pub(in super::super) fn pending(approval: &Approval, now: i64) -> Self {
        let asked = &approval.asked;
        let waited = u64::try_from(now.saturating_sub(approval.created_at)).unwrap_or(0) / 1_000;
        Self::Pending(Box::new(PendingItem {
            id: asked.call_id.clone(),
            trace_id: asked.call_id.clone(),
            session_id: asked.binding.session.clone(),
            agent_id: asked.binding.agent.clone(),
            user_id: text::filled(&asked.binding.user).map(str::to_owned),
            tool: asked.binding.tool.clone(),
            params: text::json(&asked.params),
            policy: "human_approval",
            policy_rule: asked.policy_rule.clone(),
            rule_index: asked.rule_index,
            status_code: 202,
            latency_ms: waited,
            timestamp: text::time(approval.created_at),
            outcome: "pending",
            status: "pending",
            approval_id: approval.id.clone(),
            approval_status: approval.status.as_str(),
            kind: RecordKind::Call,
            namespace: asked.namespace.clone(),
            sidecar: asked.sidecar.clone(),
            revision: asked.revision.to_string(),
            identity: asked.identity.clone(),
        }))
    }
}

/// What the agent's HTTP client got, where the record does not say what the upstream answered.
fn usual_status(outcome: Outcome, reason: Option<Reason>) -> u16 {
    match (outcome, reason) {
        (Outcome::Denied, Some(Reason::RateLimited | Reason::LoopDetected)) => 429,
        (Outcome::Denied, Some(Reason::UnknownTool)) => 404,
        (Outcome::Denied, Some(Reason::ApprovalTimeout)) => 408,
        (Outcome::Denied, Some(Reason::NoLease | Reason::Stale | Reason::AuditUnavailable)) => 503,
        (Outcome::Denied, _) => 403,
        (Outcome::Ok | Outcome::Decided, _) => 200,
        (Outcome::Timeout, _) => 504,
        (Outcome::Cancelled, _) => 499,
        (Outcome::Error | Outcome::Interrupted, _) => 502,
    }
}

impl From<chain::record::Approval> for ApprovalFields {
    fn from(approval: chain::record::Approval) -> Self {
        Self {
            approval_id: Some(approval.id),
            approval_status: Some(approval.status),
            approved_by: approval.by,
            approval_via: approval.via,
            approval_ms: approval.wait_ms,
            supervisor_reasoning: approval.reasoning,
            supervisor_confidence: approval.confidence,
        }
    }
}

/// What the payload holds: arguments, error, what was run and reached.
fn opened(stored: &StoredRecord) -> (Box<RawValue>, Option<String>, Reached) {
    let text = stored.payload.as_deref();
    let payload: Option<Payload> = text.and_then(|text| serde_json::from_str(text).ok());
    let Some(payload) = payload else {
        return (RawValue::NULL.to_owned(), None, Reached::default());
    };
    let reached = Reached {
        argv: payload.argv,
        command: payload.command,
        resources: payload.resources,
        columns: payload.columns,
        hosts: payload.hosts,
        paths: payload.paths,
        recipients: payload.recipients,
    };
    let params = payload.params.unwrap_or_else(|| RawValue::NULL.to_owned());
    (params, payload.error, reached)
}

impl RecordItem {
    fn new(header: Header, stored: &StoredRecord) -> Self {
        let record = header.record;
        let (params, error, reached) = opened(stored);
        let payload = match (&stored.payload, &record.payload_digest) {
            (Some(_), _) => "present",
            (None, Some(_)) => "erased",
            (None, None) => "none",
        };
        let source = SourceFields {
            identity: record.identity,
            sidecar: record.sidecar,
            epoch: record.epoch,
            n: record.n,
            span_id: record.span_id,
            parent_span_id: record.parent_span_id,
        };
        let measures = Measures {
            upstream_ms: record.upstream_ms,
            decision_us: record.decision_us,
            request_bytes: record.request_bytes,
            response_bytes: record.response_bytes,
        };
        let is_failure = matches!(
            record.outcome,
            Outcome::Error | Outcome::Denied | Outcome::Timeout
        );
        Self {
            status_code: record
                .status_code
                .unwrap_or_else(|| usual_status(record.outcome, record.reason)),
            error: error.or_else(|| {
                let reason = record.reason.filter(|_| is_failure)?;
                Some(reason.name().to_owned())
            }),
            trace_id: record.trace_id.unwrap_or_else(|| record.id.clone()),
            id: record.id,
            session_id: record.session.unwrap_or_default(),
            agent_id: record.agent.unwrap_or_default(),
            user_id: record.user,
            tool: record.tool.unwrap_or_default().into_owned(),
            params,
            policy: record.action.map_or("", chain::vocabulary::Action::name),
            policy_rule: match &record.grant {
                Some(grant) => format!("grant:{grant}"),
                None => record.rule.unwrap_or_default(),
            },
            rule_index: record.rule_index,
            latency_ms: record.latency_ms.unwrap_or_default(),
            timestamp: record.time.to_string(),
            outcome: record.outcome,
            reason: record.reason,
            exit_code: record.exit_code,
            approval: record.approval.map(ApprovalFields::from).unwrap_or_default(),
            estimated_input_tokens: record.tokens_in,
            estimated_output_tokens: record.tokens_out,
            kind: record.kind,
            generation: header.generation,
            seq: header.seq,
            namespace: record.namespace,
            source,
            upstream: record.upstream,
            fingerprint: record.fingerprint.map(|print| print.to_string()),
            revision: record
                .revision
                .map(|revision| format!("{}.{}", revision.generation, revision.number)),
            floors: record.floors,
            shadow: record.shadow,
            grant: record.grant,
            capability: record.capability,
            risk: record.risk,
            risks: record.risks,
            side_effect: record.side_effect,
            measures,
            reached,
            payload,
            hash: hex::encode(&stored.hash),
        }
    }
}
