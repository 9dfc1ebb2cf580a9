//! Why the spool could not take something.

use std::path::PathBuf;
use std::sync::Arc;

/// The call that wanted to be kept is denied with `audit_unavailable`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SpoolError {
    /// As many bytes are kept as the configuration allows, because the control plane has not settled them.
    #[error(
        "the spool holds {used} of at most {limit} bytes; records wait for the control plane: restore the link to it, or raise spool.max_bytes"
    )]
    Full {
        /// Bytes in use.
        used: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Another process uses the directory.
    #[error("the spool directory {} is in use by another sidecar process; give each process its own directory", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// A flush to disk failed earlier; what was written since may be gone, so nothing more is promised.
    #[error("a flush of the spool to disk has failed ({reason}); check the volume and restart the sidecar")]
    Broken {
        /// What the operating system said.
        reason: Arc<str>,
    },
    /// The record cannot be written as JSON, or read back.
    #[error("a record is not valid: {reason}")]
    Invalid {
        /// What is wrong.
        reason: String,
    },
    /// The control plane gave an epoch that this spool has used.
    #[error("the control plane gave epoch {given}, but this spool has used epochs up to {highest}")]
    EpochUsed {
        /// What was given.
        given: u64,
        /// The highest one used.
        highest: u64,
    },
}

impl SpoolError {
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            doing,
            path,
            source: Arc::new(source),
        }
    }
}
