//! The REST API that operators, the console and the command line call.
//!
//! One file for each kind of thing; [`guard`] decides who may come in, [`input`] reads what they send, [`refusal`] turns errors into
//! answers. Every change is recorded by the store in the transaction that makes it.

mod approvals;
mod grants;
mod guard;
mod health;
mod input;
mod join_tokens;
mod limits;
mod page;
mod policies;
mod refusal;
mod rollouts;
mod settings;
mod sidecars;
mod stops;
mod text;
mod tools;
mod traces;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{delete, get, post, put};

use crate::core::Core;

/// The largest request body.
const MAX_BODY: usize = 4 << 20;

/// All operator paths. Paths that are not here answer as the operators' API too.
pub fn router(core: &Arc<Core>) -> Router {
    let guarded = Router::new()
        .merge(governance())
        .merge(observation())
        .merge(fleet())
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
        .route("/policies/{name}/tools/{tool}", put(policies::put_tool))
        .route("/policies/{name}/versions", get(policies::versions))
        .route("/policies/{name}/rollback", post(policies::rollback))
        .route("/approvals", get(approvals::list))
        .route("/approvals/{id}", get(approvals::one))
        .route("/approvals/{id}/approve", post(approvals::approve))
        .route("/approvals/{id}/deny", post(approvals::deny))
        .route("/grants", get(grants::list).post(grants::create))
        .route("/grants/{id}", delete(grants::revoke))
        .route("/limits", get(limits::list).delete(limits::reset))
        .route("/stops", get(stops::list).post(stops::create))
        .route("/stops/{id}", delete(stops::lift))
}

fn observation() -> Router<Arc<Core>> {
    Router::new()
        .route("/traces", get(traces::list))
        .route("/traces/{id}", get(traces::one))
        .route("/traces/{id}/why", get(traces::why))
        .route("/traces/replay", post(traces::replayed))
        .route("/traces/tests", get(traces::as_tests))
        .route("/traces/verify", get(traces::verify))
        .route("/traces/export", get(traces::export))
        .route("/traces/keys", get(traces::keys))
        .route("/traces/checkpoints", get(traces::checkpoints))
        .route("/traces/gaps", get(traces::gaps))
        .route("/sessions", get(traces::sessions))
        .route("/sessions/{id}", get(traces::session))
}

fn fleet() -> Router<Arc<Core>> {
    Router::new()
        .route("/sidecars", get(sidecars::list))
        .route("/sidecars/{id}", get(sidecars::one).delete(sidecars::revoke))
        .route(
            "/sidecars/tokens",
            get(join_tokens::list).post(join_tokens::create),
        )
        .route("/sidecars/tokens/{id}", delete(join_tokens::revoke))
        .route("/rollouts/{revision}", get(rollouts::one))
        .route("/settings/fleet", get(settings::fleet).put(settings::put_fleet))
        .route("/generation", post(settings::begin_generation))
        .route("/tools", get(tools::list))
        .route("/tools/classify", post(tools::classify))
        .route("/tools/decisions", get(tools::decisions))
        .route("/tools/pins", get(tools::pins))
        .route("/tools/pins/accept", post(tools::accept))
        .route("/tools/{tool}", get(tools::one).patch(tools::correct))
        .route(
            "/tools/{tool}/extractor",
            put(tools::put_extractor).delete(tools::remove_extractor),
        )
        .route("/tools/{tool}/extractor/test", post(tools::try_extractor))
}
