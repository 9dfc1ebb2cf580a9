//! Limits that replicas share.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    SqlStore, acts, transact,
    tx::Tx,
    value::{Arg, Row, args},
};
use crate::store::{
    error::StoreResult,
    quotas::{QuotaFilter, QuotaKey, QuotaKind, QuotaLot, QuotaRequest, QuotaUse, Quotas, TakenLot},
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

    async fn taken_lots(&self, key: &QuotaKey) -> StoreResult<Vec<TakenLot>> {
        transact!(read self, "reading a window", tx => taken(tx, key))
    }

    async fn carry_lots(&self, key: &QuotaKey, lots: &[TakenLot]) -> StoreResult<()> {
        transact!(write self, "carrying a window over", tx => carry(tx, key, lots))
    }

    async fn quota_uses(&self, filter: &QuotaFilter) -> StoreResult<Vec<QuotaUse>> {
        transact!(read self, "reading limits", tx => uses(tx, filter))
    }

    async fn reset_quotas(&self, filter: &QuotaFilter, act: Act) -> StoreResult<u64> {
        transact!(write self, "resetting limits", tx => reset(tx, filter, &act))
    }
}

/// The column `agent` holds the namespace too: no name holds a line feed.
fn agent_column(key: &QuotaKey) -> String {
    format!("{}\n{}", key.namespace, key.agent)
}

/// The columns that name a limit: `$1`, `$2`, `$3`.
fn place(key: &QuotaKey) -> Vec<Arg> {
    args![&key.policy, agent_column(key), kind(key.kind)].to_vec()
}

/// [`place`], and what comes after it.
fn at<const N: usize>(key: &QuotaKey, more: [Arg; N]) -> Vec<Arg> {
    let mut values = place(key);
    values.extend(more);
    values
}

/// Locks the counter; answers what is used of it.
async fn locked(tx: &mut Tx, key: &QuotaKey) -> StoreResult<u64> {
    let values = place(key);
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
            &at(key, args![&request.lease_id]),
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
    remember(tx, key, &request.lease_id, granted, now).await?;
    add(tx, key, granted.into()).await?;
    Ok(QuotaLot {
        granted,
        retry_after: None,
    })
}

/// Puts a lot down, unless it is known; answers whether it was not.
async fn remember(
    tx: &mut Tx,
    key: &QuotaKey,
    lease_id: &str,
    granted: u32,
    taken_at: Micros,
) -> StoreResult<bool> {
    let touched = tx
        .run(
            "INSERT INTO quota_leases (policy, agent, kind, lease_id, granted, returned, taken_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (policy, agent, kind, lease_id) DO NOTHING",
            &at(key, args![lease_id, granted, false, taken_at]),
        )
        .await?;
    Ok(touched > 0)
}

/// What was taken in the last minute and when the oldest of it was; forgets what is older.
async fn window(tx: &mut Tx, key: &QuotaKey, now: Micros) -> StoreResult<(u64, Option<Micros>)> {
    let begun = now.saturating_sub(WINDOW);
    forget(tx, key, begun).await?;
    let row = tx
        .one(
            "SELECT CAST(coalesce(sum(granted), 0) AS BIGINT) AS used, \
             min(CASE WHEN granted > 0 THEN taken_at END) AS oldest FROM quota_leases \
             WHERE policy = $1 AND agent = $2 AND kind = $3 AND taken_at > $4",
            &at(key, args![begun]),
        )
        .await?;
    Ok((row.count("used")?, row.maybe_int("oldest")?))
}

async fn forget(tx: &mut Tx, key: &QuotaKey, until: Micros) -> StoreResult<()> {
    tx.run(
        "DELETE FROM quota_leases WHERE policy = $1 AND agent = $2 AND kind = $3 AND taken_at <= $4",
        &at(key, args![until]),
    )
    .await?;
    Ok(())
}

async fn add(tx: &mut Tx, key: &QuotaKey, count: i64) -> StoreResult<()> {
    tx.run(
        "UPDATE counters SET used = CASE WHEN used + $4 < 0 THEN 0 ELSE used + $4 END \
         WHERE policy = $1 AND agent = $2 AND kind = $3",
        &at(key, args![count]),
    )
    .await?;
    Ok(())
}

async fn give_back(tx: &mut Tx, key: &QuotaKey, lease_id: &str, unused: u32) -> StoreResult<()> {
    locked(tx, key).await?;
    let row = tx
        .row(
            "SELECT granted, returned FROM quota_leases \
             WHERE policy = $1 AND agent = $2 AND kind = $3 AND lease_id = $4",
            &at(key, args![lease_id]),
        )
        .await?;
    let Some(row) = row else { return Ok(()) };
    if row.flag("returned")? {
        return Ok(());
    }
    let given: i64 = unused.min(row.small("granted")?).into();
    tx.run(
        "UPDATE quota_leases SET granted = granted - $5, returned = $6 \
         WHERE policy = $1 AND agent = $2 AND kind = $3 AND lease_id = $4",
        &at(key, args![lease_id, given, true]),
    )
    .await?;
    add(tx, key, -given).await
}

async fn taken(tx: &mut Tx, key: &QuotaKey) -> StoreResult<Vec<TakenLot>> {
    let now = tx.now().await?;
    let rows = tx
        .rows(
            "SELECT lease_id, granted, taken_at FROM quota_leases \
             WHERE policy = $1 AND agent = $2 AND kind = $3 AND taken_at > $4 ORDER BY taken_at",
            &at(key, args![now.saturating_sub(WINDOW)]),
        )
        .await?;
    rows.iter()
        .map(|row| {
            let age = now.saturating_sub(row.int("taken_at")?);
            Ok(TakenLot {
                lease_id: row.text("lease_id")?,
                age: Duration::from_micros(u64::try_from(age).unwrap_or_default()),
                granted: row.small("granted")?,
            })
        })
        .collect()
}

async fn carry(tx: &mut Tx, key: &QuotaKey, lots: &[TakenLot]) -> StoreResult<()> {
    locked(tx, key).await?;
    let now = tx.now().await?;
    let mut carried = 0;
    for lot in lots {
        let taken_at = now.saturating_sub(net::clock::micros(lot.age));
        if remember(tx, key, &lot.lease_id, lot.granted, taken_at).await? {
            carried += i64::from(lot.granted);
        }
    }
    add(tx, key, carried).await
}

async fn uses(tx: &mut Tx, filter: &QuotaFilter) -> StoreResult<Vec<QuotaUse>> {
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
    let mut uses = Vec::new();
    for row in &rows {
        let key = key_of(row)?;
        if filter.covers(&key) {
            let used = row.count("used")?;
            uses.push(QuotaUse { key, used });
        }
    }
    Ok(uses)
}

fn key_of(row: &Row) -> StoreResult<QuotaKey> {
    let named = row.text("agent")?;
    let (namespace, agent) = named.split_once('\n').unwrap_or(("", &named));
    Ok(QuotaKey {
        policy: row.text("policy")?,
        namespace: namespace.to_owned(),
        agent: agent.to_owned(),
        kind: if row.text("kind")? == "total" {
            QuotaKind::Total
        } else {
            QuotaKind::PerMinute
        },
    })
}

async fn reset(tx: &mut Tx, filter: &QuotaFilter, act: &Act) -> StoreResult<u64> {
    let rows = tx
        .rows(
            "SELECT policy, agent, kind FROM counters ORDER BY policy, agent, kind FOR UPDATE",
            &[],
        )
        .await?;
    let mut touched = 0;
    for row in &rows {
        let key = key_of(row)?;
        if !filter.covers(&key) {
            continue;
        }
        let values = args![row.text("policy")?, row.text("agent")?, row.text("kind")?];
        touched += tx
            .run(
                "UPDATE counters SET used = 0 WHERE policy = $1 AND agent = $2 AND kind = $3",
                &values,
            )
            .await?;
        // The leases stay known, so that a lot that is under way is not taken twice, and count nothing.
        tx.run(
            "UPDATE quota_leases SET granted = 0 WHERE policy = $1 AND agent = $2 AND kind = $3",
            &values,
        )
        .await?;
    }
    acts::append(tx, act).await?;
    Ok(touched)
}
