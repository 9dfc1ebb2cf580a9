//! `GET /tools` and `GET /mcp-servers`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use serde::Serialize;
use serde_json::value::RawValue;
use tools::classify::Classification;

use crate::agent::caller::Caller;
use crate::agent::state::AgentState;
use crate::upstream::{Connection, Era, UpstreamState};

#[derive(Serialize)]
struct ToolView<'t> {
    name: &'t str,
    description: &'t str,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_server: Option<&'t str>,
    params: &'t RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'t str>,
    fingerprint: String,
    classification: &'t Classification,
}

/// Handles `GET /tools`: what the caller sees.
pub(super) async fn tools(State(state): State<Arc<AgentState>>, parts: Parts) -> Response {
    let identity = match super::identify(&state, Caller::from(&parts)).await {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    let tools = state.gate.visible_tools(&identity);
    let views: Vec<_> = tools
        .iter()
        .map(|tool| ToolView {
            name: tool.name.as_str(),
            description: tool.description.as_deref().unwrap_or_default(),
            source: tool.kind.to_string(),
            mcp_server: tool.upstream.as_ref().map(|upstream| upstream.as_str()),
            params: &tool.input_schema,
            method: tool.method.as_deref(),
            title: tool.title.as_deref(),
            fingerprint: tool.fingerprint.to_string(),
            classification: &tool.classification,
        })
        .collect();
    Json(views).into_response()
}

#[derive(Serialize)]
struct ServerView {
    name: String,
    transport: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_try: Option<String>,
    tools: usize,
}

impl From<UpstreamState> for ServerView {
    fn from(state: UpstreamState) -> Self {
        let status = state.status();
        let (protocol, protocol_version, next_try) = match state.connection {
            Connection::Connected { era, revision } => {
                let era = match era {
                    Era::Legacy => "legacy",
                    Era::Modern => "modern",
                };
                (Some(era), Some(revision), None)
            }
            Connection::Retrying { next_try } => (None, None, Some(net::duration::format(next_try))),
            Connection::Ready | Connection::Failed => (None, None, None),
        };
        Self {
            name: state.name.to_string(),
            transport: state.transport,
            state: status,
            protocol,
            protocol_version,
            last_error: state.last_error,
            next_try,
            tools: state.tools,
        }
    }
}

/// Handles `GET /mcp-servers`: the state of each upstream.
pub(super) async fn servers(State(state): State<Arc<AgentState>>, parts: Parts) -> Response {
    if let Err(problem) = super::identify(&state, Caller::from(&parts)).await {
        return problem.into_response();
    }
    let registry = state.gate.registry();
    let mut states = state.gate.upstreams().states();
    for one in &mut states {
        // Who reads that it is connected calls its tools next.
        if one.status() == "connected" && !registry.serves(&one.name) {
            one.connection = Connection::Retrying {
                next_try: Duration::ZERO,
            };
        }
    }
    let views: Vec<ServerView> = states.into_iter().map(ServerView::from).collect();
    Json(views).into_response()
}
