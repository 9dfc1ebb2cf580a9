//! Join tokens, known by their hashes.

use super::{
    acts, random_id,
    tx::Tx,
    value::{Row, args, to_json},
};
use crate::store::{
    error::{EnrolRefusal, StoreError, StoreResult},
    sidecars::{JoinToken, JoinTokenDraft},
    types::Act,
};

const COLUMNS: &str =
    "id, hash, label, namespace, agents, upstreams, created_at, created_by, expires_at, uses_left";

pub(super) async fn create(tx: &mut Tx, draft: &JoinTokenDraft, act: &Act) -> StoreResult<JoinToken> {
    let now = tx.now().await?;
    let token = JoinToken {
        id: random_id()?,
        label: draft.label.clone(),
        namespace: draft.namespace.clone(),
        agents: draft.agents.clone(),
        upstreams: draft.upstreams.clone(),
        created_at: now,
        created_by: draft.created_by.clone(),
        expires_at: draft
            .lifetime
            .map(|lifetime| now.saturating_add(i64::try_from(lifetime.as_micros()).unwrap_or(i64::MAX))),
        uses_left: draft.uses,
    };
    let sql = format!("INSERT INTO join_tokens ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)");
    tx.run(
        &sql,
        &args![
            &token.id,
            &draft.hash,
            &token.label,
            &token.namespace,
            to_json("agents", &token.agents)?,
            to_json("upstreams", &token.upstreams)?,
            now,
            &token.created_by,
            token.expires_at,
            token.uses_left.map(i64::from),
        ],
    )
    .await?;
    acts::append(tx, act).await?;
    Ok(token)
}

/// Those that can still be used.
pub(super) async fn usable(tx: &mut Tx) -> StoreResult<Vec<JoinToken>> {
    let now = tx.now().await?;
    let sql = format!(
        "SELECT {COLUMNS} FROM join_tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) \
         AND (uses_left IS NULL OR uses_left > 0) ORDER BY created_at DESC, id"
    );
    tx.rows(&sql, &args![now]).await?.iter().map(token).collect()
}

/// The usable token of a hash; locked where the transaction writes.
pub(super) async fn find(tx: &mut Tx, hash: &[u8; 32]) -> StoreResult<JoinToken> {
    let sql = format!("SELECT {COLUMNS}, revoked_at FROM join_tokens WHERE hash = $1 FOR UPDATE");
    // A reading transaction must not lock: the use is checked again when the token is redeemed.
    let sql = if tx.reads_only() {
        sql.replace(" FOR UPDATE", "")
    } else {
        sql
    };
    let Some(row) = tx.row(&sql, &args![hash]).await? else {
        return Err(EnrolRefusal::UnknownToken.into());
    };
    let found = token(&row)?;
    let now = tx.now().await?;
    if row.maybe_int("revoked_at")?.is_some() || found.expires_at.is_some_and(|end| end <= now) {
        return Err(EnrolRefusal::TokenExpired.into());
    }
    if found.uses_left == Some(0) {
        return Err(EnrolRefusal::TokenUsedUp.into());
    }
    Ok(found)
}

/// Uses the token of a hash once.
pub(super) async fn spend(tx: &mut Tx, hash: &[u8; 32]) -> StoreResult<JoinToken> {
    let token = find(tx, hash).await?;
    tx.run(
        "UPDATE join_tokens SET uses_left = uses_left - 1 WHERE id = $1 AND uses_left IS NOT NULL",
        &args![&token.id],
    )
    .await?;
    Ok(token)
}

pub(super) async fn revoke(tx: &mut Tx, id: &str, act: &Act) -> StoreResult<()> {
    let now = tx.now().await?;
    let touched = tx
        .run(
            "UPDATE join_tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL",
            &args![id, now],
        )
        .await?;
    if touched == 0 {
        return Err(StoreError::NotFound {
            what: "join token",
            id: id.to_owned(),
        });
    }
    acts::append(tx, act).await?;
    Ok(())
}

fn token(row: &Row) -> StoreResult<JoinToken> {
    Ok(JoinToken {
        id: row.text("id")?,
        label: row.text("label")?,
        namespace: row.text("namespace")?,
        agents: row.list("agents")?,
        upstreams: row.list("upstreams")?,
        created_at: row.int("created_at")?,
        created_by: row.text("created_by")?,
        expires_at: row.maybe_int("expires_at")?,
        uses_left: row
            .maybe_int("uses_left")?
            .map(|left| u32::try_from(left).unwrap_or(u32::MAX)),
    })
}
