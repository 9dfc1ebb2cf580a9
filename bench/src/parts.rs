//! The parts of a run, each with its own figures.

pub mod calls;
pub mod criterion;
pub mod fleet;
pub mod ingest;
pub mod limits;
pub mod programs;
pub mod start;
pub mod verification;

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Rounds of what is compared.
    pub rounds: usize,
    /// Seconds of each load.
    pub seconds: f64,
    /// Records reported and verified.
    pub records: usize,
    /// Edits whose way to the fleet is measured.
    pub edits: usize,
}
