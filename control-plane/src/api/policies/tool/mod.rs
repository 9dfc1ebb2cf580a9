//! `PUT /policies/{agent}/tools/{tool}`: one tool's action for one agent, set in the text of the agent's own policy.
//!
//! [`question`] is what is asked, [`plan`] works out the new text and proves it ([`create`] for an agent without
//! a policy of its own), [`commit`] stores it. A plan that somebody
//! else's change has made stale is made again.

mod commit;
mod create;
mod plan;
mod question;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use net::problem::Problem;
use policy::edit::Change;
use serde::{Deserialize, Serialize};

use super::super::input::{Body, Params};
use super::document::belief;
use super::edit::may_change;
use super::view::etag;
use crate::auth::Operator;
use crate::core::Core;
use commit::commit;
use plan::{Plan, plan};
use question::Question;

/// How often a plan is made that others' changes make stale.
const ATTEMPTS: usize = 5;
/// How long a change of the policy directory takes to be applied, nearly.
const SETTLE: Duration = Duration::from_millis(250);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Wanted {
    action: String,
    by: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Where {
    namespace: Option<String>,
}

/// What was done.
#[derive(Debug, Serialize)]
struct Done<'a> {
    agent: &'a str,
    tool: &'a str,
    /// What the static rules say now, before floors.
    action: policy::Action,
    action_before: policy::Action,
    /// Whether anything was changed.
    changed: bool,
    /// The agent's own policy; none when it has none.
    policy: Option<&'a str>,
    /// The rule of it that names the tool.
    rule_index: Option<usize>,
    source_file: Option<&'a str>,
    version: Option<u64>,
    revision: Option<String>,
}

/// Why a plan came to nothing.
enum Failed {
    /// Somebody else changed something in between: worth another plan.
    Stale(Problem),
    Refused(Problem),
}

impl<E: Into<Problem>> From<E> for Failed {
    fn from(problem: E) -> Self {
        Self::Refused(problem.into())
    }
}

pub(in super::super) async fn put_tool(
    State(core): State<Arc<Core>>,
    operator: Operator,
    names: Result<Path<(String, String)>, axum::extract::rejection::PathRejection>,
    Params(place): Params<Where>,
    headers: HeaderMap,
    Body(wanted): Body<Wanted>,
) -> Result<Response, Problem> {
    let Ok(Path((agent, tool))) = names else {
        return Err(Problem::bad_request(
            "the path cannot be read; its segments are percent-encoded UTF-8",
        ));
    };
    let by = operator.by(wanted.by.as_deref())?;
    let question = Arc::new(Question::new(
        &agent,
        &tool,
        &wanted.action,
        place.namespace,
        &by,
    )?);
    let belief = belief(&headers)?;
    let mut stale = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(SETTLE).await;
        }
        let planned = plan(&core, &question, belief).await;
        if let Ok(plan) = &planned {
            may_carry_out(&core, &operator, plan).await?;
        }
        let tried = match planned {
            Ok(plan) => commit(&core, &operator, &question, &plan)
                .await
                .map(|row| answer(&question, &plan, row.as_ref())),
            Err(failed) => Err(failed),
        };
        match tried {
            Ok(response) => return Ok(response),
            Err(Failed::Refused(problem)) => return Err(problem),
            Err(Failed::Stale(problem)) => stale = Some(problem),
        }
    }
    Err(stale.unwrap_or_else(Problem::internal))
}

/// Whether the operator may change the policy that the plan changes. A new one would apply in every namespace.
async fn may_carry_out(core: &Core, operator: &Operator, plan: &Plan) -> Result<(), Problem> {
    if operator.reach().namespaces().is_none() || !plan.is_change() {
        return Ok(());
    }
    if plan.creates() {
        return operator.reach().everywhere();
    }
    let row = match &plan.policy {
        Some(name) => Some(core.store.policy(name).await?),
        None => None,
    };
    may_change(operator, row.as_ref())
}

fn answer(question: &Question, plan: &Plan, row: Option<&commit::Stored>) -> Response {
    let done = Done {
        agent: question.agent.as_str(),
        tool: question.tool.as_str(),
        action: plan.after,
        action_before: plan.before,
        changed: plan.is_change(),
        policy: plan.policy.as_deref(),
        rule_index: plan.rule,
        source_file: plan.file(),
        version: row.and_then(|row| row.version),
        revision: row.map(|row| row.revision.to_string()),
    };
    let status = if plan.creates() {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut response = (status, Json(done)).into_response();
    if let Some(version) = row.and_then(|row| row.version) {
        response.headers_mut().insert(header::ETAG, etag(version));
    }
    response
}

/// The action's name in requests and records.
fn name_of(change: Change) -> &'static str {
    match change {
        Change::Set(action) => action.as_str(),
        Change::Inherit => "inherit",
    }
}
