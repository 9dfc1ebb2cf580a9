//! Three values.

use serde::{Deserialize, Serialize};

/// The result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Truth {
    /// It does not hold.
    False,
    /// It cannot be known whether it holds.
    Undecided,
    /// It holds.
    True,
}

impl Truth {
    /// The three values.
    pub const ALL: [Truth; 3] = [Truth::False, Truth::Undecided, Truth::True];

    /// False if either is false, else undecided if either is, else true.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::True, Self::True) => Self::True,
        }
    }

    /// True if either is true, else undecided if either is, else false.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::True, _) | (_, Self::True) => Self::True,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::False, Self::False) => Self::False,
        }
    }

    /// Joins by [`Truth::and`]; true for none. Stops at the first false.
    pub fn all(truths: impl IntoIterator<Item = Self>) -> Self {
        let mut joined = Self::True;
        for truth in truths {
            joined = joined.and(truth);
            if joined == Self::False {
                break;
            }
        }
        joined
    }

    /// Joins by [`Truth::or`]; false for none. Stops at the first true.
    pub fn any(truths: impl IntoIterator<Item = Self>) -> Self {
        let mut joined = Self::False;
        for truth in truths {
            joined = joined.or(truth);
            if joined == Self::True {
                break;
            }
        }
        joined
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::Undecided => Self::Undecided,
            Self::False => Self::True,
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}
