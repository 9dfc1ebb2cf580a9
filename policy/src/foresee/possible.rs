//! A set of truth values.

use crate::evaluate::Truth;

/// The results that some arguments could give a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Possible(u8);

fn bit(truth: Truth) -> u8 {
    match truth {
        Truth::False => 1,
        Truth::Undecided => 2,
        Truth::True => 4,
    }
}

impl Possible {
    /// Any of the three.
    pub(crate) const ANY: Possible = Possible(7);
    /// None yet.
    pub(crate) const NONE: Possible = Possible(0);

    /// Exactly one.
    pub(crate) fn only(truth: Truth) -> Self {
        Self(bit(truth))
    }

    /// With one more.
    pub(crate) fn with(self, truth: Truth) -> Self {
        Self(self.0 | bit(truth))
    }

    /// Whether this is among them.
    pub(crate) fn includes(self, truth: Truth) -> bool {
        self.0 & bit(truth) != 0
    }

    /// The one value that it always has; none when it can vary, or is always undecided.
    pub(crate) fn fixed(self) -> Option<bool> {
        match self {
            Self(4) => Some(true),
            Self(1) => Some(false),
            _ => None,
        }
    }

    /// What joining by `and` can give.
    pub(crate) fn and(self, other: Self) -> Self {
        self.combine(other, Truth::and)
    }

    /// What joining by `or` can give.
    pub(crate) fn or(self, other: Self) -> Self {
        self.combine(other, Truth::or)
    }

    fn combine(self, other: Self, join: impl Fn(Truth, Truth) -> Truth) -> Self {
        let mut joined = Self::NONE;
        for one in Truth::ALL.into_iter().filter(|truth| self.includes(*truth)) {
            for two in Truth::ALL.into_iter().filter(|truth| other.includes(*truth)) {
                joined = joined.with(join(one, two));
            }
        }
        joined
    }
}

impl std::ops::Not for Possible {
    type Output = Self;

    fn not(self) -> Self {
        let present = Truth::ALL.into_iter().filter(|truth| self.includes(*truth));
        present.fold(Self::NONE, |turned, truth| turned.with(!truth))
    }
}
