//! The record's header: what its source says, and what the chain adds.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::timestamp::Timestamp;
use crate::vocabulary::{Action, IdentityStrength, Outcome, Reason, RecordKind};

/// A name from another room's closed list, or owned text.
pub type Text = Cow<'static, str>;

/// Why a record cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be serialised.
    #[error("the record cannot be written: {0}")]
    Encode(#[source] serde_json::Error),
    /// The bytes are not a record.
    #[error("the bytes are not a record: {0}")]
    Decode(#[source] serde_json::Error),
    /// The bytes mean a record but are not its canonical text.
    #[error("the record is not in its canonical form; send the bytes that the source sealed")]
    NotCanonical,
}

/// Which state of the desired world a decision was made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revision {
    /// The generation.
    pub generation: u64,
    /// The number within the generation.
    pub number: u64,
}

/// A floor that took part in a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FloorHit {
    /// The guardrail's name, or the kind of floor.
    pub name: Text,
    /// What it asked for.
    pub action: Action,
}

/// What would have been decided with the shadow policies in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shadow {
    /// The action.
    pub action: Action,
    /// The deciding policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Its rule, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_index: Option<u32>,
}

/// The approval that a call went through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// The approval's id.
    pub id: String,
    /// How it ended.
    pub status: Text,
    /// Who resolved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Through which channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Text>,
    /// Why, in the resolver's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// How sure the resolver was, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How long the call waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// What a source (a sidecar, or the control plane) states about one call or act: every field of the header but
/// `generation` and `seq`, which the chain adds.
///
/// Its canonical text is its JSON with the fields in this order and absent fields left out. That text is made once,
/// by [`SourceRecord::encode`], and travels and is hashed as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRecord {
    /// UUIDv7.
    pub id: String,
    /// When the call came, by the source's clock.
    pub time: Timestamp,
    /// What the record is about.
    pub kind: RecordKind,
    /// The tenant.
    pub namespace: String,
    /// The source's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<Text>,
    /// The source's epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The number within the epoch, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// SHA-256 of the text of the epoch's record before; zeros for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_prev: Option<Hash>,
    /// SHA-256 of the text that the source sent under this number and that was not accepted: this record, which the control plane
    /// made, stands in its place, and what follows links that text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<Hash>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How sure that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<IdentityStrength>,
    /// The human behind the agent; of an act: who did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The tool's governed name, or the act's (`mesh.policy_edit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Text>,
    /// The upstream's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The tool's fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Hash>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// The deciding policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Its rule, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_index: Option<u32>,
    /// The desired state that was in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Floors that took part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floors: Vec<FloorHit>,
    /// A different outcome with the shadow policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<Shadow>,
    /// The grant that lifted the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// The approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// What the call does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<Text>,
    /// The gravest risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Text>,
    /// All risks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<Text>,
    /// The kind of effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side_effect: Option<Text>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was refused, or how it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The HTTP status of the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    /// The exit code of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// From the call's arrival to its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<u64>,
    /// The upstream's share of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_ms: Option<u64>,
    /// The decision's share of it, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_us: Option<u64>,
    /// Size of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    /// Size of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
    /// Estimated tokens of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<u64>,
    /// Estimated tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<u64>,
    /// W3C trace id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// W3C span id of this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// W3C span id of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<String>,
    /// Salted digest of the payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_digest: Option<Hash>,
}

/// A record's header as it stands in the chain, for reading. What is hashed is its stored text, never this.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// The chain's generation.
    pub generation: u64,
    /// The number within the generation, from 1.
    pub seq: u64,
    /// What the source stated.
    pub record: SourceRecord,
}

impl SourceRecord {
    /// A record in which everything optional is absent.
    pub fn new(id: String, time: Timestamp, kind: RecordKind, namespace: String, outcome: Outcome) -> Self {
        Self {
            id,
            time,
            kind,
            namespace,
            sidecar: None,
            epoch: None,
            n: None,
            source_prev: None,
            stands_for: None,
            agent: None,
            identity: None,
            user: None,
            session: None,
            tool: None,
            upstream: None,
            fingerprint: None,
            action: None,
            rule: None,
            rule_index: None,
            revision: None,
            floors: Vec::new(),
            shadow: None,
            grant: None,
            approval: None,
            capability: None,
            risk: None,
            risks: Vec::new(),
            side_effect: None,
            outcome,
            reason: None,
            status_code: None,
            exit_code: None,
            latency_ms: None,
            upstream_ms: None,
            decision_us: None,
            request_bytes: None,
            response_bytes: None,
            tokens_in: None,
            tokens_out: None,
            trace_id: None,
            span_id: None,
            parent_span_id: None,
            payload_digest: None,
        }
    }

    /// The canonical text.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn encode(&self) -> Result<String, RecordError> {
        crate::canonical::text(self).map_err(RecordError::Encode)
    }

    /// Reads a record from outside: known fields only, and exactly its canonical text.
    ///
    /// # Errors
    /// When the bytes are not a record, or not its canonical text.
    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        let record: Self = serde_json::from_slice(bytes).map_err(RecordError::Decode)?;
        if record.encode()?.as_bytes() == bytes {
            Ok(record)
        } else {
            Err(RecordError::NotCanonical)
        }
    }
}

impl Header {
    /// Reads a header's stored text.
    ///
    /// # Errors
    /// When the text is not a header.
    pub fn decode(text: &str) -> Result<Self, RecordError> {
        let (position, source) = crate::link::split_header(text).ok_or(RecordError::NotCanonical)?;
        let record = serde_json::from_str(&format!("{{{source}")).map_err(RecordError::Decode)?;
        Ok(Self {
            generation: position.generation,
            seq: position.seq,
            record,
        })
    }
}
