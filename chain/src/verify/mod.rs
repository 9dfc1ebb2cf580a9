//! Verification: whether a chain still is what was written, and where it first is not.
//!
//! It streams: memory does not grow with the number of records. It proves, with public keys only, that no record was
//! changed, inserted, removed or reordered relative to its neighbours, and, relative to checkpoints that somebody
//! else kept, that nothing was rewritten or cut off. With the chain's keys it also proves who wrote the records.
//!
//! What it reports is the FIRST bad place; what follows is not judged.

mod fields;
mod found;
mod lines;
mod options;
mod order;
mod report;
mod scratch;
mod sources;
mod verifier;

#[cfg(test)]
mod tests;

pub use lines::{CheckpointLine, MAX_LINE_BYTES, ReadError, RecordLine, verify_lines};
pub use options::Options;
pub use report::{Damage, DamageKind, Report};
pub use verifier::Verifier;
