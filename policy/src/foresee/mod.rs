//! What can be said about a tool before any call: could it run, and where do its rules land?
//!
//! The arguments are not known, so each test has the set of results that some arguments could give it.

mod conditional;
mod possible;
mod query;
mod rule;
mod view;

pub use query::ToolQuery;
pub use view::{Conditional, ToolDecision};

pub(crate) use rule::possible_rule;
pub(crate) use view::{could_run, tool_decision};

#[cfg(test)]
mod tests;
