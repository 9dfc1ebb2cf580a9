//! Grants: time-boxed lifts of `human_approval`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::input::{Body, NoParams, Params, Segment, glob, lifetime, namespace, prose, tool_glob};
use super::text;
use crate::auth::Operator;
use crate::core::Core;
use crate::store::desired::{GrantDraft, GrantRow};
use crate::store::{Micros, StoreError};

/// Patterns in one grant.
const MOST_TOOLS: usize = 256;

/// A grant as clients read it.
#[derive(Debug, Serialize)]
pub(super) struct GrantItem {
    id: String,
    namespace: String,
    agent: String,
    tools: Vec<String>,
    expires_at: String,
    remaining: String,
    granted_by: String,
    created_at: String,
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suspended_at: Option<String>,
}

impl GrantItem {
    pub(super) fn new(row: &GrantRow, now: Micros) -> Self {
        let grant = &row.grant;
        Self {
            id: grant.id.clone(),
            namespace: grant.namespace.clone(),
            agent: grant.agent.clone(),
            tools: grant.tools.clone(),
            expires_at: text::time(grant.expires_at),
            // While a stop suspends it, its time does not run.
            remaining: text::remaining(grant.expires_at, row.suspended_at.unwrap_or(now)),
            granted_by: row.granted_by.clone(),
            created_at: text::time(row.created_at),
            revision: row.revision.to_string(),
            reason: row.reason.clone(),
            suspended_at: row.suspended_at.map(text::time),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    namespace: Option<String>,
    agent: Option<String>,
}

pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Params(filter): Params<Filter>,
) -> Result<Json<Vec<GrantItem>>, Problem> {
    let rows = core.store.grants(filter.namespace.as_deref()).await?;
    let now = core.primary.database_now();
    let wanted = |row: &&GrantRow| {
        filter
            .agent
            .as_ref()
            .is_none_or(|agent| row.grant.agent == *agent)
    };
    Ok(Json(
        rows.iter()
            .filter(wanted)
            .map(|row| GrantItem::new(row, now))
            .collect(),
    ))
}

/// One pattern, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a pattern or a list of patterns")]
enum Patterns {
    One(String),
    Several(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct New {
    agent: Option<String>,
    tools: Patterns,
    duration: String,
    reason: Option<String>,
    namespace: Option<String>,
    by: Option<String>,
}

pub(super) async fn create(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<GrantItem>), Problem> {
    let agent = match (new.agent, operator.agent()) {
        (Some(agent), _) => agent,
        (None, Some(caller)) => caller.as_str().to_owned(),
        (None, None) => {
            return Err(Problem::bad_request(
                "the grant has no `agent`: say which agent (or a pattern over agents) it is for",
            ));
        }
    };
    glob("agent", &agent)?;
    let tools = match new.tools {
        Patterns::One(tool) => vec![tool],
        Patterns::Several(tools) => tools,
    };
    if tools.is_empty() || tools.len() > MOST_TOOLS {
        return Err(Problem::bad_request(format!(
            "`tools` names 1 to {MOST_TOOLS} tools or patterns"
        )));
    }
    for tool in &tools {
        tool_glob(tool)?;
    }
    let reason = prose("reason", new.reason)?;
    let draft = GrantDraft {
        namespace: namespace(&operator.reach().choose(new.namespace, "default")?)?,
        agent,
        tools,
        duration: lifetime("duration", "a grant", &new.duration, core.lifetimes.grant)?,
        reason: Some(reason).filter(|reason| !reason.is_empty()),
        granted_by: operator.by(new.by.as_deref())?,
    };
    let details = json!({"tools": draft.tools, "duration": new.duration, "reason": draft.reason});
    let act = operator
        .act("mesh.grant_create", &draft.granted_by, details)
        .in_namespace(&draft.namespace)
        .about_agent(&draft.agent);
    let row = core.store.create_grant(draft, act).await?;
    let item = GrantItem::new(&row, core.primary.database_now());
    Ok((StatusCode::CREATED, Json(item)))
}

pub(super) async fn revoke(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<GrantItem>, Problem> {
    let by = operator.by(None)?;
    let mut rows = core.store.grants(None).await?;
    rows.retain(|row| operator.reach().covers(&row.grant.namespace));
    if operator.reach().namespaces().is_some() && !rows.iter().any(|row| row.grant.id.starts_with(&id)) {
        return Err(StoreError::NotFound { what: "grant", id }.into());
    }
    let mut fitting = rows.iter().filter(|row| row.grant.id.starts_with(&id));
    let mut act = operator.act("mesh.grant_revoke", &by, json!({"grant": id}));
    let mut whole = id.clone();
    // Of several that fit, the store refuses.
    if let (Some(row), None) = (fitting.next(), fitting.next()) {
        whole.clone_from(&row.grant.id);
        let details = json!({"grant": row.grant.id, "tools": row.grant.tools});
        act = operator
            .act("mesh.grant_revoke", &by, details)
            .in_namespace(&row.grant.namespace)
            .about_agent(&row.grant.agent);
    }
    let row = core.store.revoke_grant(&whole, act).await?;
    Ok(Json(GrantItem::new(&row, core.primary.database_now())))
}
