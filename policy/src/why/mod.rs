//! Why a call was decided as it was, and the smallest change that would have decided it otherwise.

mod arguments;
mod edit;
mod rules;

use serde::Serialize;

use crate::PolicySet;
use crate::decide::{Call, Decision, FloorSource};
use crate::document::{Action, Mode, PolicyKind};
use crate::evaluate::Truth;
use crate::explain::RuleExplanation;

/// The most changes of one kind that are proposed.
const MAX_CHANGES: usize = 8;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// What is decided.
    pub action: Action,
    /// Why, in one word.
    pub reason: &'static str,
    /// The deciding rule.
    pub rule: Option<String>,
    /// Each rule on the way that covers the tool, and what came of it.
    pub path: Vec<RuleExplanation>,
    /// Each floor that holds, with its action.
    pub floors: Vec<(String, Action)>,
    /// Single changes of a rule that flip the decision, the smallest first.
    pub rule_changes: Vec<RuleChange>,
    /// Single changes of an argument that flip the decision, those towards `allow` first.
    pub argument_changes: Vec<ArgumentChange>,
}

/// One change of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleChange {
    /// What to change: `rule 3 of "claude" (claude.yaml:14): action deny -> allow`.
    pub change: String,
    /// What would be decided.
    pub action: Action,
}

/// One change of one argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArgumentChange {
    /// The field.
    pub field: String,
    /// Its new value as JSON; none: left out.
    pub value: Option<String>,
    /// What would be decided.
    pub action: Action,
}

impl PolicySet {
    /// Why a call is decided as it is. What is proposed has been decided by this set, changed so.
    pub fn why(&self, call: &Call<'_>) -> Why {
        let decision = self.decide(call);
        let path = path(self.explain(call));
        Why {
            action: decision.action,
            reason: decision.reason.as_str(),
            rule: decision
                .rule
                .as_ref()
                .map(|rule| format!("{}#{}", rule.policy, rule.index)),
            floors: decision
                .floors
                .iter()
                .map(|hit| (hit.source.to_string(), hit.action))
                .collect(),
            rule_changes: rules::changes(self, call, &decision, &path),
            argument_changes: arguments::changes(self, call, &decision, &path),
            path,
        }
    }
}

/// The rules that had a say: those that cover the tool.
fn path(explained: Vec<RuleExplanation>) -> Vec<RuleExplanation> {
    explained
        .into_iter()
        .filter(|rule| rule.mode == Mode::Enforce)
        .filter(|rule| rule.parts.first().is_some_and(|part| part.truth == Truth::True))
        .collect()
}

/// Whether a rule holds something down: it decided, was noted, or is a guardrail that hit.
fn restrains(rule: &RuleExplanation, decision: &Decision) -> bool {
    let is_floor = decision.floors.iter().any(|hit| match &hit.source {
        FloorSource::Guardrail(reference) => *reference == rule.rule,
        FloorSource::InvalidPolicy(_) | FloorSource::Floor(_) => false,
    });
    is_floor
        || decision.rule.as_ref() == Some(&rule.rule)
        || (rule.kind == PolicyKind::Standard && rule.truth != Truth::False)
}

#[cfg(test)]
mod tests;
