//! JSON bodies of snapshot resources, except policies, whose sent form belongs to the policy room.
//!
//! Unknown fields are ignored here: a newer control plane may say more, and none of these bodies loosens anything by what it adds.

use serde::{Deserialize, Serialize};

/// Resource type of a policy document.
pub const POLICY: &str = "policy";
/// Resource type of an accepted fingerprint.
pub const PIN: &str = "pin";
/// Resource type of a live grant.
pub const GRANT: &str = "grant";
/// Resource type of an operator's correction of a classification.
pub const CORRECTION: &str = "correction";
/// Resource type of settings that the fleet shares.
pub const SETTING: &str = "setting";
/// Name of the one settings resource.
pub const FLEET: &str = "fleet";

/// The accepted fingerprint of one tool. Its resource is named `<namespace>/<tool>`.
///
/// A tool whose upstream has pins, but which has none itself, is new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Namespace that the pin belongs to.
    pub namespace: String,
    /// Upstream that declares the tool.
    pub upstream: String,
    /// Full tool name.
    pub tool: String,
    /// Accepted fingerprint, lower-case hex of 32 bytes.
    pub fingerprint: String,
}

/// What an operator corrected about one tool. Its resource is named `<namespace>/<tool>`.
///
/// It was said of the tool as it was declared with this fingerprint. A receiver that cannot read the correction takes the tool for
/// one of which nothing is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// Namespace that it holds in.
    pub namespace: String,
    /// Upstream that declares the tool.
    pub upstream: String,
    /// Full tool name.
    pub tool: String,
    /// Of the declaration that was corrected, lower-case hex of 32 bytes.
    pub fingerprint: String,
    /// `tools::classify::Correction`, as JSON.
    pub correction: serde_json::Value,
}

/// A time-boxed lift of `human_approval`. Its resource is named by the id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Random hex.
    pub id: String,
    /// Namespace that it holds in.
    pub namespace: String,
    /// Glob over agents.
    pub agent: String,
    /// Globs over tools.
    pub tools: Vec<String>,
    /// End, Unix microseconds by the database's clock.
    pub expires_at: i64,
}

/// What the fleet decides for every sidecar; a sidecar's own configuration can only tighten it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetSettings {
    /// Age of the lease from which only plain reads run.
    pub staleness_write_ms: u64,
    /// Age of the lease from which nothing runs.
    pub staleness_read_ms: u64,
    /// Accepted fingerprints are kept and enforced as floors.
    pub pin_tools: bool,
    /// Tools that can only be denied are left out of lists.
    pub hide_denied_tools: bool,
    /// Extra paths and key globs whose values are masked before they leave a sidecar, beside the built-in ones.
    pub redact: Vec<String>,
    /// What of the arguments is reported: `full`, `redacted` or `digest`.
    pub params: String,
    /// How long a pending approval waits for an answer.
    pub approval_timeout_ms: u64,
    /// How long an approved approval may be used.
    pub approval_ttl_ms: u64,
    /// How long a REST call is held while its approval is pending.
    pub approval_rest_hold_ms: u64,
    /// How long an MCP call waits for a resolution before it is answered.
    pub approval_wait_ms: u64,
    /// Questions of one agent in one namespace that may be pending at once; a call beyond them is denied.
    pub approval_max_pending: u32,
    /// Equal plain reads in 10 s before a loop is seen.
    pub loop_plain_reads: u32,
    /// Equal calls of other kinds in 10 s before a loop is seen.
    pub loop_others: u32,
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self {
            staleness_write_ms: 180_000,
            staleness_read_ms: 900_000,
            pin_tools: false,
            hide_denied_tools: false,
            redact: Vec::new(),
            params: "redacted".to_owned(),
            approval_timeout_ms: 300_000,
            approval_ttl_ms: 300_000,
            approval_rest_hold_ms: 60_000,
            approval_wait_ms: 0,
            approval_max_pending: 100,
            loop_plain_reads: 20,
            loop_others: 3,
        }
    }
}
