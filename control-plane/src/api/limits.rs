//! Limits: what is used of them, and setting them back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::input::{Params, namespace};
use crate::auth::Operator;
use crate::core::Core;
use crate::quotas::{self, CountedIn, WindowError};
use crate::store::quotas::{QuotaFilter, QuotaKind, QuotaUse};

/// One limit of one policy for one agent.
#[derive(Debug, Serialize)]
pub(super) struct LimitItem {
    policy: String,
    namespace: String,
    agent: String,
    kind: &'static str,
    used: u64,
    /// Absent when the policy no longer says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    /// Where a window is counted at the moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_in: Option<CountedIn>,
}

impl From<WindowError> for Problem {
    fn from(error: WindowError) -> Self {
        match error {
            WindowError::Store(error) => error.into(),
            WindowError::Full => Self::unavailable(error.to_string()),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    policy: Option<String>,
    namespace: Option<String>,
    agent: Option<String>,
}

impl Filter {
    fn read(self) -> Result<QuotaFilter, Problem> {
        Ok(QuotaFilter {
            policy: self.policy,
            namespace: self.namespace.as_deref().map(namespace).transpose()?,
            agent: self.agent,
        })
    }
}

pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Params(filter): Params<Filter>,
) -> Result<Json<Vec<LimitItem>>, Problem> {
    let uses = uses(&core, &filter.read()?).await?;
    Ok(Json(
        uses.into_iter().map(|counted| item(&core, counted)).collect(),
    ))
}

/// Windows and totals that something is used of.
async fn uses(core: &Core, filter: &QuotaFilter) -> Result<Vec<QuotaUse>, Problem> {
    let mut uses = core.windows.uses(filter).await?;
    let totals = core.store.quota_uses(filter).await?;
    uses.extend(
        totals
            .into_iter()
            .filter(|counted| counted.key.kind == QuotaKind::Total),
    );
    uses.retain(|counted| counted.used > 0);
    Ok(uses)
}

fn item(core: &Core, counted: QuotaUse) -> LimitItem {
    let limit = quotas::limit(&core.hub, &counted.key);
    let (kind, counted_in) = match counted.key.kind {
        QuotaKind::PerMinute => ("per_minute", Some(core.windows.counted_in())),
        QuotaKind::Total => ("total", None),
    };
    LimitItem {
        policy: counted.key.policy,
        namespace: counted.key.namespace,
        agent: counted.key.agent,
        kind,
        used: counted.used,
        limit,
        remaining: limit.map(|limit| limit.saturating_sub(counted.used)),
        counted_in,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reset {
    policy: Option<String>,
    namespace: Option<String>,
    agent: Option<String>,
    /// Every limit of every agent.
    #[serde(default)]
    all: bool,
    by: Option<String>,
}

/// Answers what was used before.
pub(super) async fn reset(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Params(asked): Params<Reset>,
) -> Result<Json<Vec<LimitItem>>, Problem> {
    let is_narrow = asked.policy.is_some() || asked.namespace.is_some() || asked.agent.is_some();
    if is_narrow == asked.all {
        return Err(Problem::bad_request(
            "say whose limits are set back: policy, namespace, agent, or all=true alone",
        ));
    }
    let by = operator.by(asked.by.as_deref())?;
    let filter = Filter {
        policy: asked.policy,
        namespace: asked.namespace,
        agent: asked.agent,
    };
    let filter = filter.read()?;
    let before = uses(&core, &filter).await?;
    let details = json!({
        "policy": filter.policy, "namespace": filter.namespace, "agent": filter.agent, "limits": before.len(),
    });
    let mut act = operator.act("mesh.limits_reset", &by, details);
    if let Some(namespace) = &filter.namespace {
        act = act.in_namespace(namespace);
    }
    core.store.reset_quotas(&filter, act).await?;
    core.windows.reset(&filter).await;
    Ok(Json(
        before.into_iter().map(|counted| item(&core, counted)).collect(),
    ))
}
