//! The agents that this sidecar may speak for.

use policy::glob::Glob;
use tools::id::AgentId;

/// Globs over agents, from the sidecar's credential and from its own configuration: an agent must match both.
#[derive(Debug, Clone, Default)]
pub struct AgentScope {
    /// `None` before the sidecar has a credential.
    credential: Option<Vec<Glob>>,
    configured: Vec<Glob>,
}

/// Whether calls of an agent may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// They may.
    Covered,
    /// They may not.
    Outside,
    /// The sidecar has no credential yet, so it cannot say.
    Unknown,
}

impl AgentScope {
    /// A scope from the credential's globs and the configured ones; an empty configured list narrows nothing.
    pub fn new(credential: Vec<Glob>, configured: Vec<Glob>) -> Self {
        Self {
            credential: Some(credential),
            configured,
        }
    }

    /// Whether calls of `agent` may be served here. An empty credential covers nobody.
    pub fn covers(&self, agent: &AgentId) -> Coverage {
        let matches = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(agent.as_str()));
        match &self.credential {
            None => Coverage::Unknown,
            Some(credential)
                if matches(credential) && (self.configured.is_empty() || matches(&self.configured)) =>
            {
                Coverage::Covered
            }
            Some(_) => Coverage::Outside,
        }
    }
}
