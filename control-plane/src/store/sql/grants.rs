//! Grants and settings.

use std::collections::BTreeSet;

use async_trait::async_trait;
use proto::{body, v1};

use super::{
    SqlStore, acts, by_prefix,
    change::{self, Changing, Scope},
    policies::check_version,
    random_id, stops, transact,
    tx::Tx,
    value::{Row, args, from_json, to_json},
};
use crate::store::{
    desired::{Expected, GrantDraft, GrantRow, GrantsAndSettings, SettingRow},
    error::StoreResult,
    stops::{Stop, StopScope, glob_matches},
    types::{Act, Micros},
};

const COLUMNS: &str = "id, namespace, agent, tools, expires_at, reason, granted_by, created_at, suspended_at, \
                       generation, number";

#[async_trait]
impl GrantsAndSettings for SqlStore {
    async fn create_grant(&self, draft: GrantDraft, act: Act) -> StoreResult<GrantRow> {
        transact!(write self, "making a grant", tx => create(tx, &draft, &act))
    }

    async fn revoke_grant(&self, id: &str, act: Act) -> StoreResult<GrantRow> {
        transact!(write self, "revoking a grant", tx => revoke(tx, id, &act))
    }

    async fn grants(&self, namespace: Option<&str>) -> StoreResult<Vec<GrantRow>> {
        transact!(read self, "reading grants", tx => live(tx, namespace))
    }

    async fn sweep_grants(&self) -> StoreResult<u64> {
        if !transact!(read self, "looking for ended grants", tx => any_ended(tx))? {
            return Ok(0);
        }
        transact!(write self, "removing ended grants", tx => sweep(tx))
    }

    async fn setting(&self, key: &str) -> StoreResult<Option<SettingRow>> {
        transact!(read self, "reading a setting", tx => setting(tx, key))
    }

    async fn put_setting(
        &self,
        key: &str,
        body: serde_json::Value,
        expected: Expected,
        act: Act,
    ) -> StoreResult<SettingRow> {
        transact!(write self, "writing a setting", tx => put_setting(tx, key, &body, expected, &act))
    }
}

async fn create(tx: &mut Tx, draft: &GrantDraft, act: &Act) -> StoreResult<GrantRow> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let holding = stops::lock_and_read(tx).await?;
    let unprefixed = Unprefixed::read(tx, &holding.stops).await?;
    let duration = i64::try_from(draft.duration.as_micros()).unwrap_or(i64::MAX);
    let grant = body::Grant {
        id: random_id()?,
        namespace: draft.namespace.clone(),
        agent: draft.agent.clone(),
        tools: draft.tools.clone(),
        expires_at: changing.now.saturating_add(duration),
    };
    let row = GrantRow {
        suspended_at: holding
            .stops
            .iter()
            .any(|stop| covers(stop, &grant, &unprefixed))
            .then_some(changing.now),
        grant,
        reason: draft.reason.clone(),
        granted_by: draft.granted_by.clone(),
        created_at: changing.now,
        revision: changing.revision,
    };
    let sql = format!("INSERT INTO grants ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
    tx.run(
        &sql,
        &args![
            &row.grant.id,
            &row.grant.namespace,
            &row.grant.agent,
            to_json("tools", &row.grant.tools)?,
            row.grant.expires_at,
            row.reason.clone(),
            &row.granted_by,
            row.created_at,
            row.suspended_at,
            row.revision.generation,
            row.revision.number,
        ],
    )
    .await?;
    changing.changed(&as_resource(&row)?, &Scope::default())?;
    changing.finish(tx).await?;
    acts::append(tx, act).await?;
    Ok(row)
}

async fn revoke(tx: &mut Tx, id: &str, act: &Act) -> StoreResult<GrantRow> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let sql = format!("SELECT {COLUMNS} FROM grants WHERE");
    let row = grant_row(&by_prefix(tx, "grant", &sql, id).await?)?;
    remove(tx, &mut changing, &row).await?;
    changing.finish(tx).await?;
    acts::append(tx, act).await?;
    Ok(row)
}

async fn remove(tx: &mut Tx, changing: &mut Changing, row: &GrantRow) -> StoreResult<()> {
    tx.run("DELETE FROM grants WHERE id = $1", &args![&row.grant.id])
        .await?;
    changing.removed(body::GRANT, &row.grant.id, &scope(&row.grant))
}

async fn all(tx: &mut Tx) -> StoreResult<Vec<GrantRow>> {
    let sql = format!("SELECT {COLUMNS} FROM grants ORDER BY created_at DESC, id");
    tx.rows(&sql, &[]).await?.iter().map(grant_row).collect()
}

async fn live(tx: &mut Tx, namespace: Option<&str>) -> StoreResult<Vec<GrantRow>> {
    let now = tx.now().await?;
    let mut rows = all(tx).await?;
    rows.retain(|row| !ended(row, now) && namespace.is_none_or(|namespace| namespace == row.grant.namespace));
    Ok(rows)
}

fn ended(row: &GrantRow, now: Micros) -> bool {
    row.suspended_at.is_none() && row.grant.expires_at <= now
}

async fn any_ended(tx: &mut Tx) -> StoreResult<bool> {
    let now = tx.now().await?;
    let sql = "SELECT id FROM grants WHERE suspended_at IS NULL AND expires_at <= $1 LIMIT 1";
    Ok(tx.row(sql, &args![now]).await?.is_some())
}

async fn sweep(tx: &mut Tx) -> StoreResult<u64> {
    let mut changing = Changing::begin(tx, "system").await?;
    let mut count = 0;
    for row in all(tx).await? {
        if ended(&row, changing.now) {
            remove(tx, &mut changing, &row).await?;
            count += 1;
        }
    }
    changing.finish(tx).await?;
    Ok(count)
}

/// Does a stop cover everything that a grant lifts? Then the grant's time does not run.
fn covers(stop: &Stop, grant: &body::Grant, unprefixed: &Unprefixed) -> bool {
    if stop
        .in_namespace
        .as_ref()
        .is_some_and(|only| *only != grant.namespace)
    {
        return false;
    }
    match &stop.scope {
        StopScope::All => true,
        StopScope::Namespace(name) => *name == grant.namespace,
        // A glob that matches the text of another glob matches everything that the other one does.
        StopScope::Agent(glob) => glob_matches(glob, &grant.agent),
        StopScope::Session { .. } => false,
        StopScope::Upstream(name) => grant.tools.iter().all(|tool| match tool.split_once('.') {
            Some((upstream, _)) => upstream == name,
            None => unprefixed.has(&grant.namespace, name, tool),
        }),
    }
}

/// The tools without a prefix, by namespace and the upstream that declares them.
#[derive(Default)]
struct Unprefixed(BTreeSet<(String, String, String)>);

impl Unprefixed {
    /// Reads what is needed to look at these stops.
    async fn read(tx: &mut Tx, stops: &[Stop]) -> StoreResult<Self> {
        if !stops
            .iter()
            .any(|stop| matches!(stop.scope, StopScope::Upstream(_)))
        {
            return Ok(Self::default());
        }
        let sql = "SELECT DISTINCT namespace, upstream, name FROM tools WHERE name NOT LIKE '%.%'";
        let rows = tx.rows(sql, &[]).await?;
        let tool = |row: &Row| Ok((row.text("namespace")?, row.text("upstream")?, row.text("name")?));
        rows.iter().map(tool).collect::<StoreResult<_>>().map(Self)
    }

    fn has(&self, namespace: &str, upstream: &str, tool: &str) -> bool {
        self.0
            .contains(&(namespace.to_owned(), upstream.to_owned(), tool.to_owned()))
    }
}

/// A stop was made: the time of the grants that it covers stands still.
pub(super) async fn suspend(tx: &mut Tx, stop: &Stop) -> StoreResult<()> {
    let unprefixed = Unprefixed::read(tx, std::slice::from_ref(stop)).await?;
    for row in all(tx).await? {
        if row.suspended_at.is_none()
            && !ended(&row, stop.created_at)
            && covers(stop, &row.grant, &unprefixed)
        {
            tx.run(
                "UPDATE grants SET suspended_at = $2 WHERE id = $1",
                &args![&row.grant.id, stop.created_at],
            )
            .await?;
        }
    }
    Ok(())
}

/// Stops were lifted: grants that none of those left covers come back with the time they had left.
pub(super) async fn come_back(tx: &mut Tx, changing: &mut Changing, left: &[Stop]) -> StoreResult<()> {
    let unprefixed = Unprefixed::read(tx, left).await?;
    for mut row in all(tx).await? {
        let Some(since) = row.suspended_at else { continue };
        if left.iter().any(|stop| covers(stop, &row.grant, &unprefixed)) {
            continue;
        }
        row.grant.expires_at = row
            .grant
            .expires_at
            .saturating_add(changing.now.saturating_sub(since).max(0));
        row.revision = changing.revision;
        tx.run(
            "UPDATE grants SET suspended_at = NULL, expires_at = $2, generation = $3, number = $4 WHERE id = $1",
            &args![&row.grant.id, row.grant.expires_at, row.revision.generation, row.revision.number],
        )
        .await?;
        changing.changed(&as_resource(&row)?, &scope(&row.grant))?;
    }
    Ok(())
}

fn grant_row(row: &Row) -> StoreResult<GrantRow> {
    Ok(GrantRow {
        grant: body::Grant {
            id: row.text("id")?,
            namespace: row.text("namespace")?,
            agent: row.text("agent")?,
            tools: row.list("tools")?,
            expires_at: row.int("expires_at")?,
        },
        reason: row.maybe_text("reason")?,
        granted_by: row.text("granted_by")?,
        created_at: row.int("created_at")?,
        suspended_at: row.maybe_int("suspended_at")?,
        revision: row.revision()?,
    })
}

fn scope(grant: &body::Grant) -> Scope {
    Scope {
        agents: vec![grant.agent.clone()],
        namespaces: vec![grant.namespace.clone()],
    }
}

fn as_resource(row: &GrantRow) -> StoreResult<v1::Resource> {
    let body = to_json("grant", &row.grant)?.into();
    Ok(change::resource(
        body::GRANT,
        &row.grant.id,
        row.revision,
        body,
        scope(&row.grant),
    ))
}

async fn setting(tx: &mut Tx, key: &str) -> StoreResult<Option<SettingRow>> {
    let sql =
        "SELECT key, body, version, generation, number, updated_at, updated_by FROM settings WHERE key = $1";
    tx.row(sql, &args![key])
        .await?
        .as_ref()
        .map(setting_row)
        .transpose()
}

fn setting_row(row: &Row) -> StoreResult<SettingRow> {
    Ok(SettingRow {
        key: row.text("key")?,
        body: from_json("setting", &row.text("body")?)?,
        version: row.count("version")?,
        revision: row.revision()?,
        updated_at: row.int("updated_at")?,
        updated_by: row.text("updated_by")?,
    })
}

async fn put_setting(
    tx: &mut Tx,
    key: &str,
    value: &serde_json::Value,
    expected: Expected,
    act: &Act,
) -> StoreResult<SettingRow> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let before = setting(tx, key).await?;
    let version = before.as_ref().map_or(0, |row| row.version);
    check_version("setting", key, version, expected)?;
    if let Some(before) = before.as_ref().filter(|row| row.body == *value) {
        return Ok(before.clone());
    }
    let text = to_json("setting", value)?;
    tx.run(
        "INSERT INTO settings (key, body, version, generation, number, updated_at, updated_by) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key) DO UPDATE SET body = excluded.body, \
         version = excluded.version, generation = excluded.generation, number = excluded.number, \
         updated_at = excluded.updated_at, updated_by = excluded.updated_by",
        &args![
            key,
            &text,
            version + 1,
            changing.revision.generation,
            changing.revision.number,
            changing.now,
            &act.by,
        ],
    )
    .await?;
    let row = SettingRow {
        key: key.to_owned(),
        body: value.clone(),
        version: version + 1,
        revision: changing.revision,
        updated_at: changing.now,
        updated_by: act.by.clone(),
    };
    let resource = change::resource(
        body::SETTING,
        key,
        changing.revision,
        text.into(),
        Scope::everybody(),
    );
    let earlier = before.map(|_| Scope::everybody()).unwrap_or_default();
    changing.changed(&resource, &earlier)?;
    changing.finish(tx).await?;
    acts::append(tx, act).await?;
    Ok(row)
}

/// Every live grant and every setting as a resource.
pub(super) async fn resources(tx: &mut Tx) -> StoreResult<Vec<v1::Resource>> {
    let mut resources: Vec<v1::Resource> = all(tx)
        .await?
        .iter()
        .map(as_resource)
        .collect::<StoreResult<_>>()?;
    for row in tx
        .rows("SELECT key, body, generation, number FROM settings", &[])
        .await?
    {
        let body = row.text("body")?.into();
        let revision = row.revision()?;
        resources.push(change::resource(
            body::SETTING,
            &row.text("key")?,
            revision,
            body,
            Scope::everybody(),
        ));
    }
    Ok(resources)
}
