//! The operators' catalogue: every tool that sidecars publish.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use net::problem::Problem;
use policy::Floor;
use policy::catalogue::{Catalogue, KnownTool};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tools::classify::Classification;
use tools::id::{ToolName, UpstreamName};
use tools::model::{Tool, ToolKind};

use super::super::input::Params;
use super::super::text;
use crate::core::Core;
use crate::keys::hex;
use crate::store::catalogue::{CatalogueTool, PinStatus, SeenVersion};

/// A tool of the catalogue, with what its newest declaration says.
pub(super) struct Known {
    pub(super) row: CatalogueTool,
    /// `None`: the declaration is not kept or cannot be read.
    pub(super) tool: Option<Tool>,
    pub(super) classification: Classification,
}

impl Known {
    /// `None` for a name that no tool can have; sidecars do not publish such.
    pub(super) fn new(row: CatalogueTool) -> Option<Self> {
        let name = ToolName::try_from(row.name.as_str()).ok()?;
        let tool = row.seen.first().and_then(|seen| declared(&row, seen));
        let classification = match &tool {
            Some(tool) => tool.classification.clone(),
            None => Classification::unknown(name),
        };
        Some(Self {
            row,
            tool,
            classification,
        })
    }
}

fn declared(row: &CatalogueTool, seen: &SeenVersion) -> Option<Tool> {
    let raw: Box<RawValue> = serde_json::from_slice(&seen.declared).ok()?;
    let upstream = UpstreamName::try_from(row.upstream.as_str()).ok()?;
    let kind = match row.kind.as_str() {
        "openapi" => ToolKind::OpenApi,
        "cli" => ToolKind::Cli,
        _ => ToolKind::Mcp,
    };
    let tool = Tool::from_declaration(kind, Some(&upstream), None, Arc::from(raw)).ok()?;
    // What a declaration calls itself does not say which tool it is.
    (tool.name.as_str() == row.name).then_some(tool)
}

/// The known tools as policies are checked against them.
pub(in super::super) fn catalogue(rows: Vec<CatalogueTool>, pins_are_kept: bool) -> Catalogue {
    let known = rows.into_iter().filter_map(Known::new);
    known
        .map(|known| {
            let floor = match known.row.status() {
                PinStatus::New => Some(Floor::PIN_NEW),
                PinStatus::Changed => Some(Floor::PIN_CHANGED),
                PinStatus::Pinned => None,
            };
            let name = known.classification.name.clone();
            KnownTool {
                floors: floor.filter(|_| pins_are_kept).into_iter().collect(),
                ..KnownTool::of(known.tool.unwrap_or_else(|| Tool::host(name)))
            }
        })
        .collect()
}

/// How the tool stands to its pin, as clients read it.
pub(super) fn status(status: PinStatus) -> &'static str {
    match status {
        PinStatus::Pinned => "pinned",
        PinStatus::New => "new",
        PinStatus::Changed => "changed",
    }
}

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

#[derive(Debug, Serialize)]
struct Item<'a> {
    name: &'a str,
    upstream: &'a str,
    mcp_server: &'a str,
    source: &'a str,
    kind: &'a str,
    namespace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    params: &'a RawValue,
    version_hash: String,
    classification: &'a Classification,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<&'static str>,
    lifecycle_state: &'static str,
    first_seen_at: Option<String>,
    sidecars: Vec<&'a str>,
}

fn item(known: &Known, pins_are_kept: bool) -> Item<'_> {
    let row = &known.row;
    let newest = row.seen.first();
    let tool = known.tool.as_ref();
    Item {
        name: &row.name,
        upstream: &row.upstream,
        mcp_server: &row.upstream,
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
        pin: pins_are_kept.then(|| status(row.status())),
        lifecycle_state: "active",
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
    fn fits(&self, item: &Item<'_>) -> bool {
        let is = |asked: &Option<String>, value: &str| {
            asked
                .as_deref()
                .is_none_or(|asked| asked.eq_ignore_ascii_case(value))
        };
        let judged = item.classification;
        let has_text = |text: &str| {
            let text = text.to_lowercase();
            item.name.to_lowercase().contains(&text) || item.description.to_lowercase().contains(&text)
        };
        is(&self.upstream, item.upstream)
            && is(&self.kind, item.kind)
            && is(&self.family, &name(&judged.family))
            && is(&self.access, &name(&judged.access))
            && is(&self.side_effect, &name(&judged.side_effect.kind))
            && is(&self.risk, judged.risk.name())
            && is(&self.lifecycle, item.lifecycle_state)
            && is(&self.pin, item.pin.unwrap_or_default())
            && self.tag.as_ref().is_none_or(|tag| judged.tags.contains(tag))
            && self.text.as_deref().is_none_or(has_text)
    }
}

/// A value of a closed list as JSON writes it.
fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

pub(in super::super) async fn list(
    State(core): State<Arc<Core>>,
    Params(filter): Params<Filter>,
) -> Result<Response, Problem> {
    let rows = core.store.tools(filter.namespace.as_deref()).await?;
    let pins_are_kept = core.settings().pin_tools;
    let known: Vec<Known> = rows.into_iter().filter_map(Known::new).collect();
    let items: Vec<Item<'_>> = known
        .iter()
        .map(|known| item(known, pins_are_kept))
        .filter(|item| filter.fits(item))
        .collect();
    Ok(Json(items).into_response())
}
