//! How far a revision has come.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use net::problem::Problem;
use serde::Serialize;

use super::input::{NoParams, Params, Segment, revision};
use super::sidecars::is_connected;
use super::text;
use crate::auth::Operator;
use crate::core::Core;
use crate::store::StoreError;
use crate::store::sidecars::{Rollout, Sidecar};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Progress {
    Applied,
    Rejected,
    Pending,
}

#[derive(Debug, Serialize)]
struct Standing {
    sidecar: String,
    name: String,
    namespace: String,
    state: Progress,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    apply_us: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<String>,
}

/// Only connected sidecars count: one that is away gets the newest state when it comes back.
#[derive(Debug, Serialize)]
pub(super) struct RolloutItem {
    revision: String,
    committed_at: Option<String>,
    complete: bool,
    applied: usize,
    rejected: usize,
    pending: usize,
    of: usize,
    away: usize,
    sidecars: Vec<Standing>,
}

pub(super) async fn one(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(asked): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<RolloutItem>, Problem> {
    let head = core.store.head().await?.revision;
    let wanted = match asked.as_str() {
        "latest" => head,
        text => revision(text)?,
    };
    if wanted > head {
        return Err(StoreError::NotFound {
            what: "revision",
            id: asked,
        }
        .into());
    }
    let mut rollout = core.store.rollout(wanted).await?;
    rollout
        .sidecars
        .retain(|sidecar| operator.reach().covers(&sidecar.namespace));
    Ok(Json(item(&core, &rollout)))
}

fn item(core: &Core, rollout: &Rollout) -> RolloutItem {
    let fleet = rollout.sidecars.len();
    let connected = rollout
        .sidecars
        .iter()
        .filter(|sidecar| is_connected(core, sidecar, fleet));
    let sidecars: Vec<Standing> = connected.map(|sidecar| standing(rollout, sidecar)).collect();
    let count = |state| sidecars.iter().filter(|standing| standing.state == state).count();
    let pending = count(Progress::Pending);
    RolloutItem {
        revision: rollout.revision.to_string(),
        committed_at: rollout.committed_at.map(text::time),
        complete: pending == 0,
        applied: count(Progress::Applied),
        rejected: count(Progress::Rejected),
        pending,
        of: sidecars.len(),
        away: fleet - sidecars.len(),
        sidecars,
    }
}

fn standing(rollout: &Rollout, sidecar: &Sidecar) -> Standing {
    let ack = sidecar.ack.as_ref().filter(|_| rollout.applied(sidecar));
    // A later view tells that this one is in force, not since when.
    let exact = ack.filter(|ack| ack.revision == rollout.revision);
    let latency = rollout
        .committed_at
        .zip(exact)
        .map(|(committed, _)| sidecar.acked_at.saturating_sub(committed).max(0) / 1_000);
    Standing {
        sidecar: sidecar.id.clone(),
        name: sidecar.facts.name.clone(),
        namespace: sidecar.namespace.clone(),
        state: match ack {
            None => Progress::Pending,
            Some(ack) if ack.rejected.is_empty() => Progress::Applied,
            Some(_) => Progress::Rejected,
        },
        applied_at: exact.map(|_| text::time(sidecar.acked_at)),
        latency_ms: latency,
        apply_us: exact.map(|ack| ack.apply_us),
        reasons: ack
            .into_iter()
            .flat_map(|ack| &ack.rejected)
            .map(|rejected| format!("{} {}: {}", rejected.kind, rejected.name, rejected.reason))
            .collect(),
    }
}
