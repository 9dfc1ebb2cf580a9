//! The signed text of a checkpoint.

use chain::checkpoint::{Checkpoint, CheckpointError};
use chain::hash::Hash;
use chain::timestamp::Timestamp;

use crate::keys::KeyRing;
use crate::store::records::{ChainHead, CheckpointRow};

/// Signs the chain's head.
///
/// # Errors
/// When the checkpoint cannot be written as JSON.
pub(super) fn checkpoint(head: &ChainHead, keys: &KeyRing) -> Result<CheckpointRow, CheckpointError> {
    let signed = keys.checkpoint_signer().sign(&Checkpoint {
        origin: keys.installation(),
        generation: head.at.generation,
        seq: head.at.seq,
        hash: Hash::from(head.hash),
        time: Timestamp::from_micros(head.database_time),
    })?;
    Ok(CheckpointRow {
        at: head.at,
        hash: head.hash,
        time: head.database_time,
        signature: signed.signature_bytes().unwrap_or([0; 64]).to_vec(),
        key_id: signed.key_id,
        text: signed.text,
    })
}
