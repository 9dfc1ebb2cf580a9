//! The chain against what somebody remembers of it, a sidecar or this replica: a chain that is behind has lost commits.

use std::time::Duration;

use chain::checkpoint::{Checkpoint, SignedCheckpoint};
use proto::v1::CheckpointNotice;
use tonic::Status;

use crate::core::Core;
use crate::grpc::store_status;
use crate::store::records::{ChainHead, ChainPosition, CheckpointRow};
use crate::store::{Revision, StoreResult};

/// How long the view here may take to follow a new generation.
const PATIENCE: Duration = Duration::from_secs(10);

/// Compares the newest checkpoint that a sidecar was given with the chain; begins new generations until the chain is ahead of it.
///
/// # Errors
/// Unavailable when the store cannot be asked: without an answer no view may be given.
pub(crate) async fn compare_with_held(core: &Core, held: &CheckpointNotice) -> Result<(), Status> {
    let Some(held) = proven(core, held).await else {
        tracing::warn!(key_id = ?held.key_id, "a sidecar holds a checkpoint that no key of this installation signed; it is left out");
        return Ok(());
    };
    let at = ChainPosition {
        generation: held.generation,
        seq: held.seq,
    };
    if at.seq == 0 || is_newest(core, at, held.hash.as_bytes()) {
        return Ok(());
    }
    let begun = outlive(core, at, held.hash.as_bytes(), "a sidecar")
        .await
        .map_err(store_status)?;
    match begun {
        Some(begun) if !core.hub.reaches(begun, PATIENCE).await => Err(Status::unavailable(
            "the new generation has not been read yet; reconnect",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Compares the checkpoint that this replica read last with the chain, which a restore in place moves back under it. `true` when a new
/// generation was begun.
///
/// # Errors
/// When the store fails.
pub(super) async fn compare_with_own(core: &Core, own: &CheckpointRow) -> StoreResult<bool> {
    let begun = outlive(core, own.at, &own.hash, "a replica").await?;
    Ok(begun.is_some())
}

/// Begins new generations until none that `holder` holds a checkpoint of is contradicted; the last one begun.
async fn outlive(core: &Core, at: ChainPosition, hash: &[u8], holder: &str) -> StoreResult<Option<Revision>> {
    let mut begun = None;
    // Each round begins a later generation, so this ends.
    loop {
        let head = core.store.chain_head().await?;
        let Some(what) = contradiction(core, &head, at, hash).await? else {
            return Ok(begun);
        };
        let reason = format!(
            "the chain {what} the checkpoint {}/{} that {holder} holds",
            at.generation, at.seq
        );
        begun = Some(core.begin_generation(head.at.generation, &reason).await?);
    }
}

/// What the checkpoint states, when a key of this installation signed it: a sidecar's word alone must not move the fleet.
async fn proven(core: &Core, held: &CheckpointNotice) -> Option<Checkpoint> {
    let signed = SignedCheckpoint::from_parts(held.text.clone(), &held.signature, held.key_id.clone());
    let stated = match core.keys.checkpoint_keys().verify(&signed) {
        Ok(stated) => stated,
        Err(_) => {
            // Another replica may have made the key a moment ago.
            core.keys.refresh_seldom(&*core.store, &core.clock).await;
            core.keys.checkpoint_keys().verify(&signed).ok()?
        }
    };
    (stated.origin == core.keys.installation()).then_some(stated)
}

fn is_newest(core: &Core, at: ChainPosition, hash: &[u8]) -> bool {
    let newest = core.checkpoints.borrow();
    newest
        .as_ref()
        .is_some_and(|newest| newest.checkpoint.at == at && newest.checkpoint.hash == hash)
}

/// How the chain contradicts a checkpoint, if it does.
async fn contradiction(
    core: &Core,
    head: &ChainHead,
    held: ChainPosition,
    hash: &[u8],
) -> StoreResult<Option<&'static str>> {
    if held.generation < head.at.generation {
        return Ok(None);
    }
    if held > head.at {
        return Ok(Some("is behind"));
    }
    let before = ChainPosition {
        generation: held.generation,
        seq: held.seq.saturating_sub(1),
    };
    let found = core.store.records_after(before, 1).await?;
    let is_same = found
        .first()
        .is_none_or(|record| record.at != held || record.hash == hash);
    Ok((!is_same).then_some("contradicts"))
}
