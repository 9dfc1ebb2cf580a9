//! Corrections of tools.

use async_trait::async_trait;
use proto::{body, v1};

use super::{
    SqlStore, acts,
    change::{self, Changing, Scope},
    policies::check_version,
    transact,
    tx::Tx,
    value::{Arg, Row, args, from_json, to_json},
};
use crate::store::{
    corrections::{CorrectionDraft, CorrectionRow, Corrections},
    desired::Expected,
    error::StoreResult,
    types::Act,
};

const COLUMNS: &str = "namespace, tool, upstream, fingerprint, said, sent, version, updated_at, updated_by, generation, \
                       number";

#[async_trait]
impl Corrections for SqlStore {
    async fn corrections(&self, namespace: Option<&str>) -> StoreResult<Vec<CorrectionRow>> {
        transact!(read self, "reading corrections", tx => all(tx, namespace))
    }

    async fn put_correction(
        &self,
        draft: CorrectionDraft,
        expected: Expected,
        act: Act,
    ) -> StoreResult<CorrectionRow> {
        transact!(write self, "writing a correction", tx => put(tx, &draft, expected, &act))
    }
}

async fn all(tx: &mut Tx, namespace: Option<&str>) -> StoreResult<Vec<CorrectionRow>> {
    let condition = if namespace.is_some() {
        "WHERE namespace = $1"
    } else {
        ""
    };
    let values: Vec<Arg> = namespace.map(Arg::from).into_iter().collect();
    let sql = format!("SELECT {COLUMNS} FROM corrections {condition} ORDER BY namespace, tool");
    tx.rows(&sql, &values).await?.iter().map(correction).collect()
}

fn correction(row: &Row) -> StoreResult<CorrectionRow> {
    Ok(CorrectionRow {
        correction: CorrectionDraft {
            namespace: row.text("namespace")?,
            tool: row.text("tool")?,
            upstream: row.text("upstream")?,
            fingerprint: row.hash("fingerprint")?,
            said: from_json("correction", &row.text("said")?)?,
            sent: from_json("correction", &row.text("sent")?)?,
        },
        version: row.count("version")?,
        revision: row.revision()?,
        updated_at: row.int("updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}

async fn one(tx: &mut Tx, namespace: &str, tool: &str) -> StoreResult<Option<CorrectionRow>> {
    let sql = format!("SELECT {COLUMNS} FROM corrections WHERE namespace = $1 AND tool = $2");
    let row = tx.row(&sql, &args![namespace, tool]).await?;
    row.as_ref().map(correction).transpose()
}

async fn put(
    tx: &mut Tx,
    draft: &CorrectionDraft,
    expected: Expected,
    act: &Act,
) -> StoreResult<CorrectionRow> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let before = one(tx, &draft.namespace, &draft.tool).await?;
    let version = before.as_ref().map_or(0, |row| row.version);
    check_version("correction", &draft.tool, version, expected)?;
    let is_gone = draft.said.as_object().is_none_or(serde_json::Map::is_empty);
    match &before {
        Some(before) if !is_gone && before.correction == *draft => return Ok(before.clone()),
        _ => {}
    }
    let row = CorrectionRow {
        correction: draft.clone(),
        version: if is_gone { 0 } else { version + 1 },
        revision: changing.revision,
        updated_at: changing.now,
        updated_by: act.by.clone(),
    };
    let scope = before
        .as_ref()
        .map(|before| Scope::of_namespace(&before.correction.namespace));
    match (is_gone, scope) {
        (true, None) => return Ok(row),
        (true, Some(scope)) => remove(tx, &mut changing, draft, &scope).await?,
        (false, scope) => {
            write(tx, &row).await?;
            changing.changed(&as_resource(&row)?, &scope.unwrap_or_default())?;
        }
    }
    changing.finish(tx).await?;
    acts::append(tx, act).await?;
    Ok(row)
}

async fn remove(
    tx: &mut Tx,
    changing: &mut Changing,
    draft: &CorrectionDraft,
    scope: &Scope,
) -> StoreResult<()> {
    tx.run(
        "DELETE FROM corrections WHERE namespace = $1 AND tool = $2",
        &args![&draft.namespace, &draft.tool],
    )
    .await?;
    changing.removed(body::CORRECTION, &name(draft), scope)
}

async fn write(tx: &mut Tx, row: &CorrectionRow) -> StoreResult<()> {
    let draft = &row.correction;
    let sql = format!(
        "INSERT INTO corrections ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
         ON CONFLICT (namespace, tool) DO UPDATE SET upstream = excluded.upstream, \
         fingerprint = excluded.fingerprint, said = excluded.said, sent = excluded.sent, version = excluded.version, \
         updated_at = excluded.updated_at, updated_by = excluded.updated_by, generation = excluded.generation, \
         number = excluded.number"
    );
    tx.run(
        &sql,
        &args![
            &draft.namespace,
            &draft.tool,
            &draft.upstream,
            &draft.fingerprint,
            to_json("correction", &draft.said)?,
            to_json("correction", &draft.sent)?,
            row.version,
            row.updated_at,
            &row.updated_by,
            row.revision.generation,
            row.revision.number,
        ],
    )
    .await?;
    Ok(())
}

fn name(draft: &CorrectionDraft) -> String {
    format!("{}/{}", draft.namespace, draft.tool)
}

fn as_resource(row: &CorrectionRow) -> StoreResult<v1::Resource> {
    let draft = &row.correction;
    let sent = body::Correction {
        namespace: draft.namespace.clone(),
        upstream: draft.upstream.clone(),
        tool: draft.tool.clone(),
        fingerprint: draft
            .fingerprint
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        correction: draft.sent.clone(),
    };
    Ok(change::resource(
        body::CORRECTION,
        &name(draft),
        row.revision,
        to_json("correction", &sent)?.into(),
        Scope::of_namespace(&draft.namespace),
    ))
}

/// Every correction as a resource.
pub(super) async fn resources(tx: &mut Tx) -> StoreResult<Vec<v1::Resource>> {
    all(tx, None).await?.iter().map(as_resource).collect()
}
