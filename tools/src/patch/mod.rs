//! What a patch does: the files that it names, and whether it removes any.

use crate::classify::{Risk, RiskSet};
use crate::targets::Extent;

/// What a patch does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchReading {
    /// The classes of everything that it does; never empty.
    pub risks: RiskSet,
    /// Every file that it names, on both sides of a move.
    pub paths: Extent,
    /// It removes a file.
    pub deletes: bool,
    /// It was read whole, in one form.
    pub complete: bool,
    /// Why, in the order of the text.
    pub reasons: Vec<String>,
}

/// Reads a patch: in bounded time and memory, whatever it is.
pub fn read(text: &str) -> PatchReading {
    PatchReading {
        risks: [Risk::LocalWrite, Risk::Execution].into_iter().collect(),
        paths: Extent::Unknown,
        deletes: false,
        complete: false,
        reasons: vec![format!("a patch of {} bytes is not read", text.len())],
    }
}
