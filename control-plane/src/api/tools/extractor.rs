//! How the targets of a tool's calls are read: trying an extractor, and giving one to a tool.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tools::classify::{Correction, Risk, RiskSet, classify_call};
use tools::extract::Extractor;
use tools::json::{Document, Kind, Limits};
use tools::targets::Extent;

use super::super::input::{Body, Params, Segment};
use super::super::policies::belief;
use super::super::refusal::internal;
use super::catalogue::Place;
use super::correct::put;
use super::known;
use super::said::Said;
use crate::auth::Operator;
use crate::core::Core;

/// `PUT /tools/{tool}/extractor`
pub(in super::super) async fn put_extractor(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    Params(place): Params<Place>,
    headers: HeaderMap,
    Body(extractor): Body<Extractor>,
) -> Result<Response, Problem> {
    let known = known::one(&core, &name, place.namespace.as_deref()).await?;
    let said = Said {
        target_extractor: Some(extractor),
        ..known.said.clone()
    };
    said.check()?;
    put(
        &core,
        &operator,
        &operator.by(None)?,
        known,
        said,
        belief(&headers)?,
    )
    .await
}

/// `DELETE /tools/{tool}/extractor`
pub(in super::super) async fn remove_extractor(
    State(core): State<Arc<Core>>,
    operator: Operator,
    Segment(name): Segment,
    Params(place): Params<Place>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let known = known::one(&core, &name, place.namespace.as_deref()).await?;
    let said = Said {
        target_extractor: None,
        ..known.said.clone()
    };
    put(
        &core,
        &operator,
        &operator.by(None)?,
        known,
        said,
        belief(&headers)?,
    )
    .await
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Trial {
    /// The tool's own, when it is left out.
    extractor: Option<Extractor>,
    arguments: Option<Box<RawValue>>,
}

/// What an extractor reads from these arguments; `null`: the set is unknown.
#[derive(Debug, Serialize)]
pub(in super::super) struct Tried {
    resources: Option<Vec<String>>,
    columns: Option<Vec<String>>,
    /// Whether everything was read with certainty.
    complete: bool,
    /// What the text was found to do.
    text_risks: Option<RiskSet>,
    /// What the call would be judged to do.
    risk: Risk,
    risks: RiskSet,
    plain_read: bool,
    reasons: Vec<String>,
}

/// `POST /tools/{tool}/extractor/test`: nothing is stored.
pub(in super::super) async fn try_extractor(
    State(core): State<Arc<Core>>,
    Segment(name): Segment,
    Params(place): Params<Place>,
    Body(trial): Body<Trial>,
) -> Result<Json<Tried>, Problem> {
    let known = known::one(&core, &name, place.namespace.as_deref()).await?;
    let extractor = trial
        .extractor
        .or_else(|| known.said.target_extractor.clone())
        .ok_or_else(|| Problem::bad_request("this tool has no extractor; give `extractor`"))?;
    extractor
        .check()
        .map_err(|error| Problem::bad_request(error.to_string()))?;
    let correction = Correction {
        extractor: Some(extractor.clone()),
        ..known.said.correction()
    };
    let trying = core.tasks.spawn_blocking(move || {
        let text = trial.arguments.as_ref().map_or("{}", |raw| raw.get());
        let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS)
            .map_err(|error| Problem::bad_request(format!("arguments: {error}")))?;
        if document.root().kind() != Kind::Object {
            return Err(Problem::bad_request(
                "arguments is an object of the call's arguments",
            ));
        }
        let extraction = extractor.extract(Some(document.root()));
        let judged = known.tool.map_or(known.classification, |mut tool| {
            tool.correct(Some(&correction));
            classify_call(&tool, Some(document.root()))
                .classification
                .into_owned()
        });
        let members = |extent: Extent| match extent {
            Extent::Known(members) => Some(members),
            Extent::Unknown => None,
        };
        Ok(Tried {
            resources: members(extraction.resources),
            columns: members(extraction.columns),
            complete: extraction.complete,
            text_risks: extraction.risks,
            risk: judged.risk,
            risks: judged.risks,
            plain_read: judged.plain_read,
            reasons: extraction.reasons,
        })
    });
    trying.await.map_err(|error| internal(&error))?.map(Json)
}
