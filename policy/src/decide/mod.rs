//! The decision about one call.

mod call;
mod commands;
mod decision;
mod walk;

pub use call::{Call, Floor, FloorKind};
pub use commands::{Commands, Meant, Strictest};
pub use decision::{Decision, FloorHit, FloorSource, Reason, RuleRef, ShadowOutcome};

pub(crate) use walk::{Step, Steps, decide};
