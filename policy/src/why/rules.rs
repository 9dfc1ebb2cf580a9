//! Changes of one rule.

use std::sync::Arc;

use super::{MAX_CHANGES, RuleChange, restrains};
use crate::PolicySet;
use crate::decide::{Call, Decision};
use crate::document::{Action, Policy, PolicyKind};
use crate::explain::RuleExplanation;

/// Every single change of a rule on the path that gives another action: another action for it first, then without it.
pub(super) fn changes(
    set: &PolicySet,
    call: &Call<'_>,
    decision: &Decision,
    path: &[RuleExplanation],
) -> Vec<RuleChange> {
    let mut found = Vec::new();
    for explained in path.iter().filter(|rule| restrains(rule, decision)) {
        let Some(policy) = set.get(explained.rule.policy.as_str()) else {
            continue;
        };
        let index = explained.rule.index;
        let place = place(policy, explained);
        for action in Action::ALL {
            let is_same = action == explained.action;
            if is_same || (policy.kind == PolicyKind::Guardrail && action == Action::Allow) {
                continue;
            }
            let changed = with_rule(policy, index, Some(action));
            let outcome = decide_with(set, policy, changed, call);
            if outcome != decision.action {
                let change = format!(
                    "{place}: action {} -> {}",
                    explained.action.as_str(),
                    action.as_str()
                );
                found.push(RuleChange {
                    change,
                    action: outcome,
                });
            }
        }
        let outcome = decide_with(set, policy, with_rule(policy, index, None), call);
        if outcome != decision.action {
            found.push(RuleChange {
                change: format!("{place}: remove it"),
                action: outcome,
            });
        }
    }
    if decision.rule.is_none() && path.is_empty() {
        found.extend(new_rule(set, call, decision));
    }
    found.sort_by_key(|change| change.action);
    found.truncate(MAX_CHANGES);
    found
}

fn place(policy: &Policy, explained: &RuleExplanation) -> String {
    let file = policy
        .source_file
        .as_deref()
        .map(|file| format!(" ({file}:{})", explained.line))
        .unwrap_or_default();
    format!("rule {} of \"{}\"{file}", explained.rule.index, policy.name)
}

/// The policy with another action for a rule, or without the rule; `None` when nothing of it would be left.
fn with_rule(policy: &Policy, index: usize, action: Option<Action>) -> Option<Policy> {
    let mut changed = policy.clone();
    match action {
        Some(action) => changed.rules.get_mut(index)?.action = action,
        None => {
            changed.rules.remove(index);
        }
    }
    (!changed.rules.is_empty()).then_some(changed)
}

fn decide_with(set: &PolicySet, policy: &Policy, changed: Option<Policy>, call: &Call<'_>) -> Action {
    let invalid = set.invalid().to_vec();
    let changed_set = match changed {
        Some(changed) => set.with_changes([Arc::new(changed)], &[], invalid),
        None => set.with_changes([], std::slice::from_ref(&policy.name), invalid),
    };
    changed_set.decide(call).action
}

/// No rule covers the tool: the smallest change is a new one.
fn new_rule(set: &PolicySet, call: &Call<'_>, decision: &Decision) -> Option<RuleChange> {
    let own = set
        .policies()
        .filter(|policy| policy.kind == PolicyKind::Standard)
        .filter(|policy| policy.covers_namespace(call.namespace.as_str()))
        .find(|policy| policy.covers_agent(call.agent.as_str()));
    if !decision.floors.is_empty() {
        return None;
    }
    let tool = call.tool;
    Some(RuleChange {
        change: match own {
            Some(policy) => format!(
                "add to \"{}\": {{tools: [\"{tool}\"], action: allow}} (no rule covers the tool)",
                policy.name
            ),
            None => format!(
                "add a policy for agent \"{}\" with {{tools: [\"{tool}\"], action: allow}} (no policy covers the agent)",
                call.agent
            ),
        },
        action: Action::Allow,
    })
}
