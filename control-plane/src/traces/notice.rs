//! The newest checkpoint, as sidecars are told of it.

use bytes::Bytes;
use proto::v1::watch_response::Message;
use proto::v1::{CheckpointNotice, CheckpointRef};

use crate::snapshot::encode;
use crate::store::records::CheckpointRow;

/// A checkpoint with its encoded message, shared by all receivers.
#[derive(Debug)]
pub struct Notice {
    /// The checkpoint.
    pub checkpoint: CheckpointRow,
    /// An encoded `WatchResponse`.
    pub bytes: Bytes,
}

impl Notice {
    /// Makes the message once.
    #[must_use]
    pub fn new(checkpoint: CheckpointRow) -> Self {
        let message = CheckpointNotice {
            text: checkpoint.text.clone(),
            signature: checkpoint.signature.clone().into(),
            key_id: checkpoint.key_id.clone(),
            at: Some(CheckpointRef {
                generation: checkpoint.at.generation,
                seq: checkpoint.at.seq,
                hash: checkpoint.hash.to_vec().into(),
            }),
        };
        Self {
            checkpoint,
            bytes: encode(Message::Checkpoint(message)),
        }
    }
}
