//! What policies decide about every tool before any call.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use net::problem::Problem;
use policy::decide::{FloorHit, FloorSource};
use policy::foresee::{Conditional, ToolDecision, ToolQuery};
use policy::glob::Glob;
use policy::{Action, Floor, InvalidPolicy, Policy, PolicySet};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tools::classify::Classification;
use tools::id::{AgentId, Namespace, PolicyName, ToolName, UpstreamName, UserId};
use tools::model::{Tool, ToolKind};

use super::super::input::Params;
use super::super::refusal::internal;
use super::known::{self, Known, status};
use crate::core::Core;
use crate::store::desired::PolicyRow;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Question {
    agent: String,
    user: Option<String>,
    namespace: Option<String>,
}

#[derive(Debug, Serialize)]
pub(in super::super) struct Decided {
    name: String,
    namespace: String,
    classification: Classification,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<&'static str>,
    floors: Vec<FloorItem>,
    action: Action,
    rule: Option<String>,
    source_file: Option<Arc<str>>,
    rule_index: Option<usize>,
    conditional: Vec<ConditionalItem>,
}

#[derive(Debug, Serialize)]
struct FloorItem {
    name: String,
    action: Action,
}

impl From<&FloorHit> for FloorItem {
    fn from(hit: &FloorHit) -> Self {
        let name = match &hit.source {
            FloorSource::Guardrail(rule) => rule.policy.to_string(),
            FloorSource::InvalidPolicy(name) => name.to_string(),
            FloorSource::Floor(kind) => match serde_json::to_value(kind) {
                Ok(serde_json::Value::String(name)) => name,
                _ => String::new(),
            },
        };
        Self {
            name,
            action: hit.action,
        }
    }
}

#[derive(Debug, Serialize)]
struct ConditionalItem {
    action: Action,
    rule: String,
    rule_index: usize,
    field: String,
    operator: String,
}

impl From<Conditional> for ConditionalItem {
    fn from(part: Conditional) -> Self {
        Self {
            action: part.action,
            rule: part.rule.policy.to_string(),
            rule_index: part.rule.index,
            field: part.field,
            operator: part.operator,
        }
    }
}

pub(in super::super) async fn decisions(
    State(core): State<Arc<Core>>,
    Params(question): Params<Question>,
) -> Result<Json<Vec<Decided>>, Problem> {
    let refused = |error: tools::id::IdError| Problem::bad_request(error.to_string());
    let agent = AgentId::try_from(question.agent.as_str()).map_err(refused)?;
    let user = question
        .user
        .as_deref()
        .map(UserId::try_from)
        .transpose()
        .map_err(refused)?;
    let rows = core.store.policies().await?;
    let known = known::all(&core, question.namespace.as_deref()).await?;
    let pins_are_kept = core.settings().pin_tools;
    let deciding = core.tasks.spawn_blocking(move || {
        let set = compiled(rows);
        known
            .into_iter()
            .filter_map(|known| decided(&set, known, &agent, user.as_ref(), pins_are_kept))
            .collect()
    });
    deciding.await.map(Json).map_err(|error| internal(&error))
}

/// The stored policies; one that cannot be read denies whom it covers.
pub(in super::super) fn compiled(rows: Vec<PolicyRow>) -> PolicySet {
    let mut invalid = Vec::new();
    let mut policies = Vec::new();
    for row in rows {
        match (
            Policy::from_sent(&row.document.body),
            PolicyName::try_from(row.document.name.as_str()),
        ) {
            (Ok(policy), _) => policies.push(Arc::new(policy)),
            (Err(_), Ok(name)) => invalid.push(Arc::new(InvalidPolicy {
                name,
                agents: globs(&row.document.agents),
                namespaces: globs(&row.document.namespaces),
            })),
            (Err(_), Err(_)) => {}
        }
    }
    PolicySet::compile_with_invalid(policies, invalid)
}

/// All, where one cannot be read: it denies more, never less.
fn globs(texts: &[String]) -> Vec<Glob> {
    let read: Result<Vec<Glob>, _> = texts.iter().map(|text| text.parse()).collect();
    read.unwrap_or_default()
}

/// The question about a tool before any call.
pub(in super::super) fn query<'a>(
    namespace: &'a Namespace,
    agent: &'a AgentId,
    user: Option<&'a UserId>,
    classification: &'a Classification,
    floors: &'a [Floor],
) -> ToolQuery<'a> {
    ToolQuery {
        namespace,
        agent,
        user,
        session: None,
        tool: &classification.name,
        classification,
        targets: None,
        floors,
    }
}

/// A tool of the catalogue as policies see it.
pub(in super::super) fn known_as(known: Known) -> Option<(Namespace, Classification)> {
    let namespace = Namespace::try_from(known.row.namespace.as_str()).ok()?;
    Some((namespace, known.classification))
}

/// What a tool that nobody declares, such as an agent's own, is judged to do by its name.
pub(in super::super) fn classification_by_name(name: &ToolName) -> Classification {
    let declared = serde_json::json!({"name": name.local()}).to_string();
    let upstream = name
        .upstream()
        .and_then(|upstream| UpstreamName::try_from(upstream).ok());
    let kind = if upstream.is_some() {
        ToolKind::Mcp
    } else {
        ToolKind::Host
    };
    let tool = RawValue::from_string(declared)
        .ok()
        .and_then(|raw| Tool::from_declaration(kind, upstream.as_ref(), None, raw.into()).ok())
        .filter(|tool| tool.name == *name);
    tool.map_or_else(
        || Classification::unknown(name.clone()),
        |tool| tool.classification,
    )
}

fn decided(
    set: &PolicySet,
    known: Known,
    agent: &AgentId,
    user: Option<&UserId>,
    pins_are_kept: bool,
) -> Option<Decided> {
    let namespace = Namespace::try_from(known.row.namespace.as_str()).ok()?;
    // Of what several sidecars see, the worst.
    let pin = pins_are_kept.then(|| known.row.status());
    let floor = known.floor(pins_are_kept);
    let ToolDecision {
        action,
        rule,
        source_file,
        floors,
        conditional,
        ..
    } = set.tool_decision(&query(
        &namespace,
        agent,
        user,
        &known.classification,
        floor.as_slice(),
    ));
    Some(Decided {
        name: known.row.name,
        namespace: known.row.namespace,
        pin: pin.map(status),
        floors: floors.iter().map(FloorItem::from).collect(),
        action,
        rule_index: rule.as_ref().map(|rule| rule.index),
        rule: rule.map(|rule| rule.policy.to_string()),
        source_file,
        conditional: conditional.into_iter().map(ConditionalItem::from).collect(),
        classification: known.classification,
    })
}
