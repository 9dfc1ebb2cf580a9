//! Each rule that was considered for a call, and why it did or did not hold.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decide::{Call, RuleRef};
use crate::document::{Action, Condition, Mode, Policy, PolicyKind, Rule, Scalar, Test};
use crate::evaluate::{Truth, selector_truth, test_truth};

/// One rule on one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleExplanation {
    /// The rule.
    pub rule: RuleRef,
    /// The file of its policy.
    pub source_file: Option<Arc<str>>,
    /// The line on which it starts.
    pub line: u32,
    /// Standard or guardrail.
    pub kind: PolicyKind,
    /// Enforced or shadow.
    pub mode: Mode,
    /// Its action.
    pub action: Action,
    /// Whether it holds.
    pub truth: Truth,
    /// Why: its parts.
    pub parts: Vec<PartExplanation>,
}

/// One selector or test of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartExplanation {
    /// What was asked: `tools`, `risk`, `amount < 500`.
    pub what: String,
    /// The answer.
    pub truth: Truth,
}

/// Explains the rules of policies that come in walking order: standard ones up to the first rule that is true.
pub(crate) fn explain(policies: &[Arc<Policy>], call: &Call<'_>) -> Vec<RuleExplanation> {
    let mut explained = Vec::new();
    let mut standard_ended = false;
    for policy in policies {
        for (index, rule) in policy.rules.iter().enumerate() {
            if policy.kind == PolicyKind::Standard && policy.mode == Mode::Enforce && standard_ended {
                break;
            }
            let explanation = explain_rule(policy, index, rule, call);
            standard_ended |= policy.kind == PolicyKind::Standard
                && policy.mode == Mode::Enforce
                && explanation.truth == Truth::True;
            explained.push(explanation);
        }
    }
    explained
}

fn explain_rule(policy: &Policy, index: usize, rule: &Rule, call: &Call<'_>) -> RuleExplanation {
    let mut parts = vec![PartExplanation {
        what: "tools".to_owned(),
        truth: rule.covers_tool(call.tool.as_str()).into(),
    }];
    for selector in &rule.selectors {
        let truth = selector_truth(selector, rule.action, call);
        parts.push(PartExplanation {
            what: selector.key().to_owned(),
            truth,
        });
    }
    let condition = rule
        .condition
        .as_ref()
        .map(|condition| explain_condition(condition, call, &mut parts));
    let selected = Truth::all(parts.iter().take(1 + rule.selectors.len()).map(|part| part.truth));
    RuleExplanation {
        rule: RuleRef {
            policy: policy.name.clone(),
            index,
        },
        source_file: policy.source_file.clone(),
        line: rule.line,
        kind: policy.kind,
        mode: policy.mode,
        action: rule.action,
        truth: selected.and(condition.unwrap_or(Truth::True)),
        parts,
    }
}

/// The condition's truth; adds every test to the parts.
fn explain_condition(condition: &Condition, call: &Call<'_>, parts: &mut Vec<PartExplanation>) -> Truth {
    match condition {
        Condition::All(inner) => {
            let truths: Vec<Truth> = inner
                .iter()
                .map(|part| explain_condition(part, call, parts))
                .collect();
            Truth::all(truths)
        }
        Condition::Any(inner) => {
            let truths: Vec<Truth> = inner
                .iter()
                .map(|part| explain_condition(part, call, parts))
                .collect();
            Truth::any(truths)
        }
        Condition::Not(inner) => !explain_condition(inner, call, parts),
        Condition::Test(test) => {
            let truth = test_truth(test, call);
            parts.push(PartExplanation {
                what: describe(test),
                truth,
            });
            truth
        }
    }
}

fn describe(test: &Test) -> String {
    let values: Vec<String> = test.values.iter().map(describe_value).collect();
    match values.as_slice() {
        [] => format!("{} {}", test.field, test.operator),
        [one] => format!("{} {} {one}", test.field, test.operator),
        several => format!("{} {} [{}]", test.field, test.operator, several.join(", ")),
    }
}

fn describe_value(value: &Scalar) -> String {
    match value {
        Scalar::String(text) => format!("{text:?}"),
        Scalar::Number(number) => number.to_string(),
        Scalar::Boolean(truth) => truth.to_string(),
        Scalar::Pattern(pattern) => format!("/{}/", pattern.as_str()),
    }
}
