//! Generations: what happens when the database may have lost commits.

use std::collections::BTreeMap;

use chain::{
    hash::Hash,
    link::{Head, Position, split_header},
    record::Header,
};

use super::{
    acts, approvals,
    ingest::{self, NewRow},
    tx::{Connection, Tx},
    value::args,
};
use crate::store::{
    error::{StoreError, StoreResult},
    records::OWN_SOURCE,
    types::{Act, Revision, Topic},
};

/// How many records are linked anew at a time.
const CHUNK: u32 = 5000;

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
    let cancelled = approvals::cancel_unconsumed(tx, "a new generation of the database").await?;
    restart_chain(tx, revision.generation, reason, by, cancelled).await?;
    tx.wake(Topic::Changes);
    tx.wake(Topic::Approvals);
    Ok(revision)
}

/// Begins the chain of a generation at the last checkpoint. What stood behind that checkpoint is linked anew: no statement covered it.
async fn restart_chain(
    tx: &mut Tx,
    generation: u64,
    reason: &str,
    by: &str,
    cancelled: u64,
) -> StoreResult<()> {
    let left = tx
        .one("SELECT generation, seq, hash FROM chain_head FOR UPDATE", &[])
        .await?;
    let checkpoint = tx
        .row(
            "SELECT generation, seq, hash FROM checkpoints ORDER BY generation DESC, seq DESC LIMIT 1",
            &[],
        )
        .await?;
    let (mut after, hash) = match &checkpoint {
        Some(row) => (
            Position {
                generation: row.count("generation")?,
                seq: row.count("seq")?,
            },
            Hash::from_bytes(row.hash("hash")?),
        ),
        None => (Position::default(), Hash::ZERO),
    };
    ingest::move_head(tx, &Head::of_generation(generation, hash)).await?;
    let details = serde_json::json!({
        "reason": reason,
        "left_at": { "generation": left.count("generation")?, "seq": left.count("seq")? },
        "checkpoint": { "generation": after.generation, "seq": after.seq },
        "approvals_cancelled": cancelled,
    });
    acts::append(tx, &Act::new("mesh.generation", by, details)).await?;
    let mut reached: BTreeMap<(String, u64), u64> = BTreeMap::new();
    while let Some(last) = relink(tx, after, generation, &mut reached).await? {
        after = last;
    }
    let head = ingest::locked_writer(tx).await?.head();
    tx.run(
        "DELETE FROM ingest_marks WHERE generation < $1",
        &args![generation],
    )
    .await?;
    let marks = reached
        .iter()
        .map(|((sidecar, epoch), n)| (sidecar.as_str(), *epoch, *n));
    ingest::write_marks(tx, &head, marks).await
}

/// Moves one chunk of records after a position into the new generation; answers where it ended. `None`: none were left.
async fn relink(
    tx: &mut Tx,
    after: Position,
    generation: u64,
    reached: &mut BTreeMap<(String, u64), u64>,
) -> StoreResult<Option<Position>> {
    let rows = tx
        .rows(
            "SELECT generation, seq, header, payload FROM records WHERE (generation, seq) > ($1, $2) \
             AND generation < $3 ORDER BY generation, seq LIMIT $4",
            &args![after.generation, after.seq, generation, CHUNK],
        )
        .await?;
    let mut writer = ingest::locked_writer(tx).await?;
    let stored_at = tx.now().await?;
    let key_id = writer.key_id().unwrap_or_default().to_owned();
    let invalid = |reason: String| StoreError::Invalid {
        what: "stored record",
        reason,
    };
    let mut last = None;
    let mut read = Vec::with_capacity(rows.len());
    for row in &rows {
        let header = row.text("header")?;
        let record = Header::decode(&header)
            .map_err(|error| invalid(error.to_string()))?
            .record;
        let (_, fields) =
            split_header(&header).ok_or_else(|| invalid("its header has no position".to_owned()))?;
        let linked = writer
            .append(&format!("{{{fields}"))
            .map_err(|error| invalid(error.to_string()))?;
        last = Some(Position {
            generation: row.count("generation")?,
            seq: row.count("seq")?,
        });
        if let (Some(sidecar), Some(epoch), Some(n)) = (&record.sidecar, record.epoch, record.n) {
            reached.insert((sidecar.to_string(), epoch), n);
        }
        read.push((linked, record, row.maybe_text("payload")?));
    }
    let Some(last) = last else { return Ok(None) };
    let fresh: Vec<NewRow<'_>> = read
        .iter()
        .map(|(linked, source, payload)| NewRow {
            linked: linked.clone(),
            key_id: key_id.clone(),
            stored_at,
            source,
            payload: payload.as_deref(),
        })
        .collect();
    tx.run(
        "DELETE FROM records WHERE (generation, seq) > ($1, $2) AND (generation, seq) <= ($3, $4)",
        &args![after.generation, after.seq, last.generation, last.seq],
    )
    .await?;
    ingest::write_rows(tx, &fresh).await?;
    ingest::move_head(tx, &writer.head()).await?;
    Ok(Some(last))
}
