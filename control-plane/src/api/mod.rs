//! The REST API that operators, the console and the command line call.
//!
//! One file for each kind of thing; [`guard`] decides who may come in, [`input`] reads what they send, [`refusal`] turns errors into
//! answers. Every change is recorded by the store in the transaction that makes it.

mod approvals;
mod grants;
mod guard;
mod health;
mod input;
mod page;
mod policies;
mod refusal;
mod sidecars;
mod stops;
mod text;
mod traces;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{delete, get, post};

use crate::core::Core;

/// The largest request body.
const MAX_BODY: usize = 4 << 20;

/// All operator paths. Paths that are not here answer as the operators' API too.
pub fn router(core: &Arc<Core>) -> Router {
    let guarded = Router::new()
        .merge(governance())
        .route("/health", get(health::summary))
        .route("/metrics", get(health::metrics))
        .fallback(refusal::no_such_path)
        .method_not_allowed_fallback(refusal::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(middleware::from_fn_with_state(
            Arc::clone(core),
            guard::operators_only,
        ));
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/version", get(health::version))
        .method_not_allowed_fallback(refusal::no_such_method)
        .merge(guarded)
        .with_state(Arc::clone(core))
}

fn governance() -> Router<Arc<Core>> {
    Router::new()
        .route("/policies", get(policies::list))
        .route("/policies/validate", post(policies::validate))
        .route(
            "/policies/{name}",
            get(policies::one).put(policies::put).delete(policies::remove),
        )
        .route("/policies/{name}/versions", get(policies::versions))
        .route("/policies/{name}/rollback", post(policies::rollback))
        .route("/approvals", get(approvals::list))
        .route("/approvals/{id}", get(approvals::one))
        .route("/approvals/{id}/approve", post(approvals::approve))
        .route("/approvals/{id}/deny", post(approvals::deny))
        .route("/grants", get(grants::list).post(grants::create))
        .route("/grants/{id}", delete(grants::revoke))
        .route("/stops", get(stops::list).post(stops::create))
        .route("/stops/{id}", delete(stops::lift))
}
