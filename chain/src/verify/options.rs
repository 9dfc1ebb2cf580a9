//! What a chain is verified against.

use crate::checkpoint::{Checkpoint, PublicKeys};
use crate::link::MacKey;

/// What a chain is verified against.
#[derive(Debug, Default)]
pub struct Options {
    /// Checkpoints that somebody else kept, whose signatures have been checked.
    pub checkpoints: Vec<Checkpoint>,
    /// The public keys that sign checkpoints. None: signatures of checkpoints in the input are not checked.
    pub public_keys: PublicKeys,
    /// The chain's keys. None: MACs are not checked.
    pub keys: Vec<MacKey>,
    /// The checkpoint after which the input begins; none: it begins with the chain's first record, or says so itself
    /// by a checkpoint before its first record.
    pub start: Option<Checkpoint>,
    /// Leaves out the sources' own links, which cost one more digest per record.
    pub skip_source_links: bool,
}
