//! Approvals: what waits for a person, and the answers.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::Uri;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::grants::GrantItem;
use super::input::{Body, NoParams, Params, Segment, glob};
use super::traces::TraceItem;
use super::{page, text};
use crate::auth::Operator;
use crate::core::Core;
use crate::keys::hex;
use crate::store::Micros;
use crate::store::approvals::{Approval, ApprovalFilter, ApprovalStatus, Resolution};
use crate::store::records::RecordFilter;

/// Records of the agent that are shown beside its question.
const RECENT: u32 = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    status: Option<String>,
    tool: Option<String>,
    upstream: Option<String>,
    agent: Option<String>,
    namespace: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

/// An approval as clients read it.
#[derive(Debug, Serialize)]
pub(super) struct ApprovalItem<'a> {
    id: &'a str,
    namespace: &'a str,
    agent_id: &'a str,
    identity: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    sidecar: &'a str,
    call_id: &'a str,
    tool: &'a str,
    params: Box<RawValue>,
    params_digest: String,
    fingerprint: String,
    classification: Box<RawValue>,
    resources: &'a [String],
    policy_rule: &'a str,
    rule_index: u32,
    revision: String,
    floors: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    status: &'static str,
    created_at: String,
    expires_at: String,
    remaining: String,
    injection_risk: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_via: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_by: Option<&'a str>,
}

impl<'a> ApprovalItem<'a> {
    pub(super) fn new(approval: &'a Approval, now: Micros) -> Self {
        let asked = &approval.asked;
        let lives = matches!(
            approval.status,
            ApprovalStatus::Pending | ApprovalStatus::Approved
        ) && approval.consumed_at.is_none();
        Self {
            id: &approval.id,
            namespace: &asked.namespace,
            agent_id: &asked.binding.agent,
            identity: &asked.identity,
            user_id: text::filled(&asked.binding.user),
            session_id: text::filled(&asked.binding.session),
            sidecar: &asked.sidecar,
            call_id: &asked.call_id,
            tool: &asked.binding.tool,
            params: text::json(&asked.params),
            params_digest: hex::encode(&asked.binding.arguments_digest),
            fingerprint: hex::encode(&asked.binding.fingerprint),
            classification: text::json(&asked.classification),
            resources: &asked.resources,
            policy_rule: &asked.policy_rule,
            rule_index: asked.rule_index,
            revision: asked.revision.to_string(),
            floors: &asked.floors,
            message: text::filled(&asked.message),
            status: approval.status.as_str(),
            created_at: text::time(approval.created_at),
            expires_at: text::time(approval.expires_at),
            remaining: text::remaining(if lives { approval.expires_at } else { now }, now),
            injection_risk: asked.injection_risk,
            resolved_by: text::filled(&approval.resolved_by),
            resolved_via: text::filled(&approval.resolved_via),
            resolved_at: approval.resolved_at.map(text::time),
            reasoning: text::filled(&approval.reasoning),
            confidence: approval.confidence,
            consumed_at: approval.consumed_at.map(text::time),
            consumed_by: text::filled(&approval.consumed_by),
        }
    }
}

pub(super) async fn list(
    State(core): State<Arc<Core>>,
    uri: Uri,
    Params(filter): Params<Filter>,
) -> Result<Response, Problem> {
    let status = filter
        .status
        .filter(|status| !status.is_empty() && status != "all")
        .map(|status| {
            let status = status.parse::<ApprovalStatus>();
            status.map_err(|error| Problem::bad_request(error.to_string()))
        })
        .transpose()?;
    for (name, pattern) in [("tool", &filter.tool), ("agent", &filter.agent)] {
        pattern.as_deref().map(|text| glob(name, text)).transpose()?;
    }
    let size = page::size(filter.limit)?;
    let mut approvals = core
        .store
        .approvals(ApprovalFilter {
            status,
            namespace: filter.namespace,
            agent: filter.agent,
            tool: filter.tool,
            upstream: filter.upstream,
            before: filter.cursor,
            limit: size + 1,
        })
        .await?;
    let next = page::page(&uri, size, &mut approvals, |approval| approval.id.clone());
    let now = core.primary.database_now();
    let items: Vec<_> = approvals
        .iter()
        .map(|approval| ApprovalItem::new(approval, now))
        .collect();
    Ok(page::answer(&items, next))
}

#[derive(Debug, Serialize)]
struct Detail<'a> {
    #[serde(flatten)]
    approval: ApprovalItem<'a>,
    recent_traces: Vec<TraceItem>,
    active_grants: Vec<GrantItem>,
}

pub(super) async fn one(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Response, Problem> {
    let approval = core.store.approval(&id, None).await?;
    let asked = &approval.asked;
    operator.reach().find(&asked.namespace, "approval", &id)?;
    let recent = core
        .store
        .records(RecordFilter {
            namespace: Some(asked.namespace.clone()),
            agent: Some(asked.binding.agent.clone()),
            limit: RECENT,
            ..RecordFilter::default()
        })
        .await?;
    let grants = core.store.grants(Some(&asked.namespace)).await?;
    let now = core.primary.database_now();
    let is_for_agent =
        |pattern: &str| glob("agent", pattern).is_ok_and(|glob| glob.matches(&asked.binding.agent));
    let detail = Detail {
        approval: ApprovalItem::new(&approval, now),
        recent_traces: recent.iter().map(TraceItem::new).collect(),
        active_grants: grants
            .iter()
            .filter(|row| is_for_agent(&row.grant.agent))
            .map(|row| GrantItem::new(row, now))
            .collect(),
    };
    Ok(Json(detail).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    resolved_by: Option<String>,
    reasoning: Option<String>,
    confidence: Option<f64>,
}

pub(super) async fn approve(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Body(answer): Body<Answer>,
) -> Result<Response, Problem> {
    resolve(&core, &operator, &id, answer, true).await
}

pub(super) async fn deny(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Body(answer): Body<Answer>,
) -> Result<Response, Problem> {
    resolve(&core, &operator, &id, answer, false).await
}

async fn resolve(
    core: &Core,
    operator: &Operator,
    id: &str,
    answer: Answer,
    approve: bool,
) -> Result<Response, Problem> {
    if answer
        .confidence
        .is_some_and(|confidence| !(0.0..=1.0).contains(&confidence))
    {
        return Err(Problem::bad_request("confidence is a number from 0 to 1"));
    }
    let by = operator.by(answer.resolved_by.as_deref())?;
    let reasoning = super::input::prose("reasoning", answer.reasoning)?;
    // Its act says whose call it is about; the store decides whether it still can be answered.
    let asked = core.store.approval(id, None).await?;
    operator.reach().find(&asked.asked.namespace, "approval", id)?;
    let binding = &asked.asked.binding;
    let details = json!({
        "approval": asked.id,
        "decision": if approve { "approved" } else { "denied" },
        "tool": binding.tool,
        "call": asked.asked.call_id,
        "reasoning": reasoning,
        "confidence": answer.confidence,
    });
    let act = operator
        .act("mesh.approval_resolve", &by, details)
        .in_namespace(&asked.asked.namespace)
        .about_agent(&binding.agent);
    let resolution = Resolution {
        approve,
        by,
        via: "rest".to_owned(),
        reasoning,
        confidence: answer.confidence,
        ttl: Duration::from_millis(core.settings().approval_ttl_ms),
    };
    let resolved = core
        .store
        .resolve_approval(&asked.id, resolution, Some(act))
        .await?;
    let item = ApprovalItem::new(&resolved, core.primary.database_now());
    Ok(Json(item).into_response())
}
