//! Rules that are never asked, because earlier ones end every walk that would come to them.

use std::sync::Arc;

use super::Place;
use crate::document::{Mode, Policy, PolicyKind, Rule};

/// Why the walk can never come to a rule; `None` when it can.
pub(super) fn never_matches(place: Place<'_>, policies: &[Arc<Policy>]) -> Option<String> {
    let (policy, rule) = (place.policy, place.rule);
    if let Some(tools) = &rule.tools
        && tools
            .iter()
            .all(|tool| rule.except.iter().any(|except| except.covers(tool)))
    {
        return Some("its except covers all its tools".to_owned());
    }
    if policy.kind == PolicyKind::Guardrail {
        return None;
    }
    let own = policy.rules.iter().take(place.index).enumerate();
    for (index, earlier) in own {
        if ends_all(earlier, rule) {
            return Some(format!("rule {index} decides all its calls before"));
        }
    }
    policies
        .iter()
        .filter(|other| comes_before(other, policy))
        .find_map(|other| {
            let index = other.rules.iter().position(|earlier| ends_all(earlier, rule))?;
            Some(format!(
                "rule {index} of policy \"{}\" decides all its calls before",
                other.name
            ))
        })
}

/// Whether an earlier rule is true for every call that a later one covers.
fn ends_all(earlier: &Rule, later: &Rule) -> bool {
    if !earlier.is_unconditional() {
        return false;
    }
    let covers_all = earlier
        .tools
        .as_ref()
        .is_none_or(|tools| tools.iter().any(|glob| glob.glob().is_any()));
    let covered = match &later.tools {
        _ if covers_all => true,
        None => false,
        Some(narrow) => narrow
            .iter()
            .all(|tool| earlier.tools.iter().flatten().any(|wide| wide.covers(tool))),
    };
    // What the earlier rule excepts comes to the later one, unless that excepts it as well.
    covered
        && earlier
            .except
            .iter()
            .all(|hole| later.except.iter().any(|except| except.covers(hole)))
}

/// Whether a policy is walked before another for all of the other's agents and namespaces.
fn comes_before(other: &Policy, policy: &Policy) -> bool {
    let same_agents = policy.agents.iter().all(|agent| other.agents.contains(agent));
    let same_namespaces = policy
        .namespaces
        .iter()
        .all(|narrow| other.namespaces.iter().any(|wide| wide.covers(narrow)));
    other.name != policy.name
        && other.mode == Mode::Enforce
        && policy.mode == Mode::Enforce
        && other.kind == PolicyKind::Standard
        && same_agents
        && same_namespaces
        && (&other.origin, &other.name) < (&policy.origin, &policy.name)
}
