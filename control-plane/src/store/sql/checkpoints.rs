//! Checkpoints, and what they settle.

use super::{
    tx::Tx,
    value::{Row, args},
};
use crate::store::{
    error::{StoreError, StoreResult},
    records::{ChainPosition, CheckpointRow},
};

const COLUMNS: &str = "generation, seq, hash, time, text, signature, key_id";

pub(super) async fn insert(tx: &mut Tx, checkpoint: &CheckpointRow) -> StoreResult<()> {
    let fork = |reason: String| StoreError::Fork {
        generation: checkpoint.at.generation,
        seq: checkpoint.at.seq,
        reason,
    };
    let head = tx
        .one("SELECT generation, seq, hash FROM chain_head FOR UPDATE", &[])
        .await?;
    let head_at = ChainPosition {
        generation: head.count("generation")?,
        seq: head.count("seq")?,
    };
    if checkpoint.at.generation != head_at.generation || checkpoint.at.seq > head_at.seq {
        return Err(fork(format!(
            "the head is {}/{}",
            head_at.generation, head_at.seq
        )));
    }
    if let Some(last) = list(tx, 1).await?.first() {
        if last == checkpoint {
            return Ok(());
        }
        if last.at > checkpoint.at {
            return Err(fork(format!(
                "the last checkpoint is {}/{}",
                last.at.generation, last.at.seq
            )));
        }
    }
    let hash = if checkpoint.at == head_at {
        Some(head.hash("hash")?)
    } else {
        hash_at(tx, checkpoint.at).await?
    };
    if hash != Some(checkpoint.hash) {
        return Err(fork("the record there has another hash".to_owned()));
    }
    let sql = format!("INSERT INTO checkpoints ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)");
    tx.run(
        &sql,
        &args![
            checkpoint.at.generation,
            checkpoint.at.seq,
            &checkpoint.hash,
            checkpoint.time,
            &checkpoint.text,
            &checkpoint.signature,
            &checkpoint.key_id,
        ],
    )
    .await?;
    settle(tx, checkpoint.at).await
}

async fn hash_at(tx: &mut Tx, at: ChainPosition) -> StoreResult<Option<[u8; 32]>> {
    tx.row(
        "SELECT hash FROM records WHERE generation = $1 AND seq = $2",
        &args![at.generation, at.seq],
    )
    .await?
    .map(|row| row.hash("hash"))
    .transpose()
}

/// Settles the records at or before a position. A batch that it cuts in two waits for the next checkpoint.
async fn settle(tx: &mut Tx, at: ChainPosition) -> StoreResult<()> {
    let covered = tx
        .rows(
            "SELECT sidecar, epoch, max(n) AS n FROM ingest_marks WHERE (generation, seq) <= ($1, $2) \
             GROUP BY sidecar, epoch ORDER BY sidecar, epoch",
            &args![at.generation, at.seq],
        )
        .await?;
    for row in &covered {
        tx.run(
            "UPDATE epochs SET settled = $3 WHERE sidecar = $1 AND epoch = $2 AND settled < $3",
            &args![row.text("sidecar")?, row.count("epoch")?, row.count("n")?],
        )
        .await?;
    }
    tx.run(
        "DELETE FROM ingest_marks WHERE (generation, seq) <= ($1, $2)",
        &args![at.generation, at.seq],
    )
    .await?;
    Ok(())
}

pub(super) async fn list(tx: &mut Tx, limit: u32) -> StoreResult<Vec<CheckpointRow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM checkpoints ORDER BY generation DESC, seq DESC, time DESC LIMIT $1");
    tx.rows(&sql, &args![limit])
        .await?
        .iter()
        .map(checkpoint)
        .collect()
}

fn checkpoint(row: &Row) -> StoreResult<CheckpointRow> {
    Ok(CheckpointRow {
        at: ChainPosition {
            generation: row.count("generation")?,
            seq: row.count("seq")?,
        },
        hash: row.hash("hash")?,
        time: row.int("time")?,
        text: row.text("text")?,
        signature: row.bytes("signature")?,
        key_id: row.text("key_id")?,
    })
}
