//! Whether the process lives, whether it can serve, what it counts.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use net::problem::Problem;
use serde_json::{Value, json};

use crate::core::Core;

/// A replica that has not read the primary for so long sends its callers elsewhere.
const READ_AGE: Duration = Duration::from_secs(10);

pub(super) async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

pub(super) async fn ready(State(core): State<Arc<Core>>) -> Result<Json<Value>, Problem> {
    if core.draining.is_cancelled() {
        return Err(Problem::unavailable("this control plane is going down"));
    }
    let age = core.primary.age();
    if age > READ_AGE {
        return Err(Problem::unavailable(format!(
            "the database has not answered for {} s; check that it runs and is reachable",
            age.as_secs()
        )));
    }
    Ok(Json(
        json!({"status": "ok", "revision": core.hub.revision().to_string()}),
    ))
}

pub(super) async fn version() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "contract": {"min": proto::MIN_CONTRACT, "max": proto::MAX_CONTRACT},
    }))
}

pub(super) async fn metrics(State(core): State<Arc<Core>>) -> Response {
    core.metrics
        .read_age
        .set(i64::try_from(core.primary.age().as_millis()).unwrap_or(i64::MAX));
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], core.metrics.text()).into_response()
}

/// What clients of one-machine installations read.
pub(super) async fn summary(State(core): State<Arc<Core>>) -> Result<Json<Value>, Problem> {
    let tools = core.store.tools(None).await?.len();
    let traces = core.store.chain_head().await?.at.seq;
    Ok(Json(json!({
        "status": "ok",
        "tools": tools,
        "traces": traces,
        "version": env!("CARGO_PKG_VERSION"),
        "revision": core.hub.revision().to_string(),
    })))
}
