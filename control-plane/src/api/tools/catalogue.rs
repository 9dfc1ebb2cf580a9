//! The operators' catalogue: every tool that sidecars publish.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use net::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tools::classify::{Access, Classification, Family, Risk, SideEffectKind};
use tools::extract::Extractor;

use super::super::input::{Params, Segment};
use super::super::policies::etag;
use super::super::refusal::internal;
use super::super::text;
use super::coverage::{Coverage, Enforced};
use super::decisions::compiled;
use super::known::{self, Known, status};
use super::said::Said;
use crate::core::Core;
use crate::keys::hex;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Filter {
    namespace: Option<String>,
    upstream: Option<String>,
    kind: Option<String>,
    family: Option<String>,
    access: Option<String>,
    side_effect: Option<String>,
    risk: Option<String>,
    tag: Option<String>,
    lifecycle: Option<String>,
    pin: Option<String>,
    text: Option<String>,
}

/// A tool as operators read it.
#[derive(Debug, Serialize)]
pub(super) struct Item<'a> {
    name: &'a str,
    upstream: &'a str,
    mcp_server: &'a str,
    mcp_server_id: &'a str,
    source: &'a str,
    kind: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    params: &'a RawValue,
    version_hash: String,
    classification: &'a Classification,
    side_effect_type: SideEffectKind,
    risk_tags: &'a [String],
    compliance_tags: &'a [String],
    target_extractor: Option<&'a Extractor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<Corrected<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<&'static str>,
    lifecycle_state: &'static str,
    coverage: Coverage,
    first_seen_at: Option<String>,
    sidecars: Vec<&'a str>,
}

/// What operators said, and of which declaration.
#[derive(Debug, Serialize)]
struct Corrected<'a> {
    #[serde(flatten)]
    said: &'a Said,
    fingerprint: String,
    /// A sidecar sees another declaration than the one that was corrected: what makes the tool milder no longer holds there.
    stale: bool,
    version: u64,
    revision: String,
    updated_at: String,
    updated_by: &'a str,
}

fn item<'a>(known: &'a Known, pins_are_kept: bool, enforced: &Enforced) -> Item<'a> {
    let row = &known.row;
    let newest = row.seen.first();
    let tool = known.tool.as_ref();
    Item {
        name: &row.name,
        upstream: &row.upstream,
        mcp_server: &row.upstream,
        mcp_server_id: &row.upstream,
        source: &row.kind,
        kind: &row.kind,
        namespace: &row.namespace,
        title: tool.and_then(|tool| tool.title.as_deref()),
        description: tool
            .and_then(|tool| tool.description.as_deref())
            .unwrap_or_default(),
        params: tool.map_or(RawValue::NULL, |tool| &tool.input_schema),
        version_hash: newest
            .map(|seen| hex::encode(&seen.fingerprint))
            .unwrap_or_default(),
        classification: &known.classification,
        side_effect_type: known.classification.side_effect.kind,
        risk_tags: &known.said.risk_tags,
        compliance_tags: &known.said.compliance_tags,
        target_extractor: known.said.target_extractor.as_ref(),
        correction: known.correction.as_ref().map(|correction| Corrected {
            said: &known.said,
            fingerprint: hex::encode(&correction.correction.fingerprint),
            stale: known.correction_is_stale(),
            version: correction.version,
            revision: correction.revision.to_string(),
            updated_at: text::time(correction.updated_at),
            updated_by: &correction.updated_by,
        }),
        pin: pins_are_kept.then(|| status(row.status())),
        lifecycle_state: known.said.lifecycle_state.unwrap_or_default().name(),
        coverage: enforced.coverage(known),
        first_seen_at: newest.map(|seen| text::time(seen.first_seen_at)),
        sidecars: row
            .seen
            .iter()
            .flat_map(|seen| &seen.sidecars)
            .map(String::as_str)
            .collect(),
    }
}

impl Filter {
    /// Values of closed lists are values of them.
    fn check(&self) -> Result<(), Problem> {
        let lists: [(&str, &Option<String>, &[&str]); 7] = [
            ("kind", &self.kind, &["mcp", "openapi", "cli", "host"]),
            ("family", &self.family, &["named", "generic"]),
            ("access", &self.access, &["read", "write", "unknown"]),
            (
                "side_effect",
                &self.side_effect,
                &["read", "write", "delete", "admin"],
            ),
            ("risk", &self.risk, &Risk::ALL.map(Risk::name)),
            (
                "lifecycle",
                &self.lifecycle,
                &["draft", "active", "deprecated", "archived"],
            ),
            ("pin", &self.pin, &["pinned", "new", "changed"]),
        ];
        for (name, asked, known) in lists {
            let Some(asked) = asked else { continue };
            if !known.iter().any(|known| known.eq_ignore_ascii_case(asked)) {
                return Err(Problem::bad_request(format!(
                    "{name} is one of {}",
                    known.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn fits(&self, known: &Known, pins_are_kept: bool) -> bool {
        let is = |asked: &Option<String>, value: &str| {
            asked
                .as_deref()
                .is_none_or(|asked| asked.eq_ignore_ascii_case(value))
        };
        let judged = &known.classification;
        let description = known.tool.as_ref().and_then(|tool| tool.description.as_deref());
        let has_text = |text: &str| {
            let text = text.to_lowercase();
            let holds = |of: &str| of.to_lowercase().contains(&text);
            holds(&known.row.name) || description.is_some_and(holds)
        };
        let pin = if pins_are_kept {
            status(known.row.status())
        } else {
            ""
        };
        let family = match judged.family {
            Family::Named => "named",
            Family::Generic => "generic",
        };
        let access = match judged.access {
            Access::Read => "read",
            Access::Write => "write",
            Access::Unknown => "unknown",
        };
        is(&self.upstream, &known.row.upstream)
            && is(&self.kind, &known.row.kind)
            && is(&self.family, family)
            && is(&self.access, access)
            && is(&self.side_effect, judged.side_effect.kind.name())
            && is(&self.risk, judged.risk.name())
            && is(
                &self.lifecycle,
                known.said.lifecycle_state.unwrap_or_default().name(),
            )
            && is(&self.pin, pin)
            && self.tag.as_ref().is_none_or(|tag| judged.tags.contains(tag))
            && self.text.as_deref().is_none_or(has_text)
    }
}

pub(in super::super) async fn list(
    State(core): State<Arc<Core>>,
    Params(filter): Params<Filter>,
) -> Result<Response, Problem> {
    filter.check()?;
    let pins_are_kept = core.settings().pin_tools;
    let mut known = known::all(&core, filter.namespace.as_deref()).await?;
    known.retain(|known| filter.fits(known, pins_are_kept));
    let policies = core.store.policies().await?;
    let making = core.tasks.spawn_blocking(move || {
        let enforced = Enforced::of(&compiled(policies));
        let items: Vec<Item<'_>> = known
            .iter()
            .map(|known| item(known, pins_are_kept, &enforced))
            .collect();
        serde_json::value::to_raw_value(&items)
    });
    let text = making.await.map_err(|error| internal(&error))?;
    let text = text.map_err(|error| internal(&error))?;
    Ok(Json(text).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Place {
    pub(super) namespace: Option<String>,
}

pub(in super::super) async fn one(
    State(core): State<Arc<Core>>,
    Segment(name): Segment,
    Params(place): Params<Place>,
) -> Result<Response, Problem> {
    let known = known::one(&core, &name, place.namespace.as_deref()).await?;
    shown(&core, known).await
}

/// One tool whole, with its declaration.
pub(super) async fn shown(core: &Core, known: Known) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        item: Item<'a>,
        declared: Option<&'a RawValue>,
    }
    let policies = core.store.policies().await?;
    let pins_are_kept = core.settings().pin_tools;
    let version = known
        .correction
        .as_ref()
        .map_or(0, |correction| correction.version);
    let making = core.tasks.spawn_blocking(move || {
        let enforced = Enforced::of(&compiled(policies));
        serde_json::value::to_raw_value(&Whole {
            item: item(&known, pins_are_kept, &enforced),
            declared: known.tool.as_ref().map(|tool| &*tool.declared),
        })
    });
    let text = making.await.map_err(|error| internal(&error))?;
    let text = text.map_err(|error| internal(&error))?;
    let mut response = Json(text).into_response();
    if version > 0 {
        response.headers_mut().insert(header::ETAG, etag(version));
    }
    Ok(response)
}
