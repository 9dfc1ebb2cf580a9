//! Grants: time-boxed lifts of `human_approval`, never of `deny`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tools::id::{AgentId, Namespace, ToolName};

use crate::decide::{Decision, FloorKind, FloorSource};
use crate::document::Action;
use crate::glob::{Glob, ToolGlob};

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its id; calls let through are recorded as `grant:<id>`.
    pub id: Arc<str>,
    /// The namespace it holds in.
    pub namespace: Namespace,
    /// The agents it holds for.
    pub agent: Glob,
    /// The governed names it covers.
    pub tools: Vec<ToolGlob>,
    /// When it ends, in microseconds of the database's time.
    pub expires_at: i64,
}

/// The grants that a sidecar knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants(Vec<Arc<Grant>>);

impl FromIterator<Arc<Grant>> for Grants {
    fn from_iter<T: IntoIterator<Item = Arc<Grant>>>(grants: T) -> Self {
        Self(grants.into_iter().collect())
    }
}

impl Grants {
    /// All grants, live or not.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Grant>> {
        self.0.iter()
    }

    /// Turns `human_approval` into `allow` where a live grant covers everything that asks for it: standard policy;
    /// a dispatcher floor only when the grant names the tool literally; a guardrail or a changed pin never.
    /// `now` is the database's time in microseconds.
    pub fn apply(
        &self,
        decision: &mut Decision,
        namespace: &Namespace,
        agent: &AgentId,
        tool: &ToolName,
        now: i64,
    ) {
        if decision.action != Action::HumanApproval {
            return;
        }
        let Some(must_be_literal) = liftable(decision) else {
            return;
        };
        let lifts = |grant: &&Arc<Grant>| {
            grant.expires_at > now && grant.covers(namespace, agent, tool, must_be_literal)
        };
        if let Some(grant) = self.0.iter().find(lifts) {
            decision.action = Action::Allow;
            decision.lifted_by = Some(Arc::clone(&grant.id));
        }
    }
}

impl Grant {
    fn covers(&self, namespace: &Namespace, agent: &AgentId, tool: &ToolName, literal: bool) -> bool {
        let names = |glob: &ToolGlob| {
            if literal {
                glob.literal() == Some(tool.as_str())
            } else {
                glob.matches(tool.as_str())
            }
        };
        self.namespace == *namespace && self.agent.matches(agent.as_str()) && self.tools.iter().any(names)
    }
}

/// Whether the grant must name the tool literally; `None` when no grant can lift this.
fn liftable(decision: &Decision) -> Option<bool> {
    let mut must_be_literal = false;
    for floor in decision
        .floors
        .iter()
        .filter(|floor| floor.action > Action::Allow)
    {
        match &floor.source {
            FloorSource::Floor(FloorKind::Dispatcher) => must_be_literal = true,
            FloorSource::Floor(FloorKind::PinNew | FloorKind::PinChanged)
            | FloorSource::Guardrail(_)
            | FloorSource::InvalidPolicy(_) => return None,
        }
    }
    Some(must_be_literal)
}
