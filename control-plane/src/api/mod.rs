//! The REST API that operators, the console and the command line call.
//!
//! One file for each kind of thing; [`guard`] finds out who comes in, [`table`] has each path with the role that it needs, [`input`] reads what they send, [`refusal`] turns errors into
//! answers. Every change is recorded by the store in the transaction that makes it.

mod approvals;
mod grants;
mod guard;
mod health;
mod input;
mod join_tokens;
mod limits;
mod operator_tokens;
mod page;
mod policies;
mod refusal;
mod rollouts;
mod settings;
mod sidecars;
mod stops;
mod table;
mod text;
mod tools;
mod traces;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::get;

use self::table::{Scope, Table};
use crate::auth::Role::{Admin, Approver, Editor, Viewer};
use crate::core::Core;

/// The largest request body.
const MAX_BODY: usize = 4 << 20;

/// All operator paths. Paths that are not here answer as the operators' API too.
pub fn router(core: &Arc<Core>) -> Router {
    let guarded = paths()
        .into_router()
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

/// Every path with the role that it needs, and how it treats an operator who is confined to namespaces.
fn paths() -> Table {
    let table = governance(Table::new());
    fleet(observation(tools_of_sidecars(table)))
}

fn governance(table: Table) -> Table {
    table
        .get("/policies", Viewer, Scope::Own, policies::list)
        .post("/policies/validate", Viewer, Scope::None, policies::validate)
        .get("/policies/{name}", Viewer, Scope::Own, policies::one)
        .put("/policies/{name}", Editor, Scope::Own, policies::put)
        .delete("/policies/{name}", Editor, Scope::Own, policies::remove)
        .put(
            "/policies/{name}/tools/{tool}",
            Editor,
            Scope::Query,
            policies::put_tool,
        )
        .get(
            "/policies/{name}/versions",
            Viewer,
            Scope::Own,
            policies::versions,
        )
        .post(
            "/policies/{name}/rollback",
            Editor,
            Scope::Own,
            policies::rollback,
        )
        .get("/approvals", Viewer, Scope::Query, approvals::list)
        .get("/approvals/{id}", Viewer, Scope::Own, approvals::one)
        .post(
            "/approvals/{id}/approve",
            Approver,
            Scope::Own,
            approvals::approve,
        )
        .post("/approvals/{id}/deny", Approver, Scope::Own, approvals::deny)
        .get("/grants", Viewer, Scope::Query, grants::list)
        .post("/grants", Approver, Scope::Own, grants::create)
        .delete("/grants/{id}", Approver, Scope::Own, grants::revoke)
        .get("/limits", Viewer, Scope::Query, limits::list)
        .delete("/limits", Editor, Scope::Query, limits::reset)
        .get("/stops", Viewer, Scope::Own, stops::list)
        .post("/stops", Approver, Scope::Own, stops::create)
        .delete("/stops/{id}", Admin, Scope::Own, stops::lift)
}

fn tools_of_sidecars(table: Table) -> Table {
    table
        .get("/tools", Viewer, Scope::Query, tools::list)
        .post("/tools/classify", Viewer, Scope::None, tools::classify)
        .get("/tools/decisions", Viewer, Scope::Query, tools::decisions)
        .get("/tools/pins", Viewer, Scope::Query, tools::pins)
        .post("/tools/pins/accept", Editor, Scope::Own, tools::accept)
        .get("/tools/{tool}", Viewer, Scope::Query, tools::one)
        .patch("/tools/{tool}", Editor, Scope::Query, tools::correct)
        .put(
            "/tools/{tool}/extractor",
            Editor,
            Scope::Query,
            tools::put_extractor,
        )
        .delete(
            "/tools/{tool}/extractor",
            Editor,
            Scope::Query,
            tools::remove_extractor,
        )
        .post(
            "/tools/{tool}/extractor/test",
            Viewer,
            Scope::Query,
            tools::try_extractor,
        )
}

fn observation(table: Table) -> Table {
    table
        .get("/traces", Viewer, Scope::Query, traces::list)
        .get("/traces/{id}", Viewer, Scope::Own, traces::one)
        .get("/traces/{id}/why", Viewer, Scope::Own, traces::why)
        .post("/traces/replay", Viewer, Scope::Own, traces::replayed)
        .get("/traces/tests", Viewer, Scope::Query, traces::as_tests)
        .get("/traces/verify", Viewer, Scope::All, traces::verify)
        .get("/traces/export", Viewer, Scope::All, traces::export)
        .get("/traces/keys", Viewer, Scope::None, traces::keys)
        .get("/traces/checkpoints", Viewer, Scope::None, traces::checkpoints)
        .get("/traces/gaps", Viewer, Scope::Own, traces::gaps)
        .get("/sessions", Viewer, Scope::Query, traces::sessions)
        .get("/sessions/{id}", Viewer, Scope::Query, traces::session)
        .get("/health", Viewer, Scope::None, health::summary)
        .get("/metrics", Viewer, Scope::None, health::metrics)
}

fn fleet(table: Table) -> Table {
    table
        .get("/sidecars", Viewer, Scope::Query, sidecars::list)
        .get("/sidecars/{id}", Viewer, Scope::Own, sidecars::one)
        .delete("/sidecars/{id}", Admin, Scope::Own, sidecars::revoke)
        .get("/sidecars/tokens", Admin, Scope::Own, join_tokens::list)
        .post("/sidecars/tokens", Admin, Scope::Own, join_tokens::create)
        .delete("/sidecars/tokens/{id}", Admin, Scope::Own, join_tokens::revoke)
        .get("/rollouts/{revision}", Viewer, Scope::Own, rollouts::one)
        .get("/settings/fleet", Viewer, Scope::None, settings::fleet)
        .put("/settings/fleet", Admin, Scope::All, settings::put_fleet)
        .post("/generation", Admin, Scope::All, settings::begin_generation)
        .get("/tokens", Admin, Scope::Own, operator_tokens::list)
        .post("/tokens", Admin, Scope::Own, operator_tokens::create)
        .delete("/tokens/{id}", Admin, Scope::Own, operator_tokens::revoke)
}
