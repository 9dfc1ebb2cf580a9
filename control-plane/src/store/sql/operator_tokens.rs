//! Tokens of operators, known by their hashes.

use async_trait::async_trait;

use super::{
    SqlStore, acts, random_id, transact,
    tx::Tx,
    value::{Row, args, to_json},
};
use crate::store::{
    error::{StoreError, StoreResult},
    operator_tokens::{OperatorToken, OperatorTokenDraft, OperatorTokens},
    types::Act,
};

const COLUMNS: &str = "id, hash, name, role, namespaces, created_at, created_by, expires_at";

#[async_trait]
impl OperatorTokens for SqlStore {
    async fn create_operator_token(&self, draft: OperatorTokenDraft, act: Act) -> StoreResult<OperatorToken> {
        transact!(write self, "making an operator's token", tx => create(tx, &draft, &act))
    }

    async fn operator_tokens(&self) -> StoreResult<Vec<OperatorToken>> {
        transact!(read self, "reading operators' tokens", tx => usable(tx))
    }

    async fn operator_token(&self, hash: [u8; 32]) -> StoreResult<Option<OperatorToken>> {
        transact!(read self, "reading an operator's token", tx => find(tx, &hash))
    }

    async fn revoke_operator_token(&self, id: &str, act: Act) -> StoreResult<()> {
        transact!(write self, "revoking an operator's token", tx => revoke(tx, id, &act))
    }
}

async fn create(tx: &mut Tx, draft: &OperatorTokenDraft, act: &Act) -> StoreResult<OperatorToken> {
    let now = tx.now().await?;
    let token = OperatorToken {
        id: random_id()?,
        name: draft.name.clone(),
        role: draft.role.clone(),
        namespaces: draft.namespaces.clone(),
        created_at: now,
        created_by: draft.created_by.clone(),
        expires_at: now.saturating_add(net::clock::micros(draft.lifetime)),
    };
    let sql = format!("INSERT INTO operator_tokens ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
    tx.run(
        &sql,
        &args![
            &token.id,
            &draft.hash,
            &token.name,
            &token.role,
            to_json("namespaces", &token.namespaces)?,
            now,
            &token.created_by,
            token.expires_at,
        ],
    )
    .await?;
    acts::append(tx, act).await?;
    Ok(token)
}

async fn usable(tx: &mut Tx) -> StoreResult<Vec<OperatorToken>> {
    let now = tx.now().await?;
    let sql = format!(
        "SELECT {COLUMNS} FROM operator_tokens WHERE revoked_at IS NULL AND expires_at > $1 \
         ORDER BY created_at DESC, id"
    );
    tx.rows(&sql, &args![now]).await?.iter().map(token).collect()
}

async fn find(tx: &mut Tx, hash: &[u8; 32]) -> StoreResult<Option<OperatorToken>> {
    let now = tx.now().await?;
    let sql = format!(
        "SELECT {COLUMNS} FROM operator_tokens WHERE hash = $1 AND revoked_at IS NULL AND expires_at > $2"
    );
    tx.row(&sql, &args![hash, now])
        .await?
        .as_ref()
        .map(token)
        .transpose()
}

async fn revoke(tx: &mut Tx, id: &str, act: &Act) -> StoreResult<()> {
    let now = tx.now().await?;
    let touched = tx
        .run(
            "UPDATE operator_tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
            &args![id, now],
        )
        .await?;
    if touched == 0 {
        return Err(StoreError::NotFound {
            what: "token",
            id: id.to_owned(),
        });
    }
    acts::append(tx, act).await?;
    Ok(())
}

fn token(row: &Row) -> StoreResult<OperatorToken> {
    Ok(OperatorToken {
        id: row.text("id")?,
        name: row.text("name")?,
        role: row.text("role")?,
        namespaces: row.list("namespaces")?,
        created_at: row.int("created_at")?,
        created_by: row.text("created_by")?,
        expires_at: row.int("expires_at")?,
    })
}
