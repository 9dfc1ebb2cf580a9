//! What agents talk to: MCP over Streamable HTTP, and REST.

pub mod attended;
pub mod body;
pub mod caller;
pub mod calls;
pub mod mcp;
pub mod names;
pub mod rest;
pub mod sse;
pub mod state;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::post;
use http::{Method, Uri};
use net::host::{self, AllowedHosts};
use net::problem::Problem;

use state::AgentState;

/// Everything that agents call. `Host` and `Origin` are checked on all of it but the process's own state.
pub fn router(state: Arc<AgentState>, hosts: AllowedHosts) -> Router {
    let guarded = Router::new()
        .route(
            "/mcp",
            post(mcp::serve::post)
                .get(mcp::stream::get)
                .delete(mcp::stream::delete)
                .fallback(method_not_allowed),
        )
        .merge(rest::routes())
        .layer(middleware::from_fn_with_state(hosts, host::guard));
    Router::new()
        .merge(guarded)
        .merge(rest::open_routes())
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(state)
}

async fn no_such_path(uri: Uri) -> Problem {
    Problem::not_found(format!("there is no path {}", uri.path()))
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        http::StatusCode::METHOD_NOT_ALLOWED,
        format!("{} does not take {method}", uri.path()),
    )
}

async fn method_not_allowed() -> Problem {
    Problem::new(
        http::StatusCode::METHOD_NOT_ALLOWED,
        "this path takes POST, GET and DELETE",
    )
}
