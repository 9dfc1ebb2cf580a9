//! Which enforced policies can reach a tool. Computed at each question, never stored.

use std::sync::Arc;

use policy::document::{Action, Mode, PolicyKind};
use policy::{InvalidPolicy, Policy, PolicySet};
use serde::Serialize;

use super::known::Known;

/// The policies that can reach a tool.
#[derive(Debug, Serialize)]
pub(super) struct Coverage {
    policies: Vec<Covering>,
    /// Whether one of them denies the tool, for some calls or for all.
    denies: bool,
}

#[derive(Debug, Serialize)]
struct Covering {
    name: String,
    kind: &'static str,
    agents: Vec<String>,
    /// What its rules can decide about the tool, in their order.
    actions: Vec<Action>,
    denies: bool,
}

/// The enforced policies, and those that cannot be read.
pub(super) struct Enforced {
    policies: Vec<Arc<Policy>>,
    invalid: Vec<Arc<InvalidPolicy>>,
}

impl Enforced {
    pub(super) fn of(set: &PolicySet) -> Self {
        Self {
            policies: set
                .policies()
                .filter(|policy| policy.mode == Mode::Enforce)
                .cloned()
                .collect(),
            invalid: set.invalid().to_vec(),
        }
    }

    pub(super) fn coverage(&self, known: &Known) -> Coverage {
        let namespace = known.row.namespace.as_str();
        let reaching = self
            .policies
            .iter()
            .filter(|policy| policy.covers_namespace(namespace))
            .filter_map(|policy| covering(policy, &known.row.name));
        let unreadable = self
            .invalid
            .iter()
            .filter(|policy| {
                policy.namespaces.is_empty() || policy.namespaces.iter().any(|glob| glob.matches(namespace))
            })
            .map(|policy| Covering {
                name: policy.name.to_string(),
                kind: "invalid",
                agents: policy.agents.iter().map(ToString::to_string).collect(),
                actions: vec![Action::Deny],
                denies: true,
            });
        let policies: Vec<Covering> = reaching.chain(unreadable).collect();
        Coverage {
            denies: policies.iter().any(|policy| policy.denies),
            policies,
        }
    }
}

/// What a policy's rules can decide about a tool; none when no rule covers it. Rules after one that holds for every call decide nothing.
fn covering(policy: &Policy, tool: &str) -> Option<Covering> {
    let mut actions = Vec::new();
    for rule in policy.rules.iter().filter(|rule| rule.covers_tool(tool)) {
        actions.push(rule.action);
        if policy.kind == PolicyKind::Standard && rule.is_unconditional() {
            break;
        }
    }
    (!actions.is_empty()).then(|| Covering {
        name: policy.name.to_string(),
        kind: match policy.kind {
            PolicyKind::Standard => "standard",
            PolicyKind::Guardrail => "guardrail",
        },
        agents: policy.agents.iter().map(ToString::to_string).collect(),
        denies: actions.contains(&Action::Deny),
        actions,
    })
}
