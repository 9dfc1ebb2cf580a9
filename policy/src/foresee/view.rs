//! The two views of a tool before any call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::conditional::conditional_parts;
use super::possible::Possible;
use super::query::ToolQuery;
use super::rule::possible_rule;
use crate::decide::{FloorHit, FloorSource, RuleRef, Step, Steps};
use crate::document::Action;
use crate::evaluate::Truth;

/// What the policy decides for a tool before any call: where static rules land, and what can come before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDecision {
    /// Where the static rules land, floors applied; grants are not.
    pub action: Action,
    /// Where they land before floors.
    pub standard: Action,
    /// The static rule that decides; none when no rule does.
    pub rule: Option<RuleRef>,
    /// The file of that rule's policy.
    pub source_file: Option<Arc<str>>,
    /// Floors that hold for every call.
    pub floors: Vec<FloorHit>,
    /// Rules, and guardrails, that decide some calls and not others.
    pub conditional: Vec<Conditional>,
}

/// A test or selector on which a rule depends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conditional {
    /// The rule's action.
    pub action: Action,
    /// The rule.
    pub rule: RuleRef,
    /// The field, or the selector as `$risk`, `$user`, ….
    pub field: String,
    /// The operator; `in` for selectors.
    pub operator: String,
}

/// What a step can be; a step without a rule would be a broken plan and counts as undecided.
fn possible(step: &Step, query: &ToolQuery<'_>) -> (Possible, Action) {
    match step.rule() {
        Some(rule) => (possible_rule(rule, query), rule.action),
        None => (Possible::only(Truth::Undecided), Action::Deny),
    }
}

/// Whether some arguments could get the tool past everything.
pub(crate) fn could_run(steps: &Steps, query: &ToolQuery<'_>) -> bool {
    let floored = !steps.invalid.is_empty()
        || query.floors.iter().any(|floor| floor.action == Action::Deny)
        || steps.guardrails.iter().any(|step| {
            let (possible, action) = possible(step, query);
            action == Action::Deny && !possible.includes(Truth::False)
        });
    if floored {
        return false;
    }
    for step in &steps.standard {
        let (possible, action) = possible(step, query);
        match action {
            // True ends in a denial, undecided notes one: only a false deny lets a call go on.
            Action::Deny if !possible.includes(Truth::False) => return false,
            Action::Deny => {}
            Action::Allow | Action::HumanApproval if possible.includes(Truth::True) => return true,
            Action::Allow | Action::HumanApproval => {}
        }
    }
    false
}

/// Where the static rules land, and what is conditional.
pub(crate) fn tool_decision(steps: &Steps, query: &ToolQuery<'_>) -> ToolDecision {
    let mut decision = ToolDecision {
        action: Action::Deny,
        standard: Action::Deny,
        rule: None,
        source_file: None,
        floors: Vec::new(),
        conditional: Vec::new(),
    };
    for step in &steps.standard {
        let Some(rule) = step.rule() else { continue };
        match possible_rule(rule, query).fixed() {
            Some(false) => {}
            Some(true) => {
                decision.standard = rule.action;
                decision.rule = Some(step.reference());
                decision.source_file = step.policy.source_file.clone();
                break;
            }
            None => decision.conditional.extend(conditional_parts(step, rule, query)),
        }
    }
    decision.floors = floors(steps, query, &mut decision.conditional);
    let strictest = decision.floors.iter().map(|floor| floor.action).max();
    decision.action = decision.standard.max(strictest.unwrap_or(Action::Allow));
    decision
}

fn floors(steps: &Steps, query: &ToolQuery<'_>, conditional: &mut Vec<Conditional>) -> Vec<FloorHit> {
    let mut floors: Vec<FloorHit> = Vec::new();
    for name in &steps.invalid {
        floors.push(FloorHit {
            source: FloorSource::InvalidPolicy(name.clone()),
            action: Action::Deny,
        });
    }
    for step in &steps.guardrails {
        let Some(rule) = step.rule() else { continue };
        match possible_rule(rule, query).fixed() {
            Some(false) => {}
            Some(true) => {
                let source = FloorSource::Guardrail(step.reference());
                floors.push(FloorHit {
                    source,
                    action: rule.action,
                });
            }
            None => conditional.extend(conditional_parts(step, rule, query)),
        }
    }
    for floor in query.floors.iter().filter(|floor| floor.action > Action::Allow) {
        floors.push(FloorHit {
            source: FloorSource::Floor(floor.kind),
            action: floor.action,
        });
    }
    floors
}
