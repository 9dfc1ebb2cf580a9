//! The order of desired state.

use std::fmt;

use proto::v1;

/// (generation, number) of the last change that a view contains. Ordered: a higher generation is later than every number of a
/// lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    /// Grows when the database may have lost commits.
    pub generation: u64,
    /// Number of the last change within the generation.
    pub number: u64,
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.generation, self.number)
    }
}

impl From<v1::Revision> for Revision {
    fn from(revision: v1::Revision) -> Self {
        Self {
            generation: revision.generation,
            number: revision.number,
        }
    }
}

impl From<Revision> for v1::Revision {
    fn from(revision: Revision) -> Self {
        Self {
            generation: revision.generation,
            number: revision.number,
        }
    }
}

impl From<Revision> for chain::record::Revision {
    fn from(revision: Revision) -> Self {
        Self {
            generation: revision.generation,
            number: revision.number,
        }
    }
}
