//! The rules for one (namespace, agent, governed name).

use std::sync::Arc;

use tools::id::PolicyName;

use super::index::{AgentIndex, Match};
use super::set::InvalidPolicy;
use crate::decide::{Call, Decision, ShadowOutcome, Step, Steps, decide};
use crate::document::{Policy, PolicyKind};

/// A resolved plan.
#[derive(Debug)]
pub(super) struct Plan {
    /// Enforced policies.
    pub(super) steps: Steps,
    /// Enforced and shadow policies together, when some shadow policy applies.
    pub(super) shadow: Option<Steps>,
}

/// The policies of a set, by what they do.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    pub(super) standard: AgentIndex,
    pub(super) guardrails: AgentIndex,
    /// Shadow policies of both kinds.
    pub(super) shadow: AgentIndex,
    pub(super) limited: AgentIndex,
    pub(super) invalid: Vec<Arc<InvalidPolicy>>,
}

impl Indexes {
    /// The plan for a governed name.
    pub(super) fn resolve(&self, namespace: &str, agent: &str, tool: &str) -> Plan {
        let standard = self.standard.matching(namespace, agent);
        let guardrails = self.guardrails.matching(namespace, agent);
        let invalid = self.invalid(namespace, agent);
        let shadow = self.shadow.matching(namespace, agent);
        let shadow = (!shadow.is_empty()).then(|| {
            let of = |kind| {
                shadow
                    .iter()
                    .filter(move |found| found.policy.kind == kind)
                    .cloned()
            };
            let standard = in_order(standard.iter().cloned().chain(of(PolicyKind::Standard)));
            let guardrails = in_order(guardrails.iter().cloned().chain(of(PolicyKind::Guardrail)));
            steps(&standard, &guardrails, invalid.clone(), tool)
        });
        Plan {
            steps: steps(&standard, &guardrails, invalid, tool),
            shadow,
        }
    }

    fn invalid(&self, namespace: &str, agent: &str) -> Vec<PolicyName> {
        let covering = self
            .invalid
            .iter()
            .filter(|policy| policy.covers(namespace, agent));
        covering.map(|policy| policy.name.clone()).collect()
    }

    /// Every policy of an agent: standard ones in walking order, guardrails, shadow policies.
    pub(super) fn considered(&self, namespace: &str, agent: &str) -> Vec<Arc<Policy>> {
        let indexes = [&self.standard, &self.guardrails, &self.shadow];
        let found = indexes
            .into_iter()
            .flat_map(|index| index.matching(namespace, agent));
        found.map(|found| found.policy).collect()
    }
}

fn in_order(matches: impl Iterator<Item = Match>) -> Vec<Match> {
    let mut matches: Vec<Match> = matches.collect();
    matches.sort_by(|one, other| {
        other
            .specificity
            .cmp(&one.specificity)
            .then_with(|| one.rank.cmp(&other.rank))
    });
    matches
}

fn steps(standard: &[Match], guardrails: &[Match], invalid: Vec<PolicyName>, tool: &str) -> Steps {
    let mut walked = Vec::new();
    'policies: for found in standard {
        for (index, rule) in found.policy.rules.iter().enumerate() {
            if !rule.covers_tool(tool) {
                continue;
            }
            walked.push(Step {
                policy: Arc::clone(&found.policy),
                index,
            });
            if rule.is_unconditional() {
                break 'policies;
            }
        }
    }
    let covering = guardrails.iter().flat_map(|found| {
        let rules = found
            .policy
            .rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.covers_tool(tool));
        rules.map(|(index, _)| Step {
            policy: Arc::clone(&found.policy),
            index,
        })
    });
    Steps {
        standard: walked.into(),
        guardrails: covering.collect(),
        invalid: invalid.into(),
    }
}

impl Plan {
    /// How much of the cache the plan takes, in steps.
    pub(super) fn weight(&self) -> u64 {
        let of = |steps: &Steps| steps.standard.len() + steps.guardrails.len() + steps.invalid.len();
        8 + (of(&self.steps) + self.shadow.as_ref().map_or(0, of)) as u64
    }

    /// The decision, with what shadow policies would have changed.
    pub(super) fn decide(&self, call: &Call<'_>) -> Decision {
        let mut decision = decide(&self.steps, call);
        if let Some(shadow) = &self.shadow {
            let other = decide(shadow, call);
            if other.action != decision.action {
                decision.shadow = Some(ShadowOutcome {
                    action: other.action,
                    rule: other.rule,
                });
            }
        }
        decision
    }
}
