//! Does a rule hold for a call? True, false, or undecided.

mod condition;
mod fold;
mod rule;
mod selector;
mod truth;

pub use fold::equal_when_folded;
pub use truth::Truth;

pub(crate) use condition::{condition_truth, test_truth};
pub(crate) use rule::rule_truth;
pub(crate) use selector::selector_truth;

#[cfg(test)]
mod tests;
