//! Sidecars: who enrolled, with what, and in which state it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::input::{NoParams, Params, Segment};
use super::text;
use crate::auth::{Operator, StreamKind};
use crate::core::Core;
use crate::store::StoreError;
use crate::store::sidecars::{RejectedResource, Sidecar};

/// Beyond this many sidecars heartbeats are written less often (see [`crate::rollout`]).
const FEW: usize = 500;
const SOON: Duration = Duration::from_secs(6);
const LATE: Duration = Duration::from_secs(25);

/// Whether the sidecar has a stream here, or was heard of by some replica a moment ago.
pub(super) fn is_connected(core: &Core, sidecar: &Sidecar, fleet: usize) -> bool {
    if sidecar.revoked.is_some() {
        return false;
    }
    let has_stream = core.sidecars.has_stream(StreamKind::Watch, &sidecar.id);
    let silence = if fleet > FEW { LATE } else { SOON };
    let since = core.primary.database_now().saturating_sub(sidecar.last_seen);
    has_stream || since < net::clock::micros(silence)
}

#[derive(Debug, Serialize)]
pub(super) struct SidecarItem {
    id: String,
    name: String,
    namespace: String,
    agents: Vec<String>,
    upstreams: Vec<String>,
    epoch: u64,
    connected: bool,
    version: String,
    applied: Option<String>,
    lease_age_ms: u64,
    last_seen: Option<String>,
    enrolled_at: String,
    labels: BTreeMap<String, String>,
    nacks: Vec<RejectedResource>,
    open_intents: u32,
    high_water: u64,
    stop_sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_by: Option<String>,
}

impl SidecarItem {
    fn new(core: &Core, sidecar: Sidecar, fleet: usize) -> Self {
        let connected = is_connected(core, &sidecar, fleet);
        let (revoked_at, revoked_by) = sidecar.revoked.unzip();
        let (applied, nacks) = match sidecar.ack {
            Some(ack) => (Some(ack.revision.to_string()), ack.rejected),
            None => (None, Vec::new()),
        };
        Self {
            id: sidecar.id,
            name: sidecar.facts.name,
            namespace: sidecar.namespace,
            agents: sidecar.agents,
            upstreams: sidecar.upstreams,
            epoch: sidecar.epoch,
            connected,
            version: sidecar.facts.version,
            applied,
            lease_age_ms: sidecar.heartbeat.lease_age_ms,
            last_seen: Some(sidecar.last_seen).filter(|at| *at > 0).map(text::time),
            enrolled_at: text::time(sidecar.enrolled_at),
            labels: sidecar.facts.labels,
            nacks,
            open_intents: sidecar.heartbeat.open_intents,
            high_water: sidecar.heartbeat.high_water,
            stop_sequence: sidecar.heartbeat.stop_sequence,
            revoked_at: revoked_at.map(text::time),
            revoked_by,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    namespace: Option<String>,
}

pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Params(filter): Params<Filter>,
) -> Result<Json<Vec<SidecarItem>>, Problem> {
    let sidecars = core.store.sidecars(filter.namespace.as_deref()).await?;
    let fleet = sidecars.len();
    let items = sidecars
        .into_iter()
        .map(|sidecar| SidecarItem::new(&core, sidecar, fleet));
    Ok(Json(items.collect()))
}

/// The one whose id it is, or begins with it.
async fn find(core: &Core, operator: &Operator, id: &str) -> Result<Sidecar, Problem> {
    match core.store.sidecar(id).await {
        Ok(sidecar) => {
            operator.reach().find(&sidecar.namespace, "sidecar", id)?;
            return Ok(sidecar);
        }
        Err(StoreError::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let mut all = core.store.sidecars(None).await?;
    all.retain(|sidecar| operator.reach().covers(&sidecar.namespace));
    Ok(by_prefix("sidecar", id, all, |sidecar| &sidecar.id)?)
}

/// The one entry whose id begins so.
pub(super) fn by_prefix<T>(
    what: &'static str,
    prefix: &str,
    entries: Vec<T>,
    id: impl Fn(&T) -> &str,
) -> Result<T, StoreError> {
    let mut fitting = entries.into_iter().filter(|entry| id(entry).starts_with(prefix));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (Some(first), Some(_)) if id(&first) == prefix => Ok(first),
        (Some(_), Some(_)) => Err(StoreError::Ambiguous {
            what,
            prefix: prefix.to_owned(),
        }),
        (None, _) => Err(StoreError::NotFound {
            what,
            id: prefix.to_owned(),
        }),
    }
}

pub(super) async fn one(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<SidecarItem>, Problem> {
    let sidecar = find(&core, &operator, &id).await?;
    Ok(Json(SidecarItem::new(&core, sidecar, 1)))
}

/// Its streams end, here at once and on other replicas within their next poll.
pub(super) async fn revoke(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<SidecarItem>, Problem> {
    let by = operator.by(None)?;
    let sidecar = find(&core, &operator, &id).await?;
    let details = json!({"sidecar": sidecar.id, "name": sidecar.facts.name});
    let act = operator
        .act("mesh.sidecar_revoke", &by, details)
        .in_namespace(&sidecar.namespace);
    let revoked = core.store.revoke_sidecar(&sidecar.id, act).await?;
    core.sidecars.refresh(&*core.store).await?;
    Ok(Json(SidecarItem::new(&core, revoked, 1)))
}
