//! How far the records of each epoch have come.

use super::{
    tx::Tx,
    value::{Arg, Row, args},
};
use crate::store::{
    error::{StoreError, StoreResult},
    sidecars::EpochMark,
};

/// The marks that a condition on `epochs` selects, oldest first.
pub(super) async fn marks(tx: &mut Tx, condition: &str, values: &[Arg]) -> StoreResult<Vec<EpochMark>> {
    let generation = tx
        .one("SELECT generation FROM chain_head", &[])
        .await?
        .count("generation")?;
    let sql = format!(
        "SELECT sidecar, epoch, committed, settled, closed FROM epochs WHERE {condition} ORDER BY sidecar, epoch"
    );
    tx.rows(&sql, values)
        .await?
        .iter()
        .map(|row| mark(row, generation))
        .collect()
}

fn mark(row: &Row, generation: u64) -> StoreResult<EpochMark> {
    Ok(EpochMark {
        sidecar: row.text("sidecar")?,
        epoch: row.count("epoch")?,
        committed: row.count("committed")?,
        settled: row.count("settled")?,
        generation,
        closed: row.flag("closed")?,
    })
}

/// `column IN ($first, …)`.
pub(super) fn one_of(column: &str, first: usize, count: usize) -> String {
    let places: Vec<String> = (first..first + count)
        .map(|number| format!("${number}"))
        .collect();
    format!("{column} IN ({})", places.join(", "))
}

pub(super) async fn of_sidecar(tx: &mut Tx, sidecar: &str, epochs: &[u64]) -> StoreResult<Vec<EpochMark>> {
    if epochs.is_empty() {
        return Ok(Vec::new());
    }
    let mut values = vec![Arg::from(sidecar)];
    values.extend(epochs.iter().map(|epoch| Arg::from(*epoch)));
    let condition = format!("sidecar = $1 AND {}", one_of("epoch", 2, epochs.len()));
    marks(tx, &condition, &values).await
}

/// What is not closed or not settled of these sidecars.
pub(super) async fn open(tx: &mut Tx, sidecars: &[String]) -> StoreResult<Vec<EpochMark>> {
    let mut found = Vec::new();
    for chunk in sidecars.chunks(5000) {
        let values: Vec<Arg> = chunk.iter().map(Arg::from).collect();
        let condition = format!(
            "(NOT closed OR settled < committed) AND {}",
            one_of("sidecar", 1, chunk.len())
        );
        found.extend(marks(tx, &condition, &values).await?);
    }
    Ok(found)
}

pub(super) async fn close(tx: &mut Tx, sidecar: &str, epoch: u64, last: u64) -> StoreResult<EpochMark> {
    let no_epoch = || StoreError::NoOpenEpoch {
        sidecar: sidecar.to_owned(),
        epoch,
    };
    let lock = "SELECT committed FROM epochs WHERE sidecar = $1 AND epoch = $2 FOR UPDATE";
    let mut row = tx.row(lock, &args![sidecar, epoch]).await?;
    if row.is_none() {
        // An epoch without any record, which a restore lost, is told of by its end alone.
        adopt(tx, &[(sidecar, epoch)]).await?;
        row = tx.row(lock, &args![sidecar, epoch]).await?;
    }
    let committed = row.ok_or_else(no_epoch)?.count("committed")?;
    if committed < last {
        return Err(StoreError::Hole {
            sidecar: sidecar.to_owned(),
            epoch,
            expected: committed + 1,
            found: last + 1,
        });
    }
    tx.run(
        "UPDATE epochs SET closed = $3 WHERE sidecar = $1 AND epoch = $2",
        &args![sidecar, epoch, true],
    )
    .await?;
    of_sidecar(tx, sidecar, &[epoch])
        .await?
        .into_iter()
        .next()
        .ok_or_else(no_epoch)
}

/// In a later generation than the first: makes rows for epochs that a restore lost, those below the present epoch of a sidecar that is
/// known. Any number may come first there.
pub(super) async fn adopt(tx: &mut Tx, epochs: &[(&str, u64)]) -> StoreResult<()> {
    let head = tx.one("SELECT generation FROM chain_head", &[]).await?;
    if head.count("generation")? <= 1 {
        return Ok(());
    }
    for (sidecar, epoch) in epochs {
        tx.run(
            "INSERT INTO epochs (sidecar, epoch, started_at, generation, committed, settled, source_hash, closed) \
             SELECT id, $2, enrolled_at, 0, 0, 0, $3, $4 FROM sidecars \
             WHERE id = $1 AND epoch > $2 AND revoked_at IS NULL ON CONFLICT (sidecar, epoch) DO NOTHING",
            &args![*sidecar, *epoch, &[0_u8; 32], false],
        )
        .await?;
    }
    Ok(())
}
