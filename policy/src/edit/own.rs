//! Which policy is an agent's own.

use std::sync::Arc;

use tools::id::{AgentId, PolicyName};

use crate::compile::PolicySet;
use crate::document::Policy;
use crate::foresee::ToolQuery;

/// The policy in which an agent's tool is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPolicy {
    /// Which one.
    pub name: PolicyName,
    /// The rule of it that decides about the tool today, before any call; none when another policy's does.
    pub deciding: Option<usize>,
}

/// The agent's own policy: standard, enforced, its `agent` one literal equal to the agent. Of several the one that
/// holds the rule that decides today, else the last that is walked; none when the agent has none.
pub fn own_policy(set: &PolicySet, query: &ToolQuery<'_>) -> Option<OwnPolicy> {
    let decision = set.tool_decision(query);
    let own: Vec<Arc<Policy>> = set
        .walked(query.namespace, query.agent)
        .into_iter()
        .filter(|policy| is_own(policy, query.agent))
        .collect();
    let deciding = decision.rule.as_ref().and_then(|rule| {
        let holder = own.iter().find(|policy| policy.name == rule.policy)?;
        Some(OwnPolicy {
            name: holder.name.clone(),
            deciding: Some(rule.index),
        })
    });
    deciding.or_else(|| {
        own.last().map(|policy| OwnPolicy {
            name: policy.name.clone(),
            deciding: None,
        })
    })
}

fn is_own(policy: &Policy, agent: &AgentId) -> bool {
    match policy.agents.as_slice() {
        [only] => only.literal() == Some(agent.as_str()),
        _ => false,
    }
}
