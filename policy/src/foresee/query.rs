//! The question about a tool.

use tools::classify::Classification;
use tools::id::{AgentId, Namespace, SessionId, ToolName, UserId};
use tools::targets::Targets;

use crate::decide::{Call, Floor};

/// A tool as an agent sees it, before any call.
#[derive(Debug, Clone, Copy)]
pub struct ToolQuery<'a> {
    /// The sidecar's namespace.
    pub namespace: &'a Namespace,
    /// Who would call.
    pub agent: &'a AgentId,
    /// The human it acts for; absence is a fact.
    pub user: Option<&'a UserId>,
    /// The conversation; none means that it is not known yet.
    pub session: Option<&'a SessionId>,
    /// The governed name.
    pub tool: &'a ToolName,
    /// What the tool is judged to do; its calls have some of `possible_risks`.
    pub classification: &'a Classification,
    /// What every call of it reaches; none when that depends on the call. A tool without an extractor has
    /// [`Targets::UNKNOWN`].
    pub targets: Option<&'a Targets>,
    /// Pins and dispatcher, as they stand.
    pub floors: &'a [Floor],
}

impl<'a> ToolQuery<'a> {
    /// The call without arguments, for what does not depend on them.
    pub(super) fn as_call(&self) -> Call<'a> {
        const UNKNOWN: &Targets = &Targets::UNKNOWN;
        Call {
            namespace: self.namespace,
            agent: self.agent,
            user: self.user,
            session: self.session,
            tool: self.tool,
            classification: self.classification,
            targets: self.targets.unwrap_or(UNKNOWN),
            arguments: None,
            floors: self.floors,
        }
    }
}
