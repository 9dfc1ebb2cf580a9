//! Types that several concerns of the store share.

use std::{fmt, str::FromStr};

use proto::v1;

use super::error::{StoreError, StoreResult};

/// Unix microseconds, UTC. Those that the store returns are by the database's clock.
pub type Micros = i64;

/// The order of desired state: a higher generation is later than every number of a lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    /// From 1; grows when the database may have lost commits.
    pub generation: u64,
    /// Number of the last change within the generation, 0 before the first.
    pub number: u64,
}

impl Revision {
    /// The revision `number` of `generation`.
    #[must_use]
    pub fn new(generation: u64, number: u64) -> Self {
        Self { generation, number }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.generation, self.number)
    }
}

impl FromStr for Revision {
    type Err = StoreError;

    fn from_str(text: &str) -> StoreResult<Self> {
        text.split_once('.')
            .and_then(|(generation, number)| {
                Some(Self {
                    generation: generation.parse().ok()?,
                    number: number.parse().ok()?,
                })
            })
            .ok_or_else(|| StoreError::Invalid {
                what: "revision",
                reason: format!("`{text}` is not of the form <generation>.<number>"),
            })
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

impl From<v1::Revision> for Revision {
    fn from(revision: v1::Revision) -> Self {
        Self {
            generation: revision.generation,
            number: revision.number,
        }
    }
}

/// Everything that a replica polls, read by one statement from the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Of desired state.
    pub revision: Revision,
    /// The database's clock at the read.
    pub database_time: Micros,
    /// Of the newest stop or lifting.
    pub stop_sequence: u64,
    /// Of the newest approval event.
    pub approval_cursor: u64,
    /// Of the newest event about a sidecar (new epoch, revocation).
    pub sidecar_sequence: u64,
}

/// What a wake-up is about. Wake-ups only shorten the wait for the next poll; they may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Desired state has a new revision.
    Changes,
    /// A stop was made or lifted.
    Stops,
    /// An approval changed.
    Approvals,
    /// A sidecar started an epoch or was revoked.
    Sidecars,
    /// Records were committed.
    Records,
}

impl Topic {
    /// Every topic.
    pub const ALL: [Self; 5] = [
        Self::Changes,
        Self::Stops,
        Self::Approvals,
        Self::Sidecars,
        Self::Records,
    ];

    /// The name in notifications.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Stops => "stops",
            Self::Approvals => "approvals",
            Self::Sidecars => "sidecars",
            Self::Records => "records",
        }
    }
}

/// A governance act of the control plane. The store writes it as a record of the chain, in the transaction of the change that it
/// describes, so that neither is there without the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// What was done, in the form of a tool name: `mesh.policy_edit`, `mesh.pin_accept`, `mesh.stop`, …
    pub name: String,
    /// The proven identity of who did it.
    pub by: String,
    /// Namespace that it concerns; empty: the whole installation.
    pub namespace: String,
    /// Agent that it concerns; empty: none in particular.
    pub agent: String,
    /// What exactly; becomes the record's erasable payload (`params`).
    pub details: serde_json::Value,
}

impl Act {
    /// An act that concerns the whole installation.
    #[must_use]
    pub fn new(name: &str, by: &str, details: serde_json::Value) -> Self {
        Self {
            name: name.to_owned(),
            by: by.to_owned(),
            namespace: String::new(),
            agent: String::new(),
            details,
        }
    }

    /// The same act, as one that concerns `namespace`.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.to_owned();
        self
    }

    /// The same act, as one that concerns `agent`.
    #[must_use]
    pub fn about_agent(mut self, agent: &str) -> Self {
        self.agent = agent.to_owned();
        self
    }
}
