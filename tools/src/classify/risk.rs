//! Risk classes and sets of them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a call can do, in order of gravity: the gravest of several is the one shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Risk {
    /// Reads.
    Read,
    /// Changes something on this machine.
    LocalWrite,
    /// Runs code or commands.
    Execution,
    /// Changes something elsewhere.
    ExternalWrite,
    /// Reaches people.
    Communication,
    /// Removes something.
    Delete,
    /// Changes who may do what.
    PermissionChange,
    /// Moves money.
    Financial,
    /// Nobody knows; never treated as safe.
    Unknown,
}

impl Risk {
    /// Every class, mildest first.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::LocalWrite,
        Self::Execution,
        Self::ExternalWrite,
        Self::Communication,
        Self::Delete,
        Self::PermissionChange,
        Self::Financial,
        Self::Unknown,
    ];

    /// The class as policies and records write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::LocalWrite => "LOCAL_WRITE",
            Self::Execution => "EXECUTION",
            Self::ExternalWrite => "EXTERNAL_WRITE",
            Self::Communication => "COMMUNICATION",
            Self::Delete => "DELETE",
            Self::PermissionChange => "PERMISSION_CHANGE",
            Self::Financial => "FINANCIAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// The class with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|risk| risk.name() == name)
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of risk classes; written as a list, mildest first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RiskSet(u16);

impl RiskSet {
    /// No class.
    pub const EMPTY: Self = Self(0);

    /// Every class.
    pub const ALL: Self = Self((1 << Risk::ALL.len()) - 1);

    /// Every class but UNKNOWN.
    pub const KNOWN: Self = Self(Self::ALL.0 & !(1 << Risk::Unknown as u16));

    /// Exactly one class.
    pub fn of(risk: Risk) -> Self {
        Self(risk.bit())
    }

    /// The classes that are in both.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Takes a class away.
    pub fn remove(&mut self, risk: Risk) {
        self.0 &= !risk.bit();
    }

    /// Adds a class.
    pub fn insert(&mut self, risk: Risk) {
        self.0 |= risk.bit();
    }

    /// The classes of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the class is in the set.
    pub fn contains(self, risk: Risk) -> bool {
        self.0 & risk.bit() != 0
    }

    /// Whether every class of this set is in the other.
    pub fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether the sets have a class in common.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is no class.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The classes, mildest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Risk> {
        Risk::ALL.into_iter().filter(move |risk| self.contains(*risk))
    }

    /// The gravest class; UNKNOWN for an empty set.
    pub fn gravest(self) -> Risk {
        self.iter().next_back().unwrap_or(Risk::Unknown)
    }
}

impl Extend<Risk> for RiskSet {
    fn extend<I: IntoIterator<Item = Risk>>(&mut self, risks: I) {
        risks.into_iter().for_each(|risk| self.insert(risk));
    }
}

impl FromIterator<Risk> for RiskSet {
    fn from_iter<I: IntoIterator<Item = Risk>>(risks: I) -> Self {
        risks
            .into_iter()
            .fold(Self::EMPTY, |set, risk| set.union(Self::of(risk)))
    }
}

impl fmt::Debug for RiskSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for RiskSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for RiskSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Risk>::deserialize(deserializer).map(Self::from_iter)
    }
}
