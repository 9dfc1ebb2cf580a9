//! `toolgate policy lint | test | diff | replay | why`: what the author of a policy asks before and after.

mod changes;
mod findings;
mod records;
mod sources;
mod suites;

pub(crate) use changes::{DiffArgs, diff};
pub(crate) use findings::{LintArgs, lint};
pub(crate) use records::{ReplayArgs, WhyArgs, replay, why};
pub(crate) use suites::{TestArgs, test};
