//! One rule on one call.

use super::condition::condition_truth;
use super::selector::selector_truth;
use super::truth::Truth;
use crate::decide::Call;
use crate::document::Rule;

/// Whether a rule that covers the call's tool holds: its selectors and its condition.
pub(crate) fn rule_truth(rule: &Rule, call: &Call<'_>) -> Truth {
    let selected = Truth::all(
        rule.selectors
            .iter()
            .map(|part| selector_truth(part, rule.action, call)),
    );
    match &rule.condition {
        Some(condition) if selected != Truth::False => selected.and(condition_truth(condition, call)),
        _ => selected,
    }
}
