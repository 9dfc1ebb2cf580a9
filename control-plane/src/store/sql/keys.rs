//! Sealed keys.

use async_trait::async_trait;

use super::{
    SqlStore, acts, transact,
    tx::Tx,
    value::{Row, args},
};
use crate::store::{
    error::{StoreError, StoreResult},
    keys::{KeyRow, Keys, SealedKey},
    types::Act,
};

const COLUMNS: &str = "id, purpose, sealed, public, created_at, retired_at";

#[async_trait]
impl Keys for SqlStore {
    async fn ensure_key(&self, candidate: SealedKey) -> StoreResult<KeyRow> {
        transact!(write self, "making a key", tx => ensure(tx, &candidate))
    }

    async fn rotate_key(&self, new: SealedKey, act: Act) -> StoreResult<KeyRow> {
        transact!(write self, "rotating a key", tx => rotate(tx, &new, &act))
    }

    async fn keys(&self, purpose: Option<&str>) -> StoreResult<Vec<KeyRow>> {
        transact!(read self, "reading keys", tx => all(tx, purpose))
    }
}

async fn active(tx: &mut Tx, purpose: &str) -> StoreResult<Option<KeyRow>> {
    let sql = format!("SELECT {COLUMNS} FROM keys WHERE purpose = $1 AND retired_at IS NULL");
    tx.row(&sql, &args![purpose])
        .await?
        .as_ref()
        .map(key_row)
        .transpose()
}

async fn ensure(tx: &mut Tx, candidate: &SealedKey) -> StoreResult<KeyRow> {
    if let Some(active) = active(tx, &candidate.purpose).await? {
        return Ok(active);
    }
    // Of two replicas that come here at once, the second meets the first one's row and tries again.
    insert(tx, candidate).await
}

async fn rotate(tx: &mut Tx, new: &SealedKey, act: &Act) -> StoreResult<KeyRow> {
    let now = tx.now().await?;
    tx.run(
        "UPDATE keys SET retired_at = $2 WHERE purpose = $1 AND retired_at IS NULL",
        &args![&new.purpose, now],
    )
    .await?;
    let row = insert(tx, new).await?;
    acts::append(tx, act).await?;
    Ok(row)
}

async fn insert(tx: &mut Tx, key: &SealedKey) -> StoreResult<KeyRow> {
    let created_at = tx.now().await?;
    tx.run(
        "INSERT INTO keys (id, purpose, sealed, public, created_at) VALUES ($1, $2, $3, $4, $5)",
        &args![&key.id, &key.purpose, &key.sealed, &key.public, created_at],
    )
    .await?;
    active(tx, &key.purpose)
        .await?
        .ok_or_else(|| StoreError::NotFound {
            what: "key",
            id: key.id.clone(),
        })
}

async fn all(tx: &mut Tx, purpose: Option<&str>) -> StoreResult<Vec<KeyRow>> {
    let sql = format!("SELECT {COLUMNS} FROM keys ORDER BY created_at DESC, id");
    let mut keys: Vec<KeyRow> = tx
        .rows(&sql, &[])
        .await?
        .iter()
        .map(key_row)
        .collect::<StoreResult<_>>()?;
    keys.retain(|row| purpose.is_none_or(|purpose| purpose == row.key.purpose));
    Ok(keys)
}

fn key_row(row: &Row) -> StoreResult<KeyRow> {
    Ok(KeyRow {
        key: SealedKey {
            id: row.text("id")?,
            purpose: row.text("purpose")?,
            sealed: row.bytes("sealed")?,
            public: row.bytes("public")?,
        },
        created_at: row.int("created_at")?,
        retired_at: row.maybe_int("retired_at")?,
    })
}
