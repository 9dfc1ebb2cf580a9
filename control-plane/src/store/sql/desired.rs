//! Reading desired state in the order of revisions.

use async_trait::async_trait;
use proto::{body, v1};

use super::{
    SqlStore, change, corrections, generation, grants, policies, transact,
    tx::Tx,
    value::{args, to_json},
};
use crate::store::{
    desired::{Change, DesiredState, DesiredView},
    error::{StoreError, StoreResult},
    types::{Micros, Revision},
};

#[async_trait]
impl DesiredState for SqlStore {
    async fn desired_state(&self) -> StoreResult<DesiredView> {
        transact!(read self, "reading the desired state", tx => view(tx))
    }

    async fn changes_after(&self, after: Revision, limit: u32) -> StoreResult<Vec<Change>> {
        transact!(read self, "reading changes", tx => changes_after(tx, after, limit))
    }

    async fn committed_at(&self, revision: Revision) -> StoreResult<Option<Micros>> {
        transact!(read self, "reading a change", tx => committed_at(tx, revision))
    }

    async fn begin_generation(&self, seen: u64, reason: &str, by: &str) -> StoreResult<Revision> {
        transact!(write self, "beginning a generation", tx => generation::begin(tx, Some(seen), reason, by))
    }
}

async fn view(tx: &mut Tx) -> StoreResult<DesiredView> {
    let revision = tx
        .one("SELECT generation, number FROM revision", &[])
        .await?
        .revision()?;
    let database_time = tx.now().await?;
    let mut resources = policies::resources(tx).await?;
    resources.extend(pins(tx).await?);
    resources.extend(grants::resources(tx).await?);
    resources.extend(corrections::resources(tx).await?);
    resources.sort_by(|one, other| (&one.r#type, &one.name).cmp(&(&other.r#type, &other.name)));
    Ok(DesiredView {
        revision,
        database_time,
        resources,
    })
}

/// The resource of one pin.
pub(super) fn pin(
    namespace: &str,
    upstream: &str,
    tool: &str,
    fingerprint: &[u8; 32],
    revision: Revision,
) -> StoreResult<v1::Resource> {
    let pin = body::Pin {
        namespace: namespace.to_owned(),
        upstream: upstream.to_owned(),
        tool: tool.to_owned(),
        fingerprint: fingerprint.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    Ok(change::resource(
        body::PIN,
        &format!("{namespace}/{tool}"),
        revision,
        to_json("pin", &pin)?.into(),
        change::Scope::of_namespace(namespace),
    ))
}

async fn pins(tx: &mut Tx) -> StoreResult<Vec<v1::Resource>> {
    tx.rows(
        "SELECT namespace, upstream, tool, fingerprint, generation, number FROM pins",
        &[],
    )
    .await?
    .iter()
    .map(|row| {
        pin(
            &row.text("namespace")?,
            &row.text("upstream")?,
            &row.text("tool")?,
            &row.hash("fingerprint")?,
            row.revision()?,
        )
    })
    .collect()
}

async fn changes_after(tx: &mut Tx, after: Revision, limit: u32) -> StoreResult<Vec<Change>> {
    let head = tx
        .one("SELECT generation, number FROM revision", &[])
        .await?
        .revision()?;
    let gone = StoreError::ChangesGone { asked: after, head };
    if after.generation != head.generation || after.number > head.number {
        return Err(gone);
    }
    if after == head {
        return Ok(Vec::new());
    }
    let rows = tx
        .rows(
            "SELECT generation, number, at, made_by, kind, name, body, agents, namespaces, agents_before, \
             namespaces_before FROM changes WHERE generation = $1 AND number > $2 AND number <= $3 \
             ORDER BY number, position",
            &args![
                after.generation,
                after.number,
                after.number.saturating_add(limit.max(1).into())
            ],
        )
        .await?;
    let changes = change::changes(&rows)?;
    match changes.first() {
        Some(first) if first.revision.number == after.number + 1 => Ok(changes),
        _ => Err(gone),
    }
}

pub(super) async fn committed_at(tx: &mut Tx, revision: Revision) -> StoreResult<Option<Micros>> {
    tx.row(
        "SELECT at FROM changes WHERE generation = $1 AND number = $2 AND position = 0",
        &args![revision.generation, revision.number],
    )
    .await?
    .map(|row| row.int("at"))
    .transpose()
}
