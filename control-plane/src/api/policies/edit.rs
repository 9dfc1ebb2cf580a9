//! Changing what is there: nothing changes unless the whole document is valid.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use net::problem::Problem;
use policy::Policy;
use policy::document::PolicyKind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::input::{self, Body, NoParams, Params, Segment};
use super::super::refusal::internal;
use super::document::{Belief, belief, parse, parse_one, sent};
use super::view::{etag, not_there};
use crate::auth::{Operator, Role};
use crate::core::Core;
use crate::documents;
use crate::store::desired::{Expected, PolicyOrigin, PolicyRow};
use crate::store::{Act, StoreError};

/// Versions that are looked through for the one to go back to.
const HISTORY: u32 = 10_000;

pub(in super::super) async fn put(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let sent = sent(&headers, &input::bytes(request, &()).await?)?;
    let by = operator.by(sent.by.as_deref())?;
    let policy = parse_one(&name, &sent.text, &core.lists)?;
    let draft = documents::draft(&policy, &sent.text).map_err(|error| internal(&error))?;
    let present = present(&core, &name).await?;
    may_change(&operator, present.as_ref())?;
    may_write(&operator, &policy, &draft.namespaces)?;
    let expected = expected(&name, belief(&headers)?, present.as_ref())?;
    let change = if present.is_some() { "replace" } else { "create" };
    let act = edit(&operator, &by, &name, change, present.as_ref(), Some(&sent.text));
    let row = core.store.put_policy(draft, expected, act).await?;
    let status = if present.is_some() {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    Ok(in_force(status, &row))
}

pub(in super::super) async fn remove(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    Params(NoParams {}): Params<NoParams>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let by = operator.by(None)?;
    let present = present(&core, &name).await?;
    may_change(&operator, present.as_ref())?;
    let expected = match expected(&name, belief(&headers)?, present.as_ref())? {
        Expected::Absent => return Err(Problem::bad_request("If-None-Match makes no sense when removing")),
        other => other,
    };
    changes_here(present.as_ref())?;
    let act = edit(&operator, &by, &name, "delete", present.as_ref(), None);
    let revision = core.store.delete_policy(&name, expected, act).await?;
    Ok(Json(json!({"name": name, "revision": revision.to_string()})))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Back {
    version: u64,
    by: Option<String>,
}

pub(in super::super) async fn rollback(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    headers: HeaderMap,
    Body(back): Body<Back>,
) -> Result<Response, Problem> {
    let by = operator.by(back.by.as_deref())?;
    if !(1..=input::MAX_NUMBER).contains(&back.version) {
        return Err(Problem::bad_request(
            "version is a number from 1, as the history shows it",
        ));
    }
    let versions = core.store.policy_versions(&name, HISTORY).await?;
    let wanted = versions
        .iter()
        .find(|version| version.row.version == back.version);
    let Some(wanted) = wanted else {
        let id = format!("{name} version {}", back.version);
        return Err(StoreError::NotFound { what: "policy", id }.into());
    };
    let present = present(&core, &name).await?;
    may_change(&operator, present.as_ref())?;
    let expected = expected(&name, belief(&headers)?, present.as_ref())?;
    changes_here(present.as_ref())?;
    // What was valid then need not be so now.
    let text = &wanted.row.document.text;
    let policy = parse_one(&name, text, &core.lists)?;
    may_write(&operator, &policy, &wanted.row.document.namespaces)?;
    let change = format!("rollback to version {}", back.version);
    let act = edit(&operator, &by, &name, &change, present.as_ref(), Some(text));
    let row = core
        .store
        .rollback_policy(&name, back.version, expected, act)
        .await?;
    Ok(in_force(StatusCode::OK, &row))
}

pub(in super::super) async fn validate(
    State(core): State<Arc<Core>>,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let sent = sent(&headers, &input::bytes(request, &()).await?)?;
    let problems = parse("policy.yaml", &sent.text, &core.lists)
        .err()
        .unwrap_or_default();
    Ok(Json(json!({"valid": problems.is_empty(), "problems": problems})))
}

/// Whether an operator may change or remove what is there. What concerns none of its namespaces is not there for it.
pub(super) fn may_change(operator: &Operator, present: Option<&PolicyRow>) -> Result<(), Problem> {
    let Some(row) = present else { return Ok(()) };
    let document = &row.document;
    if !operator.reach().meets(&document.namespaces) {
        return Err(not_there(document.name.clone()));
    }
    // What cannot be read could be a guardrail.
    let is_standard =
        Policy::from_sent(&document.body).is_ok_and(|policy| policy.kind == PolicyKind::Standard);
    may_edit(operator, is_standard, &document.namespaces)
}

/// Whether an operator may put a policy in force.
fn may_write(operator: &Operator, policy: &Policy, namespaces: &[String]) -> Result<(), Problem> {
    may_edit(operator, policy.kind == PolicyKind::Standard, namespaces)
}

fn may_edit(operator: &Operator, is_standard: bool, namespaces: &[String]) -> Result<(), Problem> {
    let role = if is_standard { Role::Editor } else { Role::Admin };
    let acting = operator
        .acting_as(role)
        .map_err(|problem| Problem::forbidden(format!("a guardrail: {}", problem.detail())))?;
    if acting.reach().contains(namespaces) {
        return Ok(());
    }
    Err(Problem::forbidden(
        "the policy concerns namespaces beyond those of the credential; give it a `namespace` that names only those",
    ))
}

async fn present(core: &Core, name: &str) -> Result<Option<PolicyRow>, Problem> {
    match core.store.policy(name).await {
        Ok(row) => Ok(Some(row)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A document of the configuration or of a folder would be back, as it is there, at the next start.
fn changes_here(present: Option<&PolicyRow>) -> Result<(), Problem> {
    let Some(document) = present.map(|row| &row.document) else {
        return Ok(());
    };
    let owner = match &document.origin {
        PolicyOrigin::Api => return Ok(()),
        PolicyOrigin::Inline { .. } => "the configuration's `policies`".to_owned(),
        PolicyOrigin::Directory { file, .. } => format!("the policy directory's {file}"),
    };
    let reason = format!("policy `{}` belongs to {owner}; change it there", document.name);
    Err(Problem::new(StatusCode::CONFLICT, reason))
}

fn expected(name: &str, belief: Belief, present: Option<&PolicyRow>) -> Result<Expected, Problem> {
    match (belief, present) {
        (Belief::Is(expected), _) => Ok(expected),
        (Belief::Exists, Some(row)) => Ok(Expected::Version(row.version)),
        (Belief::Exists, None) => Err(Problem::new(
            StatusCode::PRECONDITION_FAILED,
            format!("there is no policy `{name}`"),
        )),
    }
}

fn edit(
    operator: &Operator,
    by: &str,
    name: &str,
    change: &str,
    before: Option<&PolicyRow>,
    after: Option<&str>,
) -> Act {
    let details = json!({
        "policy": name,
        "change": change,
        "version_before": before.map(|row| row.version),
        "before": before.map(|row| &row.document.text),
        "after": after,
    });
    operator.act("mesh.policy_edit", by, details)
}

fn in_force(status: StatusCode, row: &PolicyRow) -> Response {
    let body = json!({
        "name": row.document.name,
        "version": row.version,
        "revision": row.revision.to_string(),
    });
    (status, [(header::ETAG, etag(row.version))], Json(body)).into_response()
}
