//! Signed statements of the chain's head, made in time also when nothing happens.
//!
//! Every replica looks; whoever looks first when one is due makes it, and the store refuses what contradicts an earlier one.

use std::sync::Arc;
use std::time::Duration;

use net::clock::micros;
use serde_json::json;

use super::notice::Notice;
use crate::core::Core;
use crate::store::records::{ChainHead, ChainPosition, CheckpointRow};
use crate::store::{Act, StoreError, StoreResult};

/// A checkpoint is due after this many records.
const RECORDS: u64 = 10_000;
const LOOK: Duration = Duration::from_millis(500);

/// Makes and announces checkpoints until the shutdown.
pub(crate) async fn keep_checkpoints(core: Arc<Core>) {
    let mut fork_told = None;
    let mut generation = core.hub.revision().generation;
    loop {
        if let Err(error) = look(&core, &mut generation, &mut fork_told).await {
            tracing::debug!(%error, "the chain's head is not covered by a checkpoint yet");
        }
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            () = tokio::time::sleep(LOOK.min(core.lifetimes.checkpoint)) => {}
        }
    }
}

async fn look(core: &Core, generation: &mut u64, fork_told: &mut Option<ChainPosition>) -> StoreResult<()> {
    let mut newest = core.store.checkpoints(1).await?.into_iter().next();
    let known = core.checkpoints.borrow().clone();
    if let Some(known) = &known
        && newest.as_ref() != Some(&known.checkpoint)
        && super::held::compare_with_own(core, &known.checkpoint).await?
    {
        // The next look sees the chain of the new generation.
        return Ok(());
    }
    let head = core.store.chain_head().await?;
    core.metrics.chain_moved(head.at.seq);
    match newest.as_ref().filter(|newest| is_fork(&head, newest)) {
        Some(newest) => tell_fork(core, &head, newest, fork_told).await?,
        None if is_due(core, &head, newest.as_ref()) => newest = Some(make(core, &head).await?),
        None => {}
    }
    let Some(newest) = newest else { return Ok(()) };
    let is_news = known.is_none_or(|known| known.checkpoint.time != newest.time);
    if is_news || *generation != head.at.generation {
        core.marks.refresh(&*core.store, &core.sidecars).await?;
        *generation = head.at.generation;
    }
    if is_news {
        core.metrics.checkpoint_made(newest.at.seq);
        core.checkpoints.send_replace(Some(Arc::new(Notice::new(newest))));
    }
    Ok(())
}

fn is_due(core: &Core, head: &ChainHead, newest: Option<&CheckpointRow>) -> bool {
    if head.at.seq == 0 {
        return false;
    }
    newest.is_none_or(|newest| {
        newest.at.generation != head.at.generation
            || head.at.seq - newest.at.seq >= RECORDS
            || head.database_time - newest.time >= micros(core.lifetimes.checkpoint)
    })
}

/// A head behind the last checkpoint of its generation, or another record in its place. Never signed.
fn is_fork(head: &ChainHead, newest: &CheckpointRow) -> bool {
    head.at < newest.at || (head.at == newest.at && head.hash != newest.hash)
}

async fn make(core: &Core, head: &ChainHead) -> StoreResult<CheckpointRow> {
    let row = super::signed::checkpoint(head, &core.keys).map_err(|error| StoreError::Invalid {
        what: "checkpoint",
        reason: error.to_string(),
    })?;
    match core.store.insert_checkpoint(row.clone()).await {
        Err(error @ StoreError::Fork { .. }) => {
            tracing::error!(%error, "ALARM: the chain contradicts a checkpoint; run `toolgate trace verify`");
            Err(error)
        }
        other => other.map(|()| row),
    }
}

async fn tell_fork(
    core: &Core,
    head: &ChainHead,
    newest: &CheckpointRow,
    told: &mut Option<ChainPosition>,
) -> StoreResult<()> {
    if *told == Some(newest.at) {
        return Ok(());
    }
    tracing::error!(
        generation = head.at.generation,
        head = head.at.seq,
        checkpoint = newest.at.seq,
        "ALARM: the chain is behind its last checkpoint; records were lost or removed; run `toolgate trace verify`"
    );
    let details = json!({
        "head": {"generation": head.at.generation, "seq": head.at.seq},
        "checkpoint": {"generation": newest.at.generation, "seq": newest.at.seq},
    });
    core.store
        .append_act(Act::new("mesh.fork", "system", details))
        .await?;
    *told = Some(newest.at);
    Ok(())
}
