//! The agents that this sidecar may speak for.

use policy::glob::Glob;
use tools::id::AgentId;

/// Globs over agents, from the sidecar's credential and from its own configuration: an agent must match both.
#[derive(Debug, Clone, Default)]
pub struct AgentScope {
    credential: Vec<Glob>,
    configured: Vec<Glob>,
}

impl AgentScope {
    /// A scope from the credential's globs and the configured ones; an empty configured list narrows nothing.
    pub fn new(credential: Vec<Glob>, configured: Vec<Glob>) -> Self {
        Self {
            credential,
            configured,
        }
    }

    /// Whether calls of `agent` may be served here. An empty credential covers nobody.
    pub fn covers(&self, agent: &AgentId) -> bool {
        let matches = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(agent.as_str()));
        matches(&self.credential) && (self.configured.is_empty() || matches(&self.configured))
    }
}
