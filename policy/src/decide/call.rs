//! What is decided about.

use serde::{Deserialize, Serialize};
use tools::classify::Classification;
use tools::id::{AgentId, Namespace, SessionId, ToolName, UserId};
use tools::json::Node;
use tools::targets::Targets;

use crate::document::Action;

/// One call, as the gate knows it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The sidecar's namespace.
    pub namespace: &'a Namespace,
    /// Who calls.
    pub agent: &'a AgentId,
    /// The human it acts for; absence is a fact.
    pub user: Option<&'a UserId>,
    /// The conversation, when the client named one.
    pub session: Option<&'a SessionId>,
    /// The governed name.
    pub tool: &'a ToolName,
    /// What this call is judged to do.
    pub classification: &'a Classification,
    /// What this call reaches.
    pub targets: &'a Targets,
    /// The arguments; none means an empty object.
    pub arguments: Option<Node<'a>>,
    /// What standard policy cannot relax, beside guardrails.
    pub floors: &'a [Floor],
}

/// An action that standard policy cannot relax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Floor {
    /// Where it comes from.
    pub kind: FloorKind,
    /// The mildest action that it lets through.
    pub action: Action,
}

/// Where a floor comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorKind {
    /// The tool appeared after its upstream was pinned.
    PinNew,
    /// The tool differs from the accepted version.
    PinChanged,
    /// The tool is a CLI dispatcher.
    Dispatcher,
}

impl Floor {
    /// The floor of a tool that appeared after its upstream was pinned.
    pub const PIN_NEW: Floor = Floor {
        kind: FloorKind::PinNew,
        action: Action::Deny,
    };
    /// The floor of a tool that differs from the accepted version.
    pub const PIN_CHANGED: Floor = Floor {
        kind: FloorKind::PinChanged,
        action: Action::HumanApproval,
    };
}
