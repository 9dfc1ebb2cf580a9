//! The door: every path but the public ones is for operators.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use net::problem::Problem;

use crate::auth::{Operator, authenticate};
use crate::core::Core;

/// Lets operators through, with what is known of them as a request extension.
pub(super) async fn operators_only(
    State(core): State<Arc<Core>>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request
        .extensions()
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(peer)| *peer);
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let operator = authenticate(&core, method, uri, headers, peer).await;
    match operator.and_then(|operator| check_target(&request).map(|()| operator)) {
        Ok(operator) => {
            request.extensions_mut().insert(operator);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// No name or text of ours holds a NUL character, and databases do not take one.
fn check_target(request: &Request) -> Result<(), Problem> {
    let target = request
        .uri()
        .path_and_query()
        .map_or("", |target| target.as_str());
    if target.contains("%00") {
        return Err(Problem::bad_request("the path or query holds a NUL character"));
    }
    Ok(())
}

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // INVARIANT: the guard put it there; a path without the guard refuses.
        parts
            .extensions
            .get::<Operator>()
            .cloned()
            .ok_or_else(|| Problem::unauthenticated("this path is for operators"))
    }
}
