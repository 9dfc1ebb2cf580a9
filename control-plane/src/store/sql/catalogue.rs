//! What upstreams declare, and the pins over it.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use proto::body::PIN;

use super::{
    SqlStore, acts,
    change::{Changing, Scope},
    desired, transact,
    tx::Tx,
    value::{Arg, args},
};
use crate::store::{
    catalogue::{
        Acceptance, Catalogue, CatalogueTool, PinStatus, PinnedVersion, Pinning, Publication, Published,
        SeenVersion,
    },
    error::{StoreError, StoreResult},
    types::{Act, Micros, Revision},
};

#[async_trait]
impl Catalogue for SqlStore {
    async fn publish_catalogue(&self, publication: Publication) -> StoreResult<Published> {
        transact!(write self, "publishing a catalogue", tx => publish(tx, &publication))
    }

    async fn tools(&self, namespace: Option<&str>) -> StoreResult<Vec<CatalogueTool>> {
        transact!(read self, "reading the catalogue", tx => tools(tx, namespace))
    }

    async fn accept_pins(
        &self,
        namespace: &str,
        accepted: Vec<Acceptance>,
        act: Act,
    ) -> StoreResult<Revision> {
        transact!(write self, "accepting pins", tx => accept(tx, namespace, &accepted, &act))
    }
}

async fn publish(tx: &mut Tx, publication: &Publication) -> StoreResult<Published> {
    let first_use = publication.pinning != Pinning::Off && !is_known_upstream(tx, publication).await?;
    // The order of desired state is locked only where pins may be made.
    let changing = if first_use {
        Some(Changing::begin(tx, "first use").await?)
    } else {
        None
    };
    let now = tx.now().await?;
    names_are_free(tx, publication).await?;
    replace_tools(tx, publication, now).await?;
    let (revision, pinned_now) = match changing {
        Some(changing) => first_pins(tx, publication, changing).await?,
        None => (
            tx.one("SELECT generation, number FROM revision", &[])
                .await?
                .revision()?,
            false,
        ),
    };
    let accepted = accepted(tx, &publication.namespace, Some(&publication.upstream)).await?;
    let pins = match publication.pinning {
        Pinning::Off => Vec::new(),
        Pinning::Trust | Pinning::Review => publication
            .tools
            .iter()
            .map(|tool| {
                let status = match accepted.get(&(publication.namespace.clone(), tool.name.clone())) {
                    None => PinStatus::New,
                    Some(pin) if pin.fingerprint == tool.fingerprint => PinStatus::Pinned,
                    Some(_) => PinStatus::Changed,
                };
                (tool.name.clone(), status)
            })
            .collect(),
    };
    Ok(Published {
        revision,
        pins,
        pinned_now,
    })
}

/// A tool without a prefix says by its name alone which one it is: no other upstream of the namespace may have it.
async fn names_are_free(tx: &mut Tx, publication: &Publication) -> StoreResult<()> {
    let is_wanted = |name: &str| publication.tools.iter().any(|tool| tool.name == name);
    if !publication.tools.iter().any(|tool| !tool.name.contains('.')) {
        return Ok(());
    }
    let rows = tx
        .rows(
            "SELECT DISTINCT name, upstream FROM tools WHERE namespace = $1 AND upstream <> $2 \
             AND name NOT LIKE '%.%'",
            &args![&publication.namespace, &publication.upstream],
        )
        .await?;
    for row in rows {
        let (name, other) = (row.text("name")?, row.text("upstream")?);
        if is_wanted(&name) {
            return Err(StoreError::Invalid {
                what: "catalogue",
                reason: format!(
                    "the tool `{name}` is one of the upstream `{other}` too; give one of the OpenAPI services a `name` in its configuration"
                ),
            });
        }
    }
    Ok(())
}

async fn is_known_upstream(tx: &mut Tx, publication: &Publication) -> StoreResult<bool> {
    let sql = "SELECT seen_at FROM pinned_upstreams WHERE namespace = $1 AND upstream = $2";
    Ok(tx
        .row(sql, &args![&publication.namespace, &publication.upstream])
        .await?
        .is_some())
}

/// Ends the first use of an upstream; with trust, pins what it declares now.
async fn first_pins(
    tx: &mut Tx,
    publication: &Publication,
    mut changing: Changing,
) -> StoreResult<(Revision, bool)> {
    let ended = tx
        .run(
            "INSERT INTO pinned_upstreams (namespace, upstream, seen_at) VALUES ($1, $2, $3) \
             ON CONFLICT (namespace, upstream) DO NOTHING",
            &args![&publication.namespace, &publication.upstream, changing.now],
        )
        .await?;
    let trusted = ended == 1 && publication.pinning == Pinning::Trust;
    if trusted {
        for tool in &publication.tools {
            pin(tx, &mut changing, publication, &tool.name, &tool.fingerprint).await?;
        }
    }
    Ok((
        changing.finish(tx).await?,
        trusted && !publication.tools.is_empty(),
    ))
}

async fn pin(
    tx: &mut Tx,
    changing: &mut Changing,
    publication: &Publication,
    tool: &str,
    fingerprint: &[u8; 32],
) -> StoreResult<()> {
    let Publication {
        namespace, upstream, ..
    } = publication;
    write_pin(
        tx,
        changing,
        (namespace, upstream, tool),
        fingerprint,
        "first use",
        &Scope::default(),
    )
    .await
}

async fn write_pin(
    tx: &mut Tx,
    changing: &mut Changing,
    (namespace, upstream, tool): (&str, &str, &str),
    fingerprint: &[u8; 32],
    by: &str,
    before: &Scope,
) -> StoreResult<()> {
    tx.run(
        "INSERT INTO pins (namespace, tool, upstream, fingerprint, accepted_at, accepted_by, generation, number) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (namespace, tool) DO UPDATE SET \
         upstream = excluded.upstream, fingerprint = excluded.fingerprint, accepted_at = excluded.accepted_at, \
         accepted_by = excluded.accepted_by, generation = excluded.generation, number = excluded.number",
        &args![
            namespace,
            tool,
            upstream,
            fingerprint,
            changing.now,
            by,
            changing.revision.generation,
            changing.revision.number,
        ],
    )
    .await?;
    let resource = desired::pin(namespace, upstream, tool, fingerprint, changing.revision)?;
    changing.changed(&resource, before)
}

/// Writes what a sidecar sees of an upstream, where it differs from what it saw before.
async fn replace_tools(tx: &mut Tx, publication: &Publication, now: Micros) -> StoreResult<()> {
    let Publication {
        namespace,
        upstream,
        sidecar,
        tools,
        ..
    } = publication;
    let before: BTreeSet<(String, Vec<u8>)> = tx
        .rows(
            "SELECT name, fingerprint FROM tools WHERE sidecar = $1 AND upstream = $2",
            &args![sidecar, upstream],
        )
        .await?
        .iter()
        .map(|row| Ok((row.text("name")?, row.bytes("fingerprint")?)))
        .collect::<StoreResult<_>>()?;
    let after: BTreeMap<&str, &crate::store::catalogue::DeclaredTool> =
        tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
    let same = before.len() == after.len()
        && after
            .values()
            .all(|tool| before.contains(&(tool.name.clone(), tool.fingerprint.to_vec())));
    if same {
        return Ok(());
    }
    tx.run(
        "DELETE FROM tools WHERE sidecar = $1 AND upstream = $2",
        &args![sidecar, upstream],
    )
    .await?;
    let versions: Vec<Vec<Arg>> = after
        .values()
        .map(|tool| {
            args![
                namespace,
                &tool.name,
                &tool.fingerprint,
                upstream,
                &tool.kind,
                &tool.declared,
                now
            ]
            .to_vec()
        })
        .collect();
    tx.insert_many(
        "INSERT INTO tool_versions (namespace, name, fingerprint, upstream, kind, declared, first_seen_at)",
        &versions,
        "ON CONFLICT (namespace, name, fingerprint) DO NOTHING",
    )
    .await?;
    let seen: Vec<Vec<Arg>> = after
        .values()
        .map(|tool| args![sidecar, namespace, upstream, &tool.name, &tool.fingerprint].to_vec())
        .collect();
    tx.insert_many(
        "INSERT INTO tools (sidecar, namespace, upstream, name, fingerprint)",
        &seen,
        "",
    )
    .await?;
    Ok(())
}

type Accepted = BTreeMap<(String, String), PinnedVersion>;

async fn accepted(tx: &mut Tx, namespace: &str, upstream: Option<&str>) -> StoreResult<Accepted> {
    let condition = if upstream.is_some() {
        "p.namespace = $1 AND p.upstream = $2"
    } else {
        "p.namespace = $1"
    };
    let mut values = args![namespace].to_vec();
    values.extend(upstream.map(Arg::from));
    let sql = format!(
        "SELECT p.namespace, p.tool, p.fingerprint, p.accepted_at, p.accepted_by, v.declared FROM pins p \
         LEFT JOIN tool_versions v ON v.namespace = p.namespace AND v.name = p.tool AND v.fingerprint = p.fingerprint \
         WHERE {condition}"
    );
    tx.rows(&sql, &values)
        .await?
        .iter()
        .map(|row| {
            let pin = PinnedVersion {
                fingerprint: row.hash("fingerprint")?,
                declared: row.maybe_bytes("declared")?.unwrap_or_default().into(),
                accepted_at: row.int("accepted_at")?,
                accepted_by: row.text("accepted_by")?,
            };
            Ok(((row.text("namespace")?, row.text("tool")?), pin))
        })
        .collect()
}

async fn tools(tx: &mut Tx, namespace: Option<&str>) -> StoreResult<Vec<CatalogueTool>> {
    let condition = if namespace.is_some() {
        "WHERE t.namespace = $1"
    } else {
        ""
    };
    let values: Vec<Arg> = namespace.map(Arg::from).into_iter().collect();
    let sql = format!(
        "SELECT t.namespace, t.name, t.upstream, t.sidecar, t.fingerprint, v.kind, v.declared, v.first_seen_at \
         FROM tools t JOIN tool_versions v ON v.namespace = t.namespace AND v.name = t.name \
         AND v.fingerprint = t.fingerprint {condition} \
         ORDER BY t.namespace, t.name, v.first_seen_at DESC, t.fingerprint, t.sidecar"
    );
    let mut found: Vec<CatalogueTool> = Vec::new();
    for row in tx.rows(&sql, &values).await? {
        let (namespace, name, sidecar) = (row.text("namespace")?, row.text("name")?, row.text("sidecar")?);
        let seen = SeenVersion {
            fingerprint: row.hash("fingerprint")?,
            declared: row.bytes("declared")?.into(),
            first_seen_at: row.int("first_seen_at")?,
            sidecars: vec![sidecar],
        };
        match found
            .last_mut()
            .filter(|tool| tool.namespace == namespace && tool.name == name)
        {
            Some(tool) => match tool.seen.last_mut() {
                Some(last) if last.fingerprint == seen.fingerprint => last.sidecars.extend(seen.sidecars),
                _ => tool.seen.push(seen),
            },
            None => found.push(CatalogueTool {
                namespace,
                upstream: row.text("upstream")?,
                name,
                kind: row.text("kind")?,
                seen: vec![seen],
                pin: None,
            }),
        }
    }
    let namespaces: BTreeSet<String> = found.iter().map(|tool| tool.namespace.clone()).collect();
    let mut pins = Accepted::new();
    for namespace in namespaces {
        pins.extend(accepted(tx, &namespace, None).await?);
    }
    for tool in &mut found {
        tool.pin = pins.remove(&(tool.namespace.clone(), tool.name.clone()));
    }
    Ok(found)
}

async fn accept(tx: &mut Tx, namespace: &str, accepted: &[Acceptance], act: &Act) -> StoreResult<Revision> {
    let mut changing = Changing::begin(tx, &act.by).await?;
    let catalogue: BTreeMap<String, CatalogueTool> = tools(tx, Some(namespace))
        .await?
        .into_iter()
        .map(|tool| (tool.name.clone(), tool))
        .collect();
    let mut records = Vec::new();
    for wanted in accepted {
        let Some(tool) = catalogue.get(&wanted.tool) else {
            return Err(StoreError::NotFound {
                what: "tool",
                id: wanted.tool.clone(),
            });
        };
        let Some(newest) = tool
            .seen
            .first()
            .filter(|seen| seen.fingerprint == wanted.fingerprint)
        else {
            return Err(StoreError::Conflict {
                reason: format!(
                    "`{}` has changed since it was shown; look at it again",
                    wanted.tool
                ),
            });
        };
        if tool
            .pin
            .as_ref()
            .is_some_and(|pin| pin.fingerprint == wanted.fingerprint)
        {
            continue;
        }
        let before = if tool.pin.is_some() {
            Scope::of_namespace(namespace)
        } else {
            Scope::default()
        };
        let place = (namespace, tool.upstream.as_str(), tool.name.as_str());
        write_pin(tx, &mut changing, place, &wanted.fingerprint, &act.by, &before).await?;
        records.push(pin_act(act, tool, newest, namespace));
    }
    let revision = changing.finish(tx).await?;
    if !records.is_empty() {
        acts::append_all(tx, &records).await?;
    }
    Ok(revision)
}

/// The record of one accepted tool: both declarations and the new fingerprint.
fn pin_act(act: &Act, tool: &CatalogueTool, newest: &SeenVersion, namespace: &str) -> Act {
    let hex = |hash: &[u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text = |declared: &[u8]| String::from_utf8_lossy(declared).into_owned();
    let details = serde_json::json!({
        "kind": PIN,
        "tool": tool.name,
        "fingerprint": hex(&newest.fingerprint),
        "declared": text(&newest.declared),
        "fingerprint_before": tool.pin.as_ref().map(|pin| hex(&pin.fingerprint)),
        "declared_before": tool.pin.as_ref().map(|pin| text(&pin.declared)),
        "details": act.details,
    });
    Act {
        details,
        ..act.clone()
    }
    .in_namespace(namespace)
}
