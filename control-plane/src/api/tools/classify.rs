//! What a tool, or one call of it, is judged to do.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use net::problem::Problem;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tools::classify::{Report, classify_call};
use tools::id::UpstreamName;
use tools::json::{Document, Kind, Limits};
use tools::model::{DeclareError, Tool, ToolKind};

use super::super::input::Body;
use super::known;
use crate::core::Core;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Question {
    /// The governed name; a published tool is taken from the catalogue.
    tool: Option<String>,
    namespace: Option<String>,
    /// A declaration as in a `tools/list` answer, in place of a name.
    declaration: Option<Box<RawValue>>,
    /// The upstream of the declaration.
    server: Option<String>,
    /// The arguments of one call; without them the tool is classified.
    arguments: Option<Box<RawValue>>,
}

pub(in super::super) async fn classify(
    State(core): State<Arc<Core>>,
    Body(question): Body<Question>,
) -> Result<Json<Value>, Problem> {
    let tool = tool(&core, &question).await?;
    let Some(arguments) = &question.arguments else {
        return Ok(Json(json!(Report::of_tool(&tool))));
    };
    let document = Document::parse(arguments.get().as_bytes(), Limits::ARGUMENTS)
        .map_err(|error| Problem::bad_request(format!("the arguments cannot be read: {error}")))?;
    if document.root().kind() != Kind::Object {
        return Err(Problem::bad_request("\"arguments\" is not a JSON object"));
    }
    let assessment = classify_call(&tool, Some(document.root()));
    Ok(Json(json!(Report::of_call(&assessment))))
}

async fn tool(core: &Core, question: &Question) -> Result<Tool, Problem> {
    let refused = |error: DeclareError| Problem::bad_request(error.to_string());
    match (&question.tool, &question.declaration) {
        (None, Some(declaration)) => {
            let upstream = question.server.as_deref().map(UpstreamName::try_from).transpose();
            let upstream = upstream.map_err(|error| Problem::bad_request(error.to_string()))?;
            Tool::from_declaration(ToolKind::Mcp, upstream.as_ref(), None, declaration.clone().into())
                .map_err(refused)
        }
        (Some(name), None) => {
            let known = known::all(core, question.namespace.as_deref()).await?;
            let named = known.into_iter().find(|known| known.row.name == *name);
            match named.and_then(|known| known.tool) {
                Some(tool) => Ok(tool),
                None => Tool::named(name).map_err(refused),
            }
        }
        (None, None) | (Some(_), Some(_)) => Err(Problem::bad_request(
            "give either \"tool\", a name, or \"declaration\", a tool as its server declares it",
        )),
    }
}
