//! Why the store could not do what was asked.

use super::{approvals::ApprovalStatus, types::Revision};

/// Result of a store operation.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why the store could not do what was asked. Nothing was changed, except where a variant says so.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or opened.
    #[error("cannot open the database {at}: {reason}")]
    Unreachable {
        /// Host, port and database name, or the path; never a password.
        at: String,
        /// What the driver said and what to do.
        reason: String,
    },
    /// The schema cannot be brought to this build's version.
    #[error("cannot migrate the database {at}: {reason}")]
    Migration {
        /// As in [`StoreError::Unreachable`].
        at: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// There is no such thing (404).
    #[error("there is no {what} `{id}`")]
    NotFound {
        /// Kind of thing, a glossary word.
        what: &'static str,
        /// The id, name or prefix asked for.
        id: String,
    },
    /// A prefix fits several (409).
    #[error("several {what}s begin with `{prefix}`; give more of the id")]
    Ambiguous {
        /// Kind of thing.
        what: &'static str,
        /// The prefix asked for.
        prefix: String,
    },
    /// Somebody else changed it in between (412).
    #[error("{what} `{id}` is at version {found}, not {expected}; read it again")]
    Precondition {
        /// Kind of thing.
        what: &'static str,
        /// Its name.
        id: String,
        /// Version that the caller expected; 0: absent.
        expected: u64,
        /// Version that is there; 0: absent.
        found: u64,
    },
    /// The change contradicts what is there (409).
    #[error("{reason}")]
    Conflict {
        /// What contradicts it and what to do.
        reason: String,
    },
    /// The approval has been resolved before (409).
    #[error("approval {id} is already {}", status.as_str())]
    AlreadyResolved {
        /// The approval's id.
        id: String,
        /// What it is now.
        status: ApprovalStatus,
    },
    /// The revision asked about belongs to another generation, or its changes are no longer kept: read the desired state in full.
    #[error("changes after {asked} are not there: the head is {head}")]
    ChangesGone {
        /// The revision asked about.
        asked: Revision,
        /// The present head.
        head: Revision,
    },
    /// A batch does not continue its epoch.
    #[error(
        "records of sidecar {sidecar} epoch {epoch} continue at {expected}, but the batch begins with or skips to {found}"
    )]
    Hole {
        /// Sidecar id.
        sidecar: String,
        /// Epoch of the sidecar.
        epoch: u64,
        /// Number that must come next.
        expected: u64,
        /// Number that came.
        found: u64,
    },
    /// The epoch is unknown or closed.
    #[error("sidecar {sidecar} has no open epoch {epoch}")]
    NoOpenEpoch {
        /// Sidecar id.
        sidecar: String,
        /// Epoch asked about.
        epoch: u64,
    },
    /// A checkpoint would contradict the chain or an earlier checkpoint.
    #[error("the checkpoint at {generation}/{seq} contradicts the chain: {reason}")]
    Fork {
        /// Generation of the refused checkpoint.
        generation: u64,
        /// Its sequence number.
        seq: u64,
        /// What differs.
        reason: String,
    },
    /// An enrolment was refused.
    #[error(transparent)]
    Enrolment(#[from] EnrolRefusal),
    /// Something stored or given cannot be read.
    #[error("{what}: {reason}")]
    Invalid {
        /// What it was to be.
        what: &'static str,
        /// Why it is not.
        reason: String,
    },
    /// The database refused or failed; the transaction was rolled back (or its outcome is unknown if the connection broke in the
    /// commit: every operation can be repeated).
    #[error("the database failed while {doing}: {source}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What the driver said.
        source: sqlx::Error,
    },
}

/// Why an enrolment was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnrolRefusal {
    /// No such join token.
    #[error("the join token is not known; create one with `toolgate sidecars tokens create`")]
    UnknownToken,
    /// The join token has expired or was revoked.
    #[error("the join token has expired; create one with `toolgate sidecars tokens create`")]
    TokenExpired,
    /// The join token has been used as often as it may be.
    #[error("the join token is used up; create one with `toolgate sidecars tokens create`")]
    TokenUsedUp,
    /// No such sidecar id (lost by a restore, or never there).
    #[error("sidecar {0} is not known here; enrol it anew with a join token")]
    UnknownSidecar(String),
    /// The renewal secret is not this id's.
    #[error("the renewal secret is not that of sidecar {0}")]
    WrongSecret(String),
    /// An operator revoked the id.
    #[error("sidecar {0} was revoked; enrol it anew with a join token and an empty spool directory")]
    Revoked(String),
    /// A newer process of the same id has started.
    #[error("sidecar {sidecar} is at epoch {current}, so epoch {asked} has ended")]
    StaleEpoch {
        /// Sidecar id.
        sidecar: String,
        /// Epoch of the caller.
        asked: u64,
        /// Present epoch.
        current: u64,
    },
}
