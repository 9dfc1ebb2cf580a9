//! Damage between its finding and the report.

use super::report::DamageKind;
use crate::link::Position;

/// A damage that was just found, before it is put into the report.
pub(super) struct Found {
    pub(super) at: Position,
    pub(super) kind: DamageKind,
    pub(super) detail: String,
    /// The place to look for in what follows.
    pub(super) expected: Position,
    /// The place that the bad record states.
    pub(super) stated: Position,
}

impl Found {
    pub(super) fn new(kind: DamageKind, at: Position, detail: impl Into<String>) -> Self {
        Self {
            at,
            kind,
            detail: detail.into(),
            expected: at,
            stated: at,
        }
    }
}
