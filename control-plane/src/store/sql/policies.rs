//! Policy documents and their history.

use std::collections::BTreeMap;

use async_trait::async_trait;
use proto::{body::POLICY, v1};

use super::{
    SqlStore, acts,
    change::{self, Changing, Scope},
    transact,
    tx::Tx,
    value::{Arg, Row, args, to_json},
};
use crate::store::{
    desired::{Applied, Expected, OriginKind, Policies, PolicyDraft, PolicyOrigin, PolicyRow, PolicyVersion},
    error::{StoreError, StoreResult},
    types::{Act, Revision},
};

const COLUMNS: &str = "name, text, body, agents, namespaces, origin, origin_file, origin_index, problem, version, \
                       generation, number, updated_at, updated_by";

#[async_trait]
impl Policies for SqlStore {
    async fn policies(&self) -> StoreResult<Vec<PolicyRow>> {
        transact!(read self, "reading policies", tx => all(tx))
    }

    async fn policy(&self, name: &str) -> StoreResult<PolicyRow> {
        transact!(read self, "reading a policy", tx => one(tx, name))
    }

    async fn policy_versions(&self, name: &str, limit: u32) -> StoreResult<Vec<PolicyVersion>> {
        transact!(read self, "reading a policy's versions", tx => versions(tx, name, limit))
    }

    async fn put_policy(&self, draft: PolicyDraft, expected: Expected, act: Act) -> StoreResult<PolicyRow> {
        transact!(write self, "writing a policy", tx => put(tx, &draft, expected, &act))
    }

    async fn delete_policy(&self, name: &str, expected: Expected, act: Act) -> StoreResult<Revision> {
        transact!(write self, "deleting a policy", tx => delete(tx, name, expected, &act))
    }

    async fn rollback_policy(
        &self,
        name: &str,
        version: u64,
        expected: Expected,
        act: Act,
    ) -> StoreResult<PolicyRow> {
        transact!(write self, "rolling a policy back", tx => rollback(tx, name, version, expected, &act))
    }

    async fn apply_policies(
        &self,
        origin: OriginKind,
        drafts: Vec<PolicyDraft>,
        act: Act,
    ) -> StoreResult<Applied> {
        transact!(write self, "applying policies", tx => apply(tx, origin, &drafts, &act))
    }
}

async fn all(tx: &mut Tx) -> StoreResult<Vec<PolicyRow>> {
    let sql = format!("SELECT {COLUMNS} FROM policies ORDER BY name");
    tx.rows(&sql, &[]).await?.iter().map(policy_row).collect()
}

async fn find(tx: &mut Tx, name: &str) -> StoreResult<Option<PolicyRow>> {
    let sql = format!("SELECT {COLUMNS} FROM policies WHERE name = $1");
    tx.row(&sql, &args![name])
        .await?
        .as_ref()
        .map(policy_row)
        .transpose()
}

fn absent(name: &str) -> StoreError {
    StoreError::NotFound {
        what: "policy",
        id: name.to_owned(),
    }
}

async fn one(tx: &mut Tx, name: &str) -> StoreResult<PolicyRow> {
    find(tx, name).await?.ok_or_else(|| absent(name))
}

async fn versions(tx: &mut Tx, name: &str, limit: u32) -> StoreResult<Vec<PolicyVersion>> {
    let sql = format!(
        "SELECT {COLUMNS}, deleted FROM policy_versions WHERE name = $1 ORDER BY version DESC LIMIT $2"
    );
    let versions: Vec<PolicyVersion> = tx
        .rows(&sql, &args![name, limit])
        .await?
        .iter()
        .map(|row| {
            Ok(PolicyVersion {
                row: policy_row(row)?,
                deleted: row.flag("deleted")?,
            })
        })
        .collect::<StoreResult<_>>()?;
    if versions.is_empty() {
        Err(absent(name))
    } else {
        Ok(versions)
    }
}

async fn put(tx: &mut Tx, draft: &PolicyDraft, expected: Expected, act: &Act) -> StoreResult<PolicyRow> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let before = find(tx, &draft.name).await?;
    check(&draft.name, before.as_ref(), expected)?;
    if let Some(before) = &before {
        same_origin(before, draft)?;
        if before.document == *draft {
            return Ok(before.clone());
        }
    }
    let rows = write(tx, &mut changing, &[(draft, before)], act).await?;
    changing.finish(tx).await?;
    acts::append(tx, act).await?;
    rows.into_iter().next().ok_or_else(|| absent(&draft.name))
}

async fn delete(tx: &mut Tx, name: &str, expected: Expected, act: &Act) -> StoreResult<Revision> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let before = one(tx, name).await?;
    check(name, Some(&before), expected)?;
    remove(tx, &mut changing, &before, act).await?;
    let revision = changing.finish(tx).await?;
    acts::append(tx, act).await?;
    Ok(revision)
}

async fn rollback(
    tx: &mut Tx,
    name: &str,
    version: u64,
    expected: Expected,
    act: &Act,
) -> StoreResult<PolicyRow> {
    let sql = format!("SELECT {COLUMNS} FROM policy_versions WHERE name = $1 AND version = $2");
    let Some(earlier) = tx.row(&sql, &args![name, version]).await? else {
        return Err(StoreError::NotFound {
            what: "policy version",
            id: format!("{name}@{version}"),
        });
    };
    put(tx, &policy_row(&earlier)?.document, expected, act).await
}

async fn apply(tx: &mut Tx, origin: OriginKind, drafts: &[PolicyDraft], act: &Act) -> StoreResult<Applied> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let mut stored: BTreeMap<String, PolicyRow> = all(tx)
        .await?
        .into_iter()
        .map(|row| (row.document.name.clone(), row))
        .collect();
    let mut writes = Vec::new();
    for draft in drafts {
        let before = stored.remove(&draft.name);
        if let Some(before) = &before {
            same_origin(before, draft)?;
            if before.document == *draft {
                continue;
            }
        }
        writes.push((draft, before));
    }
    let changed = writes.iter().map(|(draft, _)| draft.name.clone()).collect();
    write(tx, &mut changing, &writes, act).await?;
    stored.retain(|_, row| row.document.origin.kind() == origin);
    for row in stored.values() {
        remove(tx, &mut changing, row, act).await?;
    }
    let nothing = changing.is_empty();
    let revision = changing.finish(tx).await?;
    if !nothing {
        acts::append(tx, act).await?;
    }
    Ok(Applied {
        revision,
        changed,
        removed: stored.into_keys().collect(),
    })
}

fn check(name: &str, before: Option<&PolicyRow>, expected: Expected) -> StoreResult<()> {
    check_version("policy", name, before.map_or(0, |row| row.version), expected)
}

/// Compares what the caller expects with the version that is there (0: none).
pub(super) fn check_version(what: &'static str, id: &str, found: u64, expected: Expected) -> StoreResult<()> {
    let wanted = match expected {
        Expected::Any => return Ok(()),
        Expected::Absent => 0,
        Expected::Version(version) => version,
    };
    if wanted == found {
        return Ok(());
    }
    Err(StoreError::Precondition {
        what,
        id: id.to_owned(),
        expected: wanted,
        found,
    })
}

fn same_origin(before: &PolicyRow, draft: &PolicyDraft) -> StoreResult<()> {
    if before.document.origin.kind() == draft.origin.kind() {
        return Ok(());
    }
    let owner = match &before.document.origin {
        PolicyOrigin::Inline { .. } => "the configuration's `policies`".to_owned(),
        PolicyOrigin::Directory { file, .. } => format!("the policy directory's {file}"),
        PolicyOrigin::Api => "the API".to_owned(),
    };
    Err(StoreError::Conflict {
        reason: format!(
            "policy `{}` belongs to {owner}; change it there, or use another name",
            draft.name
        ),
    })
}

/// Writes documents with their versions and changes; each comes with the row that it replaces.
async fn write(
    tx: &mut Tx,
    changing: &mut Changing,
    writes: &[(&PolicyDraft, Option<PolicyRow>)],
    act: &Act,
) -> StoreResult<Vec<PolicyRow>> {
    let newest = newest_versions(tx, writes).await?;
    let mut rows = Vec::with_capacity(writes.len());
    for (draft, before) in writes {
        let row = PolicyRow {
            document: (*draft).clone(),
            version: newest.get(&draft.name).copied().unwrap_or_default() + 1,
            revision: changing.revision,
            updated_at: changing.now,
            updated_by: act.by.clone(),
        };
        let before = before
            .as_ref()
            .map(|row| scope(&row.document))
            .unwrap_or_default();
        changing.changed(&as_resource(&row), &before)?;
        rows.push(row);
    }
    let values: Vec<Vec<Arg>> = rows.iter().map(columns).collect::<StoreResult<_>>()?;
    tx.insert_many(
        &format!("INSERT INTO policies ({COLUMNS})"),
        &values,
        "ON CONFLICT (name) DO UPDATE SET text = excluded.text, body = excluded.body, agents = excluded.agents, \
         namespaces = excluded.namespaces, origin = excluded.origin, origin_file = excluded.origin_file, \
         origin_index = excluded.origin_index, problem = excluded.problem, version = excluded.version, \
         generation = excluded.generation, number = excluded.number, updated_at = excluded.updated_at, \
         updated_by = excluded.updated_by",
    )
    .await?;
    write_versions(tx, values, false).await?;
    Ok(rows)
}

/// The newest version of each name that is about to be written, of deleted policies too.
async fn newest_versions(
    tx: &mut Tx,
    writes: &[(&PolicyDraft, Option<PolicyRow>)],
) -> StoreResult<BTreeMap<String, u64>> {
    const NEWEST: &str = "SELECT name, max(version) AS version FROM policy_versions";
    let rows = match writes {
        [(draft, _)] => {
            tx.rows(
                &format!("{NEWEST} WHERE name = $1 GROUP BY name"),
                &args![&draft.name],
            )
            .await?
        }
        _ => tx.rows(&format!("{NEWEST} GROUP BY name"), &[]).await?,
    };
    rows.iter()
        .map(|row| Ok((row.text("name")?, row.count("version")?)))
        .collect()
}

async fn remove(tx: &mut Tx, changing: &mut Changing, row: &PolicyRow, act: &Act) -> StoreResult<()> {
    let name = &row.document.name;
    tx.run("DELETE FROM policies WHERE name = $1", &args![name])
        .await?;
    let deletion = PolicyRow {
        document: row.document.clone(),
        version: row.version + 1,
        revision: changing.revision,
        updated_at: changing.now,
        updated_by: act.by.clone(),
    };
    write_versions(tx, vec![columns(&deletion)?], true).await?;
    changing.removed(POLICY, name, &scope(&row.document))
}

async fn write_versions(tx: &mut Tx, mut rows: Vec<Vec<Arg>>, deleted: bool) -> StoreResult<()> {
    for row in &mut rows {
        row.push(deleted.into());
    }
    tx.insert_many(
        &format!("INSERT INTO policy_versions ({COLUMNS}, deleted)"),
        &rows,
        "",
    )
    .await?;
    Ok(())
}

fn columns(row: &PolicyRow) -> StoreResult<Vec<Arg>> {
    let document = &row.document;
    let (origin, file, index) = match &document.origin {
        PolicyOrigin::Inline { index } => ("inline", "", *index),
        PolicyOrigin::Directory { file, index } => ("directory", file.as_str(), *index),
        PolicyOrigin::Api => ("api", "", 0),
    };
    Ok(args![
        &document.name,
        &document.text,
        &document.body,
        to_json("agents", &document.agents)?,
        to_json("namespaces", &document.namespaces)?,
        origin,
        file,
        index,
        document.problem.clone(),
        row.version,
        row.revision.generation,
        row.revision.number,
        row.updated_at,
        &row.updated_by,
    ]
    .to_vec())
}

fn policy_row(row: &Row) -> StoreResult<PolicyRow> {
    let index = row.small("origin_index")?;
    let origin = match row.text("origin")?.as_str() {
        "inline" => PolicyOrigin::Inline { index },
        "directory" => PolicyOrigin::Directory {
            file: row.text("origin_file")?,
            index,
        },
        _ => PolicyOrigin::Api,
    };
    Ok(PolicyRow {
        document: PolicyDraft {
            name: row.text("name")?,
            text: row.text("text")?,
            body: row.bytes("body")?.into(),
            agents: row.list("agents")?,
            namespaces: row.list("namespaces")?,
            origin,
            problem: row.maybe_text("problem")?,
        },
        version: row.count("version")?,
        revision: row.revision()?,
        updated_at: row.int("updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}

fn scope(document: &PolicyDraft) -> Scope {
    Scope {
        agents: document.agents.clone(),
        namespaces: document.namespaces.clone(),
    }
}

fn as_resource(row: &PolicyRow) -> v1::Resource {
    let document = &row.document;
    change::resource(
        POLICY,
        &document.name,
        row.revision,
        document.body.clone(),
        scope(document),
    )
}

/// Every policy as a resource.
pub(super) async fn resources(tx: &mut Tx) -> StoreResult<Vec<v1::Resource>> {
    tx.rows(
        "SELECT name, body, agents, namespaces, generation, number FROM policies",
        &[],
    )
    .await?
    .iter()
    .map(|row| {
        let scope = Scope {
            agents: row.list("agents")?,
            namespaces: row.list("namespaces")?,
        };
        Ok(change::resource(
            POLICY,
            &row.text("name")?,
            row.revision()?,
            row.bytes("body")?.into(),
            scope,
        ))
    })
    .collect()
}
