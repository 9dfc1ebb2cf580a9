//! The decision.

mod loops;
mod trace;

pub use loops::LoopDetector;
pub use trace::{TraceContext, call_id, hex, random_bytes};
