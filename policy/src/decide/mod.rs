//! The decision about one call.

mod call;
mod decision;
mod walk;

pub use call::{Call, Floor, FloorKind};
pub use decision::{Decision, FloorHit, FloorSource, Reason, RuleRef, ShadowOutcome};

pub(crate) use walk::{Step, Steps, decide};
