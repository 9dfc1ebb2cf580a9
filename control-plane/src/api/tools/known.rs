//! A tool of the catalogue with what its newest declaration says and what operators corrected.

use std::collections::HashMap;
use std::sync::Arc;

use net::problem::Problem;
use policy::Floor;
use policy::catalogue::{Catalogue, KnownTool};
use policy::decide::FloorKind;
use policy::document::Action;
use serde_json::value::RawValue;
use tools::classify::Classification;
use tools::id::{ToolName, UpstreamName};
use tools::model::{Tool, ToolKind};

use super::said::Said;
use crate::core::Core;
use crate::store::StoreError;
use crate::store::catalogue::{CatalogueTool, PinStatus, SeenVersion};
use crate::store::corrections::CorrectionRow;

/// A tool of the catalogue.
pub(in super::super) struct Known {
    pub(in super::super) row: CatalogueTool,
    /// `None`: the declaration is not kept or cannot be read.
    pub(super) tool: Option<Tool>,
    pub(super) classification: Classification,
    /// What operators said of it.
    pub(super) correction: Option<CorrectionRow>,
    pub(super) said: Said,
}

impl Known {
    /// `None` for a name that no tool can have; sidecars do not publish such.
    pub(super) fn new(row: CatalogueTool, correction: Option<CorrectionRow>) -> Option<Self> {
        let name = ToolName::try_from(row.name.as_str()).ok()?;
        let mut tool = row.seen.first().and_then(|seen| declared(&row, seen));
        let said = correction
            .as_ref()
            .and_then(|row| Said::stored(&row.correction.said).ok())
            .unwrap_or_default();
        if let Some(tool) = &mut tool
            && correction.is_some()
        {
            tool.correct(Some(&said.correction()));
        }
        let classification = match &tool {
            Some(tool) => tool.classification.clone(),
            None => Classification::unknown(name),
        };
        Some(Self {
            row,
            tool,
            classification,
            correction,
            said,
        })
    }

    /// The floor that holds for every call: that of its pin; of a program's tool, what its configuration says.
    pub(super) fn floor(&self, pins_are_kept: bool) -> Option<Floor> {
        if self.row.kind == "cli" {
            let floor = self.tool.as_ref()?.program_floor()?;
            return Some(Floor {
                kind: FloorKind::Dispatcher,
                // What cannot be read counts as the strictest.
                action: floor.parse().unwrap_or(Action::Deny),
            });
        }
        match self.row.status() {
            PinStatus::New => Some(Floor::PIN_NEW),
            PinStatus::Changed => Some(Floor::PIN_CHANGED),
            PinStatus::Pinned => None,
        }
        .filter(|_| pins_are_kept)
    }

    /// Whether a sidecar sees another declaration than the one that was corrected.
    pub(super) fn correction_is_stale(&self) -> bool {
        self.correction.as_ref().is_some_and(|correction| {
            self.row
                .seen
                .iter()
                .any(|seen| seen.fingerprint != correction.correction.fingerprint)
        })
    }
}

/// Every tool that sidecars of a namespace (or of all) see.
pub(in super::super) async fn all(core: &Core, namespace: Option<&str>) -> Result<Vec<Known>, StoreError> {
    let rows = core.store.tools(namespace).await?;
    let mut corrections: HashMap<(String, String), CorrectionRow> = core
        .store
        .corrections(namespace)
        .await?
        .into_iter()
        .map(|row| {
            (
                (row.correction.namespace.clone(), row.correction.tool.clone()),
                row,
            )
        })
        .collect();
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let correction = corrections.remove(&(row.namespace.clone(), row.name.clone()));
            Known::new(row, correction)
        })
        .collect())
}

/// The known tools as policies are checked against them.
pub(in super::super) fn catalogue(known: Vec<Known>, pins_are_kept: bool) -> Catalogue {
    known
        .into_iter()
        .map(|known| {
            let floor = known.floor(pins_are_kept);
            let name = known.classification.name.clone();
            KnownTool {
                floors: floor.into_iter().collect(),
                ..KnownTool::of(known.tool.unwrap_or_else(|| Tool::host(name)))
            }
        })
        .collect()
}

/// The one tool of this name.
pub(super) async fn one(core: &Core, name: &str, namespace: Option<&str>) -> Result<Known, Problem> {
    let mut found: Vec<Known> = all(core, namespace).await?;
    found.retain(|known| known.row.name == name);
    if found.len() > 1 {
        let namespaces: Vec<&str> = found.iter().map(|known| known.row.namespace.as_str()).collect();
        return Err(Problem::bad_request(format!(
            "this tool is in several namespaces; give `namespace`: {}",
            namespaces.join(", ")
        )));
    }
    found.pop().ok_or_else(|| {
        StoreError::NotFound {
            what: "tool",
            id: name.chars().take(256).collect(),
        }
        .into()
    })
}

fn declared(row: &CatalogueTool, seen: &SeenVersion) -> Option<Tool> {
    let raw: Box<RawValue> = serde_json::from_slice(&seen.declared).ok()?;
    let upstream = UpstreamName::try_from(row.upstream.as_str()).ok()?;
    let kind = match row.kind.as_str() {
        "openapi" => ToolKind::OpenApi,
        "cli" => ToolKind::Cli,
        _ => ToolKind::Mcp,
    };
    let is_prefixed = row.name.contains('.');
    let tool = Tool::declared_by(&upstream, kind, is_prefixed, Arc::from(raw)).ok()?;
    // What a declaration calls itself does not say which tool it is.
    (tool.name.as_str() == row.name).then_some(tool)
}

/// How the tool stands to its pin, as clients read it.
pub(super) fn status(status: PinStatus) -> &'static str {
    match status {
        PinStatus::Pinned => "pinned",
        PinStatus::New => "new",
        PinStatus::Changed => "changed",
    }
}
