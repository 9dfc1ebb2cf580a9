//! Verification of the chain that this installation holds.

use chain::checkpoint::{PublicKey, PublicKeys};
use chain::hash::Hash;
use chain::verify::{Options, RecordLine, Report, Verifier};
use tokio::sync::mpsc;

use super::reader::{ChainItem, ChainReader, Part};
use crate::core::Core;
use crate::store::{StoreError, StoreResult};

/// Batches that wait for the verifying thread; the store is not read faster than it verifies.
const AHEAD: usize = 4;

/// Reads the whole chain and verifies it on a thread of its own.
///
/// # Errors
/// When the store fails, or the process is going down.
pub(crate) async fn verify(core: &Core) -> StoreResult<Report> {
    let options = Options {
        public_keys: public_keys(core),
        keys: core.trace_keys.clone(),
        ..Options::default()
    };
    let mut reader = ChainReader::open(core.store.clone(), Part::default()).await?;
    let (sender, mut batches) = mpsc::channel::<Vec<ChainItem>>(AHEAD);
    let verifying = core.tasks.spawn_blocking(move || {
        let mut verifier = Verifier::new(options);
        while let Some(batch) = batches.blocking_recv() {
            batch.iter().for_each(|item| take(&mut verifier, item));
        }
        verifier.finish()
    });
    while let Some(batch) = reader.next().await? {
        if sender.send(batch).await.is_err() {
            break;
        }
    }
    drop(sender);
    verifying.await.map_err(|error| StoreError::Invalid {
        what: "verification",
        reason: error.to_string(),
    })
}

fn take(verifier: &mut Verifier, item: &ChainItem) {
    match item {
        ChainItem::Record(record) => verifier.record(&line(record)),
        ChainItem::Checkpoint(checkpoint) => verifier.checkpoint(checkpoint),
    }
}

/// A stored record as it stands in an export.
pub(crate) fn line(record: &crate::store::records::StoredRecord) -> RecordLine<'_> {
    RecordLine {
        header: &record.header,
        payload: record.payload.as_deref(),
        hash: Hash::from_bytes(record.hash),
        mac: record.mac.map(Hash::from_bytes),
        key_id: Some(record.key_id.as_str()).filter(|id| !id.is_empty()),
    }
}

/// The public keys that sign checkpoints, retired ones included.
fn public_keys(core: &Core) -> PublicKeys {
    core.keys
        .public_keys()
        .iter()
        .filter(|key| key.purpose == "checkpoint")
        .filter_map(|key| <[u8; 32]>::try_from(key.ed25519.as_ref()).ok())
        .filter_map(|bytes| PublicKey::from_bytes(&bytes).ok())
        .collect()
}
