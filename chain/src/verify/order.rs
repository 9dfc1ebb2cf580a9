//! The order of records, and what later records tell about a disorder.

use super::report::DamageKind;
use crate::hash::Hash;
use crate::link::{Position, link, split_header};

/// How a record's place relates to the chain's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The next one.
    Next,
    /// The first of a later generation.
    NewGeneration,
    /// One that stands further on; the given place was expected.
    Ahead(Position),
    /// One that was already passed.
    Behind,
}

pub(super) fn successor(at: Position) -> Position {
    Position {
        generation: at.generation,
        seq: at.seq.saturating_add(1),
    }
}

pub(super) fn order(head: Position, at: Position) -> Order {
    if at == successor(head) {
        Order::Next
    } else if at.generation > head.generation && at.seq == 1 {
        Order::NewGeneration
    } else if at.generation > head.generation {
        Order::Ahead(Position { seq: 1, ..at })
    } else if at > head {
        Order::Ahead(successor(head))
    } else {
        Order::Behind
    }
}

/// What is kept after a damage, to tell its kind from what follows.
#[derive(Debug)]
pub(super) struct Suspicion {
    /// The place that was expected where the damage is.
    pub(super) expected: Position,
    /// The place that the bad record states.
    pub(super) stated: Position,
    /// The hash that the bad record states.
    pub(super) hash: Hash,
    /// Whether the next record is looked at as the successor of the bad one.
    pub(super) is_fresh: bool,
}

impl Suspicion {
    /// The better judgement of a damage, if one more record allows it.
    pub(super) fn look(&mut self, kind: DamageKind, header: &str, hash: &Hash) -> Option<DamageKind> {
        let is_fresh = std::mem::replace(&mut self.is_fresh, false);
        let (at, _) = split_header(header)?;
        let is_successor = || at == successor(self.expected) && link(&self.hash, header.as_bytes()) == *hash;
        let is_disorder = self.stated != self.expected;
        match kind {
            // The chain goes on as if the bad record were the expected one: only its number was changed.
            DamageKind::Missing | DamageKind::Inserted if is_disorder && is_fresh && is_successor() => {
                Some(DamageKind::Changed)
            }
            DamageKind::Missing if is_disorder && at == self.expected => Some(DamageKind::Reordered),
            DamageKind::Reordered if at == self.stated => Some(DamageKind::Inserted),
            DamageKind::Changed if !is_disorder && at == self.expected => Some(DamageKind::Inserted),
            _ => None,
        }
    }
}
