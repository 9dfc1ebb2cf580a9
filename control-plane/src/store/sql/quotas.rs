//! Limits that replicas share.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    SqlStore, acts, transact,
    tx::Tx,
    value::{Arg, args},
};
use crate::store::{
    error::StoreResult,
    quotas::{QuotaKey, QuotaKind, QuotaLot, QuotaRequest, QuotaUse, Quotas},
    types::{Act, Micros},
};

/// The sliding window.
const WINDOW: Micros = 60_000_000;
/// How long a lease of a total is remembered, so that repeating it takes nothing twice.
const REMEMBERED: Micros = 3_600_000_000;

fn kind(kind: QuotaKind) -> &'static str {
    match kind {
        QuotaKind::PerMinute => "per_minute",
        QuotaKind::Total => "total",
    }
}

#[async_trait]
impl Quotas for SqlStore {
    async fn lease_quota(&self, request: QuotaRequest) -> StoreResult<QuotaLot> {
        transact!(write self, "leasing from a limit", tx => lease(tx, &request))
    }

    async fn return_quota(&self, key: QuotaKey, lease_id: &str, unused: u32) -> StoreResult<()> {
        transact!(write self, "returning to a limit", tx => give_back(tx, &key, lease_id, unused))
    }

    async fn quota_uses(&self, agent: Option<&str>) -> StoreResult<Vec<QuotaUse>> {
        transact!(read self, "reading limits", tx => uses(tx, agent))
    }

    async fn reset_quotas(&self, policy: Option<&str>, agent: Option<&str>, act: Act) -> StoreResult<u64> {
        transact!(write self, "resetting limits", tx => reset(tx, policy, agent, &act))
    }
}

/// Locks the counter; answers what is used of it.
async fn locked(tx: &mut Tx, key: &QuotaKey) -> StoreResult<u64> {
    let values = args![&key.policy, &key.agent, kind(key.kind)];
    tx.run(
        "INSERT INTO counters (policy, agent, kind, used) VALUES ($1, $2, $3, 0) \
         ON CONFLICT (policy, agent, kind) DO NOTHING",
        &values,
    )
    .await?;
    tx.one(
        "SELECT used FROM counters WHERE policy = $1 AND agent = $2 AND kind = $3 FOR UPDATE",
        &values,
    )
    .await?
    .count("used")
}

async fn lease(tx: &mut Tx, request: &QuotaRequest) -> StoreResult<QuotaLot> {
    let key = &request.key;
    let total = locked(tx, key).await?;
    let now = tx.now().await?;
    let earlier = tx
        .row(
            "SELECT granted FROM quota_leases WHERE policy = $1 AND agent = $2 AND kind = $3 AND lease_id = $4",
            &args![&key.policy, &key.agent, kind(key.kind), &request.lease_id],
        )
        .await?;
    if let Some(row) = earlier {
        return Ok(QuotaLot {
            granted: row.small("granted")?,
            retry_after: None,
        });
    }
    let (used, oldest) = match key.kind {
        QuotaKind::Total => {
            forget(tx, key, now.saturating_sub(REMEMBERED)).await?;
            (total, None)
        }
        QuotaKind::PerMinute => window(tx, key, now).await?,
    };
    let left = u32::try_from(request.limit.saturating_sub(used)).unwrap_or(u32::MAX);
    let granted = request.want.min(left);
    if granted == 0 {
        let retry_after = oldest.map(|oldest| {
            let wait = oldest.saturating_add(WINDOW).saturating_sub(now).max(1000);
            Duration::from_micros(u64::try_from(wait).unwrap_or_default())
        });
        return Ok(QuotaLot { granted, retry_after });
    }
    tx.run(
        "INSERT INTO quota_leases (policy, agent, kind, lease_id, granted, returned, taken_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &args![
            &key.policy,
            &key.agent,
            kind(key.kind),
            &request.lease_id,
            granted,
            false,
            now
        ],
    )
    .await?;
    add(tx, key, granted.into()).await?;
    Ok(QuotaLot {
        granted,
        retry_after: None,
    })
}

/// What was taken in the last minute and when the oldest of it was; forgets what is older.
async fn window(tx: &mut Tx, key: &QuotaKey, now: Micros) -> StoreResult<(u64, Option<Micros>)> {
    let values = args![
        &key.policy,
        &key.agent,
        kind(key.kind),
        now.saturating_sub(WINDOW)
    ];
    forget(tx, key, now.saturating_sub(WINDOW)).await?;
    let row = tx
        .one(
            "SELECT CAST(coalesce(sum(granted), 0) AS BIGINT) AS used, \
             min(CASE WHEN granted > 0 THEN taken_at END) AS oldest FROM quota_leases \
             WHERE policy = $1 AND agent = $2 AND kind = $3 AND taken_at > $4",
            &values,
        )
        .await?;
    Ok((row.count("used")?, row.maybe_int("oldest")?))
}

async fn forget(tx: &mut Tx, key: &QuotaKey, until: Micros) -> StoreResult<()> {
    tx.run(
        "DELETE FROM quota_leases WHERE policy = $1 AND agent = $2 AND kind = $3 AND taken_at <= $4",
        &args![&key.policy, &key.agent, kind(key.kind), until],
    )
    .await?;
    Ok(())
}

async fn add(tx: &mut Tx, key: &QuotaKey, count: i64) -> StoreResult<()> {
    tx.run(
        "UPDATE counters SET used = CASE WHEN used + $4 < 0 THEN 0 ELSE used + $4 END \
         WHERE policy = $1 AND agent = $2 AND kind = $3",
        &args![&key.policy, &key.agent, kind(key.kind), count],
    )
    .await?;
    Ok(())
}

async fn give_back(tx: &mut Tx, key: &QuotaKey, lease_id: &str, unused: u32) -> StoreResult<()> {
    locked(tx, key).await?;
    let place = args![&key.policy, &key.agent, kind(key.kind), lease_id];
    let row = tx
        .row(
            "SELECT granted, returned FROM quota_leases \
             WHERE policy = $1 AND agent = $2 AND kind = $3 AND lease_id = $4",
            &place,
        )
        .await?;
    let Some(row) = row else { return Ok(()) };
    if row.flag("returned")? {
        return Ok(());
    }
    let given: i64 = unused.min(row.small("granted")?).into();
    let mut values = place.to_vec();
    values.extend([Arg::from(given), Arg::from(true)]);
    tx.run(
        "UPDATE quota_leases SET granted = granted - $5, returned = $6 \
         WHERE policy = $1 AND agent = $2 AND kind = $3 AND lease_id = $4",
        &values,
    )
    .await?;
    add(tx, key, -given).await
}

async fn uses(tx: &mut Tx, agent: Option<&str>) -> StoreResult<Vec<QuotaUse>> {
    let now = tx.now().await?;
    let rows = tx
        .rows(
            "SELECT c.policy, c.agent, c.kind, CASE WHEN c.kind = 'total' THEN c.used ELSE \
             (SELECT CAST(coalesce(sum(l.granted), 0) AS BIGINT) FROM quota_leases l WHERE l.policy = c.policy \
             AND l.agent = c.agent AND l.kind = c.kind AND l.taken_at > $1) END AS used \
             FROM counters c ORDER BY c.policy, c.agent, c.kind",
            &args![now.saturating_sub(WINDOW)],
        )
        .await?;
    let mut uses = Vec::with_capacity(rows.len());
    for row in &rows {
        let found = row.text("agent")?;
        if agent.is_some_and(|agent| agent != found) {
            continue;
        }
        let kind = if row.text("kind")? == "total" {
            QuotaKind::Total
        } else {
            QuotaKind::PerMinute
        };
        uses.push(QuotaUse {
            key: QuotaKey {
                policy: row.text("policy")?,
                agent: found,
                kind,
            },
            used: row.count("used")?,
        });
    }
    Ok(uses)
}

async fn reset(tx: &mut Tx, policy: Option<&str>, agent: Option<&str>, act: &Act) -> StoreResult<u64> {
    let mut condition = String::from("1 = 1");
    let mut values = Vec::new();
    for (column, value) in [("policy", policy), ("agent", agent)] {
        if let Some(value) = value {
            values.push(Arg::from(value));
            condition.push_str(&format!(" AND {column} = ${}", values.len()));
        }
    }
    let touched = tx
        .run(
            &format!("UPDATE counters SET used = 0 WHERE {condition}"),
            &values,
        )
        .await?;
    // The leases stay known, so that a lot that is under way is not taken twice, and count nothing.
    tx.run(
        &format!("UPDATE quota_leases SET granted = 0 WHERE {condition}"),
        &values,
    )
    .await?;
    acts::append(tx, act).await?;
    Ok(touched)
}
