//! Why a benchmark could not be run.

use std::io;

/// A benchmark that cannot go on stops with one line.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// Something answered differently than expected.
    #[error("{0}")]
    Unexpected(String),
}

/// What benchmarks answer.
pub type Result<T> = std::result::Result<T, BenchError>;

/// Says what was being done when something failed.
pub trait During<T> {
    /// The error with what was being done in front of it.
    ///
    /// # Errors
    /// When `self` is one.
    fn during(self, doing: &str) -> Result<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, doing: &str) -> Result<T> {
        self.map_err(|source| BenchError::Io {
            doing: doing.to_owned(),
            source,
        })
    }
}

/// Anything that displays, as an error of a benchmark.
pub fn unexpected(error: impl std::fmt::Display) -> BenchError {
    BenchError::Unexpected(error.to_string())
}
