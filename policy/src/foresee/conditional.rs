//! The parts of a rule that depend on the call.

use super::query::ToolQuery;
use super::rule::{possible_selector, possible_test};
use super::view::Conditional;
use crate::decide::Step;
use crate::document::Rule;

/// One entry for each selector and test of a rule that is neither true nor false for every call.
pub(super) fn conditional_parts(step: &Step, rule: &Rule, query: &ToolQuery<'_>) -> Vec<Conditional> {
    let entry = |field: String, operator: &str| Conditional {
        action: rule.action,
        rule: step.reference(),
        field,
        operator: operator.to_owned(),
    };
    let mut parts = Vec::new();
    for selector in &rule.selectors {
        if possible_selector(selector, rule, query).fixed().is_none() {
            parts.push(entry(format!("${}", selector.key()), "in"));
        }
    }
    for test in rule.condition.iter().flat_map(|condition| condition.tests()) {
        if possible_test(test, query).fixed().is_none() {
            parts.push(entry(test.field.to_string(), test.operator.as_str()));
        }
    }
    parts.dedup();
    parts
}
