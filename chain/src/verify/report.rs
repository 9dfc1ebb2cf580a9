//! What verification finds.

use std::fmt;

use serde::Serialize;

use crate::hash::Hash;
use crate::link::Position;

/// The kinds of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DamageKind {
    /// The record is not what was linked.
    Changed,
    /// The record is not there.
    Missing,
    /// The record stands where none was.
    Inserted,
    /// The record stands somewhere else.
    Reordered,
    /// The end is missing: a checkpoint speaks of later records.
    Truncated,
    /// The history is another one than a checkpoint speaks of.
    Forked,
    /// A MAC or a signature is not that of the key that should have made it.
    WrongKey,
    /// A record has no MAC although the chain has a key.
    Downgraded,
}

impl DamageKind {
    /// The kind as reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Missing => "missing",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Truncated => "truncated",
            Self::Forked => "forked",
            Self::WrongKey => "wrong_key",
            Self::Downgraded => "downgraded",
        }
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The first bad place of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The first bad record.
    #[serde(flatten)]
    pub at: Position,
    /// What happened to it.
    pub kind: DamageKind,
    /// Which record or checkpoint of the input showed it, counted from 1.
    pub item: u64,
    /// More, for a person.
    pub detail: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} {}: {}", self.at, self.kind, self.detail)
    }
}

/// What was read, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The first damage; none: the chain is intact as far as this report says it was checked.
    pub damage: Option<Damage>,
    /// Records read.
    pub records: u64,
    /// The first record's place.
    pub first: Option<Position>,
    /// The last good record's place.
    pub last: Option<Position>,
    /// The last good record's hash.
    pub head: Option<Hash>,
    /// The checkpoint that the first record links to, when it is not the chain's first.
    pub start: Option<Position>,
    /// Generations seen.
    pub generations: u64,
    /// Records of earlier generations that a restore lost, as far as checkpoints tell.
    pub lost: u64,
    /// Payloads that were there and match.
    pub payloads: u64,
    /// Payloads that were erased.
    pub payloads_erased: u64,
    /// MACs that were checked with a key.
    pub macs: u64,
    /// MACs for which no key was given.
    pub macs_unchecked: u64,
    /// Checkpoints whose place was passed with the hash that they state.
    pub checkpoints: u64,
    /// Checkpoints that speak of places before what was read.
    pub checkpoints_unchecked: u64,
    /// Signatures that were checked.
    pub signatures: u64,
    /// Checkpoints whose signature was not checked, since no public key was given.
    pub signatures_unchecked: u64,
    /// Epochs of sources whose own links were checked.
    pub sources: u64,
}

impl Report {
    /// Whether no damage was found.
    pub fn is_intact(&self) -> bool {
        self.damage.is_none()
    }
}
