//! Accepting what sidecars see now, for exactly the fingerprints that were shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use net::problem::Problem;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::input::Body;
use crate::auth::Operator;
use crate::core::Core;
use crate::keys::hex;
use crate::store::StoreError;
use crate::store::catalogue::{Acceptance, CatalogueTool, PinStatus};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Accept {
    server: Option<String>,
    tools: Option<Vec<String>>,
    namespace: Option<String>,
    #[serde(default)]
    fingerprints: BTreeMap<String, String>,
    by: Option<String>,
}

pub(in super::super) async fn accept(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Body(accept): Body<Accept>,
) -> Result<Json<Value>, Problem> {
    let by = operator.by(accept.by.as_deref())?;
    let namespace = match (&accept.namespace, operator.reach().namespaces()) {
        (named, Some(_)) => Some(operator.reach().choose(named.clone(), "")?),
        (named, None) => named.clone(),
    };
    let rows = core.store.tools(namespace.as_deref()).await?;
    let chosen = choose(&accept, &rows)?;
    let namespace = only_namespace(&chosen)?;
    let mut accepted = Vec::new();
    for tool in &chosen {
        accepted.push(acceptance(tool, &accept.fingerprints)?);
    }
    let names: Vec<String> = accepted
        .iter()
        .map(|acceptance| acceptance.tool.clone())
        .collect();
    let act = operator
        .act("mesh.pin_accept", &by, json!({}))
        .in_namespace(&namespace);
    let revision = core.store.accept_pins(&namespace, accepted, act).await?;
    Ok(Json(json!({"accepted": names, "revision": revision.to_string()})))
}

fn choose<'a>(accept: &Accept, rows: &'a [CatalogueTool]) -> Result<Vec<&'a CatalogueTool>, Problem> {
    let wanted: BTreeSet<&str> = match (&accept.server, &accept.tools) {
        (Some(server), None) => {
            let held_back =
                |row: &&CatalogueTool| row.upstream == *server && row.status() != PinStatus::Pinned;
            let of_server: Vec<&CatalogueTool> = rows.iter().filter(held_back).collect();
            if !rows.iter().any(|row| row.upstream == *server) {
                return Err(not_found("upstream", server));
            }
            return check_named(accept, of_server);
        }
        (None, Some(tools)) => tools.iter().map(String::as_str).collect(),
        (None, None) if !accept.fingerprints.is_empty() => {
            accept.fingerprints.keys().map(String::as_str).collect()
        }
        (None, None) | (Some(_), Some(_)) => {
            return Err(Problem::bad_request(
                "give `tools` (a list of tools), or `server` (an upstream)",
            ));
        }
    };
    if wanted.is_empty() {
        return Err(Problem::bad_request("`tools` names no tool"));
    }
    for name in &wanted {
        if !rows.iter().any(|row| row.name == *name) {
            return Err(not_found("tool", name));
        }
    }
    let chosen = rows
        .iter()
        .filter(|row| wanted.contains(row.name.as_str()))
        .collect();
    check_named(accept, chosen)
}

/// A fingerprint of a tool that is not accepted is a mistake.
fn check_named<'a>(
    accept: &Accept,
    chosen: Vec<&'a CatalogueTool>,
) -> Result<Vec<&'a CatalogueTool>, Problem> {
    let stray = accept
        .fingerprints
        .keys()
        .find(|name| !chosen.iter().any(|tool| tool.name == **name));
    match stray {
        Some(name) => Err(Problem::bad_request(format!(
            "`fingerprints` names {name}, which is not among the tools to accept"
        ))),
        None => Ok(chosen),
    }
}

fn not_found(what: &'static str, id: &str) -> Problem {
    StoreError::NotFound {
        what,
        id: id.to_owned(),
    }
    .into()
}

fn only_namespace(chosen: &[&CatalogueTool]) -> Result<String, Problem> {
    let namespaces: BTreeSet<&str> = chosen.iter().map(|tool| tool.namespace.as_str()).collect();
    match (namespaces.first(), namespaces.len()) {
        (None, _) => Err(Problem::conflict(
            "nothing of this is held back; see GET /tools/pins",
        )),
        (Some(only), 1) => Ok((*only).to_owned()),
        (Some(_), _) => Err(Problem::bad_request(format!(
            "these tools are in several namespaces; give `namespace`: {}",
            namespaces.into_iter().collect::<Vec<_>>().join(", ")
        ))),
    }
}

fn acceptance(tool: &CatalogueTool, shown: &BTreeMap<String, String>) -> Result<Acceptance, Problem> {
    let seen = tool.seen.first().map(|seen| seen.fingerprint).unwrap_or_default();
    let fingerprint = match shown.get(&tool.name) {
        None => seen,
        Some(text) => hex::decode(text)
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
            .ok_or_else(|| {
                Problem::bad_request(format!(
                    "the fingerprint of {} has not 64 hexadecimal digits",
                    tool.name
                ))
            })?,
    };
    if fingerprint != seen {
        return Err(Problem::conflict(format!(
            "{} has changed since it was shown; look at it again",
            tool.name
        )));
    }
    Ok(Acceptance {
        tool: tool.name.clone(),
        fingerprint,
    })
}
