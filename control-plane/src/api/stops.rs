//! Emergency stops.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tools::id::{AgentId, SessionId, UpstreamName, UserId};

use super::input::{Body, NoParams, Params, Segment, glob, namespace, prose};
use super::sidecars::{by_prefix, is_connected};
use super::text;
use crate::auth::{Operator, Reach};
use crate::core::Core;
use crate::store::stops::{Stop, StopDraft, StopScope};

/// How long `?wait=applied` waits for sidecars: a few of their heartbeats.
const PATIENCE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(100);

/// A stop as clients read it.
#[derive(Debug, Serialize)]
pub(super) struct StopItem {
    id: String,
    scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    reason: String,
    by: String,
    created_at: String,
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifted_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifted_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    denied_approvals: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_approvals: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<usize>,
}

impl StopItem {
    fn new(stop: Stop) -> Self {
        let (scope, agent, user) = match stop.scope {
            StopScope::All => ("all".to_owned(), None, None),
            StopScope::Namespace(name) => (format!("namespace:{name}"), None, None),
            StopScope::Agent(glob) => (format!("agent:{glob}"), None, None),
            StopScope::Session { id, agent, user } => (format!("session:{id}"), agent, user),
            StopScope::Upstream(name) => (format!("upstream:{name}"), None, None),
        };
        let (lifted_at, lifted_by) = stop.lifted.unzip();
        Self {
            id: stop.id,
            scope,
            agent,
            user,
            namespace: stop.in_namespace,
            reason: stop.reason,
            by: stop.by,
            created_at: text::time(stop.created_at),
            sequence: stop.sequence,
            lifted_at: lifted_at.map(text::time),
            lifted_by,
            denied_approvals: None,
            cancelled_approvals: None,
            applied: None,
            of: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    #[serde(default)]
    all: bool,
}

/// The namespace that a stop is about; `None`: all.
fn namespace_of<'s>(scope: &'s StopScope, within: Option<&'s str>) -> Option<&'s str> {
    match scope {
        StopScope::Namespace(name) => Some(name),
        StopScope::All | StopScope::Agent(_) | StopScope::Session { .. } | StopScope::Upstream(_) => within,
    }
}

/// A stop over everything holds in every namespace, so it is shown in each.
fn is_shown(reach: &Reach, stop: &Stop) -> bool {
    namespace_of(&stop.scope, stop.in_namespace.as_deref()).is_none_or(|namespace| reach.covers(namespace))
}

pub(super) async fn list(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Params(filter): Params<Filter>,
) -> Result<Json<Vec<StopItem>>, Problem> {
    let mut stops = core.store.stops(filter.all).await?;
    stops.retain(|stop| is_shown(operator.reach(), stop));
    Ok(Json(stops.into_iter().map(StopItem::new).collect()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    scope: String,
    agent: Option<String>,
    user: Option<String>,
    namespace: Option<String>,
    reason: Option<String>,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    wait: Option<Until>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Until {
    Applied,
}

fn scope(new: &New) -> Result<StopScope, Problem> {
    let refused = |error: &dyn std::fmt::Display| Problem::bad_request(format!("scope: {error}"));
    let (kind, name) = new.scope.split_once(':').unwrap_or((&new.scope, ""));
    let is_session = kind == "session";
    if !is_session && (new.agent.is_some() || new.user.is_some()) {
        return Err(Problem::bad_request(
            "`agent` and `user` tell sessions apart; other scopes do not take them",
        ));
    }
    match (kind, name) {
        ("all", "") => Ok(StopScope::All),
        ("namespace", name) => namespace(name).map(StopScope::Namespace),
        ("agent", pattern) if !pattern.is_empty() => {
            glob("scope", pattern).map(|glob| StopScope::Agent(glob.as_str().to_owned()))
        }
        ("session", id) => Ok(StopScope::Session {
            id: SessionId::try_from(id)
                .map_err(|error| refused(&error))?
                .as_str()
                .to_owned(),
            agent: match &new.agent {
                Some(agent) => Some(
                    AgentId::try_from(agent.as_str())
                        .map_err(|error| refused(&error))?
                        .to_string(),
                ),
                None => None,
            },
            user: match &new.user {
                Some(user) => Some(
                    UserId::try_from(user.as_str())
                        .map_err(|error| refused(&error))?
                        .to_string(),
                ),
                None => None,
            },
        }),
        ("upstream", name) => UpstreamName::try_from(name)
            .map(|name| StopScope::Upstream(name.as_str().to_owned()))
            .map_err(|error| refused(&error)),
        _ => Err(Problem::bad_request(
            "scope is `all`, `namespace:<name>`, `agent:<pattern>`, `session:<id>` or `upstream:<name>`",
        )),
    }
}

pub(super) async fn create(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Params(Wait { wait }): Params<Wait>,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<StopItem>), Problem> {
    let scope = scope(&new)?;
    let mut in_namespace = new.namespace.as_deref().map(namespace).transpose()?;
    if operator.reach().namespaces().is_some() {
        match (&scope, namespace_of(&scope, in_namespace.as_deref())) {
            (StopScope::All, None) => operator.reach().everywhere()?,
            (_, Some(namespace)) => operator.reach().act_in(namespace)?,
            (_, None) => in_namespace = Some(operator.reach().choose(None, "")?),
        }
    }
    let draft = StopDraft {
        scope,
        in_namespace,
        reason: prose("reason", new.reason)?,
        by: operator.by(new.by.as_deref())?,
    };
    let details = json!({
        "scope": new.scope, "agent": new.agent, "user": new.user, "reason": draft.reason,
    });
    let act = operator
        .act("mesh.stop", &draft.by, details)
        .in_namespace(draft.in_namespace.as_deref().unwrap_or_default());
    let made = core.store.create_stop(draft, act).await?;
    tracing::warn!(scope = new.scope, by = made.stop.by, "an emergency stop holds");
    let stop = made.stop.clone();
    let mut item = StopItem::new(made.stop);
    item.denied_approvals = Some(made.denied);
    item.cancelled_approvals = Some(made.cancelled);
    if let Some(Until::Applied) = wait {
        let (applied, of) = applied(&core, &stop).await?;
        (item.applied, item.of) = (Some(applied), Some(of));
    }
    Ok((StatusCode::CREATED, Json(item)))
}

/// On how many of how many connected sidecars the stop is in force, once it is on all of them or patience has ended.
async fn applied(core: &Core, stop: &Stop) -> Result<(usize, usize), Problem> {
    let namespace = namespace_of(&stop.scope, stop.in_namespace.as_deref());
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let sidecars = core.store.sidecars(namespace).await?;
        let fleet = sidecars.len();
        let connected: Vec<_> = sidecars
            .iter()
            .filter(|sidecar| is_connected(core, sidecar, fleet))
            .collect();
        let of = connected.len();
        let applied = connected
            .iter()
            .filter(|sidecar| sidecar.heartbeat.stop_sequence >= stop.sequence)
            .count();
        if applied == of || tokio::time::Instant::now() >= deadline {
            return Ok((applied, of));
        }
        tokio::time::sleep(LOOK).await;
    }
}

pub(super) async fn lift(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<StopItem>, Problem> {
    let by = operator.by(None)?;
    let id = if operator.reach().namespaces().is_some() {
        let mut stops = core.store.stops(false).await?;
        stops.retain(|stop| is_shown(operator.reach(), stop));
        let stop = by_prefix("stop", &id, stops, |stop| &stop.id)?;
        match namespace_of(&stop.scope, stop.in_namespace.as_deref()) {
            Some(namespace) => operator.reach().act_in(namespace)?,
            None => operator.reach().everywhere()?,
        }
        stop.id
    } else {
        id
    };
    let act = operator.act("mesh.resume", &by, json!({"stop": id}));
    let stop = core.store.lift_stop(&id, &by, act).await?;
    tracing::warn!(stop = stop.id, %by, "an emergency stop was lifted");
    Ok(Json(StopItem::new(stop)))
}
