//! Emergency stops.

use async_trait::async_trait;

use super::{
    SqlStore, acts,
    approvals::{self, Ending, subject, upstream},
    by_prefix,
    change::Changing,
    deadlines, grants, random_id, transact,
    tx::Tx,
    value::{Row, args},
};
use crate::store::{
    approvals::ApprovalStatus,
    error::{StoreError, StoreResult},
    stops::{Stop, StopDraft, StopMade, StopScope, Stops, StopsHead},
    types::{Act, Topic},
};

const COLUMNS: &str = "id, sequence, scope, target, agent, person, in_namespace, reason, made_by, created_at, \
                       lifted_at, lifted_by";

#[async_trait]
impl Stops for SqlStore {
    async fn create_stop(&self, draft: StopDraft, act: Act) -> StoreResult<StopMade> {
        transact!(write self, "making a stop", tx => create(tx, &draft, &act))
    }

    async fn lift_stop(&self, id: &str, by: &str, act: Act) -> StoreResult<Stop> {
        transact!(write self, "lifting a stop", tx => lift(tx, id, by, &act))
    }

    async fn stops(&self, also_lifted: bool) -> StoreResult<Vec<Stop>> {
        transact!(read self, "reading stops", tx => list(tx, also_lifted))
    }

    async fn stops_head(&self) -> StoreResult<StopsHead> {
        transact!(read self, "reading stops", tx => head(tx))
    }
}

/// The stops that hold, and no other is made or lifted before this transaction ends.
pub(super) async fn lock_and_read(tx: &mut Tx) -> StoreResult<StopsHead> {
    let row = tx
        .one("SELECT value FROM sequences WHERE name = 'stops' FOR SHARE", &[])
        .await?;
    Ok(StopsHead {
        sequence: row.count("value")?,
        stops: holding(tx).await?,
    })
}

async fn head(tx: &mut Tx) -> StoreResult<StopsHead> {
    let row = tx
        .one("SELECT value FROM sequences WHERE name = 'stops'", &[])
        .await?;
    Ok(StopsHead {
        sequence: row.count("value")?,
        stops: holding(tx).await?,
    })
}

async fn holding(tx: &mut Tx) -> StoreResult<Vec<Stop>> {
    let sql = format!("SELECT {COLUMNS} FROM stops WHERE lifted_at IS NULL ORDER BY sequence");
    tx.rows(&sql, &[]).await?.iter().map(stop).collect()
}

async fn list(tx: &mut Tx, also_lifted: bool) -> StoreResult<Vec<Stop>> {
    let condition = if also_lifted {
        ""
    } else {
        "WHERE lifted_at IS NULL"
    };
    let sql = format!("SELECT {COLUMNS} FROM stops {condition} ORDER BY created_at DESC, id");
    tx.rows(&sql, &[]).await?.iter().map(stop).collect()
}

async fn create(tx: &mut Tx, draft: &StopDraft, act: &Act) -> StoreResult<StopMade> {
    let sequence = tx.take("stops", 1).await?;
    let stop = Stop {
        id: random_id()?,
        sequence,
        scope: draft.scope.clone(),
        in_namespace: draft.in_namespace.clone(),
        reason: draft.reason.clone(),
        by: draft.by.clone(),
        created_at: tx.now().await?,
        lifted: None,
    };
    insert(tx, &stop).await?;
    tx.wake(Topic::Stops);
    let (denied, cancelled) = end_approvals(tx, &stop).await?;
    grants::suspend(tx, &stop).await?;
    acts::append(tx, act).await?;
    Ok(StopMade {
        stop,
        denied,
        cancelled,
    })
}

async fn insert(tx: &mut Tx, stop: &Stop) -> StoreResult<()> {
    let (scope, target, agent, person) = match &stop.scope {
        StopScope::All => ("all", "", None, None),
        StopScope::Namespace(name) => ("namespace", name.as_str(), None, None),
        StopScope::Agent(glob) => ("agent", glob.as_str(), None, None),
        StopScope::Session { id, agent, user } => ("session", id.as_str(), agent.as_deref(), user.as_deref()),
        StopScope::Upstream(name) => ("upstream", name.as_str(), None, None),
    };
    let sql =
        format!("INSERT INTO stops ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)");
    tx.run(
        &sql,
        &args![
            &stop.id,
            stop.sequence,
            scope,
            target,
            agent,
            person,
            stop.in_namespace.as_deref(),
            &stop.reason,
            &stop.by,
            stop.created_at,
            None::<i64>,
            None::<&str>,
        ],
    )
    .await?;
    Ok(())
}

/// Pending approvals that the stop concerns are denied, approved ones cancelled.
async fn end_approvals(tx: &mut Tx, stop: &Stop) -> StoreResult<(Vec<String>, Vec<String>)> {
    let (mut denied, mut cancelled) = (Vec::new(), Vec::new());
    for before in deadlines::lock_open(tx, "1 = 1", &[]).await? {
        let upstream = upstream(tx, &before.asked).await?;
        if !stop.concerns(&subject(&before.asked, &upstream)) {
            continue;
        }
        let (status, ended) = if before.status == ApprovalStatus::Pending {
            (ApprovalStatus::Denied, &mut denied)
        } else {
            (ApprovalStatus::Cancelled, &mut cancelled)
        };
        let ending = Ending {
            by: &stop.by,
            ..Ending::by_system(&before, status, "stop", &stop.reason)
        };
        approvals::end(tx, &before, &ending, stop.created_at).await?;
        ended.push(before.id);
    }
    Ok((denied, cancelled))
}

async fn lift(tx: &mut Tx, id: &str, by: &str, act: &Act) -> StoreResult<Stop> {
    let mut changing = Changing::begin(tx, by).await?;
    tx.take("stops", 1).await?;
    let sql = format!("SELECT {COLUMNS} FROM stops WHERE");
    let mut lifted = stop(&by_prefix(tx, "stop", &sql, id).await?)?;
    if let Some((_, before)) = &lifted.lifted {
        return Err(StoreError::Conflict {
            reason: format!("stop {} was lifted before, by {before}", lifted.id),
        });
    }
    tx.run(
        "UPDATE stops SET lifted_at = $2, lifted_by = $3 WHERE id = $1",
        &args![&lifted.id, changing.now, by],
    )
    .await?;
    lifted.lifted = Some((changing.now, by.to_owned()));
    let left = holding(tx).await?;
    grants::come_back(tx, &mut changing, &left).await?;
    changing.finish(tx).await?;
    tx.wake(Topic::Stops);
    acts::append(tx, act).await?;
    Ok(lifted)
}

fn stop(row: &Row) -> StoreResult<Stop> {
    let target = row.text("target")?;
    let scope = match row.text("scope")?.as_str() {
        "all" => StopScope::All,
        "namespace" => StopScope::Namespace(target),
        "agent" => StopScope::Agent(target),
        "session" => StopScope::Session {
            id: target,
            agent: row.maybe_text("agent")?,
            user: row.maybe_text("person")?,
        },
        "upstream" => StopScope::Upstream(target),
        other => {
            return Err(StoreError::Invalid {
                what: "stored stop",
                reason: format!("its scope `{other}` is not known"),
            });
        }
    };
    let lifted = row
        .maybe_int("lifted_at")?
        .map(|at| Ok::<_, StoreError>((at, row.maybe_text("lifted_by")?.unwrap_or_default())))
        .transpose()?;
    Ok(Stop {
        id: row.text("id")?,
        sequence: row.count("sequence")?,
        scope,
        in_namespace: row.maybe_text("in_namespace")?,
        reason: row.text("reason")?,
        by: row.text("made_by")?,
        created_at: row.int("created_at")?,
        lifted,
    })
}
