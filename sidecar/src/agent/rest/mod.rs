//! REST towards agents: calls, questions, lists, and the state of the sidecar.

mod ask;
mod lists;
mod outcome;
mod status;
mod tool;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use net::problem::Problem;
use tools::json::{Document, JsonError, JsonErrorKind};

use super::caller::{Caller, Refused};
use super::state::{self, AgentState};
use crate::identity::{Identity, IdentityError};

/// The routes that agents call, apart from `/mcp`.
pub fn routes() -> Router<Arc<AgentState>> {
    Router::new()
        .route("/tool/{name}", post(tool::call))
        .route("/decide", post(ask::decide))
        .route("/tools", get(lists::tools))
        .route("/mcp-servers", get(lists::servers))
        .route("/calls/{id}", get(tool::outcome_of))
        .route(
            "/.well-known/oauth-protected-resource",
            get(status::protected_resource),
        )
        .route(
            "/.well-known/oauth-protected-resource/mcp",
            get(status::protected_resource),
        )
}

/// The routes that anybody may read.
pub fn open_routes() -> Router<Arc<AgentState>> {
    Router::new()
        .route("/health", get(status::health))
        .route("/version", get(status::version))
        .route("/readyz", get(status::ready))
        .route("/metrics", get(status::metrics))
}

fn refused(error: &IdentityError) -> Problem {
    match error.status() {
        StatusCode::UNAUTHORIZED => Problem::unauthenticated(error.to_string()),
        status => Problem::new(status, error.to_string()),
    }
}

async fn identify(state: &AgentState, caller: Caller<'_>) -> Result<Identity, Problem> {
    state.admit(caller).await.map_err(Refused::problem)
}

fn too_large(limit: usize) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the request body is larger than limits.message_bytes ({limit} bytes)"),
    )
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Parses a request body that is JSON of ours.
fn parse<'b>(body: &'b [u8], state: &AgentState) -> Result<Document<'b>, Problem> {
    let limits = tools::json::Limits {
        max_bytes: state.limits().message_bytes,
        max_depth: state.limits().argument_depth + 1,
    };
    Document::parse(body, limits).map_err(|error| unacceptable(&error))
}

fn unacceptable(error: &JsonError) -> Problem {
    match error.kind {
        JsonErrorKind::TooLarge { limit } => too_large(limit),
        JsonErrorKind::TooDeep { .. }
        | JsonErrorKind::InvalidUtf8
        | JsonErrorKind::DuplicateKey
        | JsonErrorKind::LoneSurrogate
        | JsonErrorKind::Exponent
        | JsonErrorKind::UnexpectedEnd
        | JsonErrorKind::Syntax => {
            Problem::bad_request(format!("the request body is not acceptable JSON: {error}"))
        }
    }
}

/// The session that the client names, if any.
fn session(headers: &HeaderMap) -> Option<crate::gate::Session> {
    state::named_session(headers)
}
