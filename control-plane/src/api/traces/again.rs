//! What happened, decided again: by other policies, by changed ones, and as tests.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use net::problem::Problem;
use policy::catalogue::Catalogue;
use policy::document::{Lists, Policy, Source};
use policy::suite::{Observed, write};
use policy::{PolicySet, replay};
use serde::Deserialize;
use serde_json::{Value, json};
use tools::json::{Document, Limits, canonical};
use tools::targets::Targets;

use super::super::input::{Body, NoParams, Params, Segment, glob, time};
use super::super::refusal::internal;
use super::super::tools::{all, catalogue, compiled};
use super::item::namespace_of;
use super::recorded;
use crate::auth::Operator;
use crate::core::Core;
use crate::store::records::RecordFilter;

/// Records that are read when nothing is said.
const USUAL: u32 = 10_000;
/// The most that are read.
const MOST: u32 = 100_000;

/// Which records.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Which {
    namespace: Option<String>,
    agent: Option<String>,
    tool: Option<String>,
    since: Option<String>,
    until: Option<String>,
    limit: Option<u32>,
}

impl Which {
    fn filter(&self) -> Result<RecordFilter, Problem> {
        let at = |what, text: &Option<String>| text.as_deref().map(|text| time(what, text)).transpose();
        if let Some(tool) = &self.tool {
            glob("tool", tool)?;
        }
        Ok(RecordFilter {
            namespace: self.namespace.clone(),
            agent: self.agent.clone(),
            tool: self.tool.clone(),
            since: at("since", &self.since)?,
            until: at("until", &self.until)?,
            ..RecordFilter::default()
        })
    }

    fn limit(&self) -> Result<usize, Problem> {
        match self.limit.unwrap_or(USUAL) {
            limit @ 1..=MOST => Ok(usize::try_from(limit).unwrap_or(usize::MAX)),
            _ => Err(Problem::bad_request(format!(
                "limit is a number from 1 to {MOST}"
            ))),
        }
    }
}

/// Recorded calls, to be decided by these documents.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Again {
    /// YAML, one or more documents. They stand in place of those of the same name.
    documents: String,
    /// Whether they are all the policies there are.
    #[serde(default)]
    only: bool,
    #[serde(default)]
    records: Which,
}

/// The policies in force and the known tools.
struct World {
    set: PolicySet,
    catalogue: Catalogue,
}

async fn world(core: &Core) -> Result<World, Problem> {
    let rows = core.store.policies().await?;
    let tools = all(core, None).await?;
    let pins_are_kept = core.settings().pin_tools;
    let making = core.tasks.spawn_blocking(move || World {
        set: compiled(rows),
        catalogue: catalogue(tools, pins_are_kept),
    });
    making.await.map_err(|error| internal(&error))
}

fn changed(set: &PolicySet, documents: &str, only: bool, lists: &Lists) -> Result<PolicySet, Problem> {
    let policies = Policy::parse_all("policy.yaml", documents, &Source::Api, lists).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        Problem::new(
            http::StatusCode::UNPROCESSABLE_ENTITY,
            format!("the policies are not valid: {first}"),
        )
        .with("problems", problems)
    })?;
    let policies = policies.into_iter().map(Arc::new);
    Ok(if only {
        PolicySet::compile(policies)
    } else {
        // A document keeps the place in the load order that its predecessor has.
        let placed = policies.map(|policy| match set.get(policy.name.as_str()) {
            Some(present) => Arc::new(Policy {
                origin: present.origin.clone(),
                ..Policy::clone(&policy)
            }),
            None => policy,
        });
        set.with_changes(placed, &[], set.invalid().to_vec())
    })
}

/// `POST /traces/replay`
pub(in super::super) async fn replayed(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Body(mut again): Body<Again>,
) -> Result<Json<Value>, Problem> {
    if operator.reach().namespaces().is_some() {
        let namespace = operator.reach().choose(again.records.namespace.take(), "")?;
        again.records.namespace = Some(namespace);
    }
    let World { set, catalogue } = world(&core).await?;
    let set = changed(&set, &again.documents, again.only, &core.lists)?;
    let range = recorded::range(&core, again.records.filter()?, again.records.limit()?).await?;
    let (undecided, is_cut) = (range.undecided, range.is_cut);
    let deciding = core
        .tasks
        .spawn_blocking(move || replay::replay(&set, &catalogue, &range.calls));
    let done = deciding.await.map_err(|error| internal(&error))?;
    Ok(Json(json!({
        "replayed": done.replayed,
        "same": done.same,
        "changes": done.changes,
        "not_replayed": done.not_replayed,
        "without_decision": undecided,
        "cut": is_cut,
    })))
}

/// `GET /traces/{id}/why`
pub(in super::super) async fn why(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(id): Segment,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Value>, Problem> {
    let stored = core.store.record(&id).await?;
    operator.reach().find(&namespace_of(&stored), "record", &id)?;
    let Some(call) = recorded::call(&stored) else {
        return Err(Problem::conflict(
            "policies decided nothing about this record: it is an act, or was refused before policies were asked",
        ));
    };
    let World { set, catalogue } = world(&core).await?;
    let deciding = core.tasks.spawn_blocking(move || {
        let why = replay::with_call(&catalogue, &call, &set, |policy_call| {
            (set.why(policy_call), policy_call.tool.clone())
        });
        (call, why)
    });
    let (call, why) = deciding.await.map_err(|error| internal(&error))?;
    let (why, decided_as) = why.map_err(Problem::conflict)?;
    let mut answer = serde_json::to_value(&why).map_err(|error| internal(&error))?;
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("record".to_owned(), json!(call.id));
        fields.insert("agent".to_owned(), json!(call.agent));
        fields.insert("tool".to_owned(), json!(call.tool));
        if decided_as != call.tool {
            fields.insert("decided_as".to_owned(), json!(decided_as));
        }
        fields.insert("action_then".to_owned(), json!(call.action));
        fields.insert("params_kept".to_owned(), json!(call.params.is_some()));
    }
    Ok(Json(answer))
}

/// `GET /traces/tests`: a test file that asserts what happened.
pub(in super::super) async fn as_tests(
    State(core): State<Arc<Core>>,
    Params(which): Params<Which>,
) -> Result<Response, Problem> {
    let range = recorded::range(&core, which.filter()?, which.limit()?).await?;
    let catalogue = catalogue(all(&core, None).await?, core.settings().pin_tools);
    // A test asks about the name that was called: what was decided about others too is left out.
    let testable = range
        .calls
        .iter()
        .filter(|call| replay::is_of_one_name(&catalogue, call));
    let observed: Vec<Observed> = testable.filter_map(observed).collect();
    let yaml = [(header::CONTENT_TYPE, "application/yaml; charset=utf-8")];
    Ok((yaml, write(&observed)).into_response())
}

/// `None` for a call whose arguments were not kept whole: a test of it would test something else.
fn observed(call: &replay::Recorded) -> Option<Observed> {
    let params = call
        .params
        .as_deref()
        .filter(|params| !params.contains("[redacted"))?;
    let document = Document::parse(params.as_bytes(), Limits::ARGUMENTS).ok()?;
    Some(Observed {
        agent: call.agent.to_string(),
        user: call.user.as_ref().map(ToString::to_string),
        namespace: call.namespace.to_string(),
        tool: call.tool.to_string(),
        params: String::from_utf8(canonical(document.root())).ok()?,
        risks: call.risks.iter().map(|risk| risk.name().to_owned()).collect(),
        floors: call.floors.clone(),
        targets: members(&call.targets),
        action: call.action,
        policy: None,
        record: call.id.clone(),
    })
}

fn members(targets: &Targets) -> Vec<(String, Vec<String>)> {
    let sets = [
        ("resources", &targets.resources),
        ("columns", &targets.columns),
        ("hosts", &targets.hosts),
        ("paths", &targets.paths),
        ("recipients", &targets.recipients),
    ];
    sets.into_iter()
        .filter_map(|(name, extent)| Some((name.to_owned(), extent.known()?.to_vec())))
        .collect()
}
