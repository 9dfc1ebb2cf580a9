//! Generations: what happens when the database may have lost commits.

use chain::link::Head;

use super::{
    acts, checkpoints, deadlines, ingest,
    tx::{Connection, Tx},
    value::args,
};
use crate::store::{
    error::StoreResult,
    records::OWN_SOURCE,
    types::{Act, Revision, Topic},
};

/// Compares the database with the one that this data last lived in; another one begins a generation.
pub(crate) async fn adopt(tx: &mut Tx) -> StoreResult<()> {
    let (identifier, timeline) = match tx.connection() {
        Connection::Postgres(_) => {
            let row = tx.one(crate::store::postgres::IDENTITY, &[]).await?;
            (row.text("identifier")?, row.text("timeline")?)
        }
        // A copy of the file cannot be told from the file: a sidecar's checkpoint or the operator says it.
        Connection::Sqlite(_) => ("file".to_owned(), String::new()),
    };
    let row = tx
        .one(
            "SELECT generation, system_identifier, timeline FROM generation FOR UPDATE",
            &[],
        )
        .await?;
    let before = (row.text("system_identifier")?, row.text("timeline")?);
    if before == (identifier.clone(), timeline.clone()) {
        return Ok(());
    }
    let is_new = before.0.is_empty();
    tx.run(
        "UPDATE generation SET system_identifier = $1, timeline = $2",
        &args![&identifier, &timeline],
    )
    .await?;
    if is_new {
        return Ok(());
    }
    let reason = if before.0 == identifier {
        format!(
            "the database was promoted: timeline {} became {timeline}",
            before.1
        )
    } else {
        format!(
            "the data was restored into another database: {} became {identifier}",
            before.0
        )
    };
    begin(tx, None, &reason, "system").await?;
    Ok(())
}

/// Begins a generation, unless one later than `seen` has begun.
pub(super) async fn begin(tx: &mut Tx, seen: Option<u64>, reason: &str, by: &str) -> StoreResult<Revision> {
    let before = tx
        .one("SELECT generation, number FROM revision FOR UPDATE", &[])
        .await?
        .revision()?;
    if seen.is_some_and(|seen| seen < before.generation) {
        return Ok(before);
    }
    let revision = Revision::new(before.generation + 1, 0);
    let now = tx.now().await?;
    tx.run(
        "UPDATE generation SET generation = $1, reason = $2, started_at = $3",
        &args![revision.generation, reason, now],
    )
    .await?;
    tx.run(
        "UPDATE revision SET generation = $1, number = 0",
        &args![revision.generation],
    )
    .await?;
    tx.run(
        "UPDATE epochs SET closed = $2 WHERE sidecar = $1 AND epoch < $3",
        &args![OWN_SOURCE, true, revision.generation],
    )
    .await?;
    let cancelled = deadlines::cancel_unconsumed(tx, "a new generation of the database").await?;
    restart_chain(tx, revision.generation, reason, by, cancelled).await?;
    tx.wake(Topic::Changes);
    tx.wake(Topic::Approvals);
    Ok(revision)
}

/// Begins the chain of a generation: its first record, this act, links the head that is here, and with it the last checkpoint. What stood
/// behind that checkpoint is covered by the next one.
async fn restart_chain(
    tx: &mut Tx,
    generation: u64,
    reason: &str,
    by: &str,
    cancelled: u64,
) -> StoreResult<()> {
    let left = ingest::locked_writer(tx).await?.head();
    let checkpoint = checkpoints::list(tx, 1).await?.pop().map(|row| row.at);
    ingest::move_head(tx, &Head::of_generation(generation, left.hash)).await?;
    let details = serde_json::json!({
        "reason": reason,
        "left_at": { "generation": left.at.generation, "seq": left.at.seq },
        "checkpoint": checkpoint.map(|at| serde_json::json!({ "generation": at.generation, "seq": at.seq })),
        "approvals_cancelled": cancelled,
    });
    acts::append(tx, &Act::new("mesh.generation", by, details)).await?;
    Ok(())
}
