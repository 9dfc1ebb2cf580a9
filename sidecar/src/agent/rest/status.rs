//! The state of the sidecar: `GET /health`, `/version`, `/readyz`, `/metrics`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use net::problem::Problem;
use serde_json::json;

use crate::agent::caller::Caller;
use crate::agent::state::AgentState;
use crate::control::Freshness;

/// Handles `GET /health`: the process serves.
pub(super) async fn health(State(state): State<Arc<AgentState>>) -> Response {
    let tools = state.gate.registry().tools().len();
    let traces = state.gate.spool().status().high_water;
    Json(json!({
        "status": "ok",
        "tools": tools,
        "traces": traces,
        "version": env!("CARGO_PKG_VERSION"),
    }))
    .into_response()
}

/// Handles `GET /version`.
pub(super) async fn version() -> Response {
    Json(json!({"name": "toolgate-sidecar", "version": env!("CARGO_PKG_VERSION")})).into_response()
}

/// Handles `GET /readyz`: callers can be identified, calls decided and recorded.
pub(super) async fn ready(State(state): State<Arc<AgentState>>) -> Response {
    let control = state.gate.control();
    let (is_fresh, lease) = match control.freshness() {
        Freshness::Fresh => (true, "fresh"),
        Freshness::PlainReadsOnly => (true, "plain reads only"),
        Freshness::Nothing => (false, "expired"),
        Freshness::NoSnapshot => (false, "no snapshot yet"),
        Freshness::Revoked => (false, "revoked"),
    };
    let has_room = state.gate.spool().has_room();
    let is_draining = state.shutdown.is_cancelled();
    let without_keys = state.identities.proofs().missing_keys();
    let is_ready = is_fresh && has_room && !is_draining && without_keys.is_empty();
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({
        "status": if is_ready { "ready" } else { "not ready" },
        "lease": lease,
        "lease_age_ms": control.lease_age().map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        "revision": control.snapshot().revision.to_string(),
        "spool": if has_room { "room" } else { "full" },
        "draining": is_draining,
        "issuers_without_keys": without_keys
            .into_iter()
            .map(|(issuer, state)| json!({"issuer": issuer, "problem": state.problem}))
            .collect::<Vec<_>>(),
    });
    (status, Json(body)).into_response()
}

/// Handles `GET /.well-known/oauth-protected-resource`: where an agent gets a token (RFC 9728).
pub(super) async fn protected_resource(State(state): State<Arc<AgentState>>, parts: Parts) -> Response {
    match state.resource.metadata(&Caller::from(&parts)) {
        Some(metadata) => Json(metadata).into_response(),
        None => Problem::not_found("no identity provider is configured here; see auth.jwt").into_response(),
    }
}

/// Handles `GET /metrics`.
pub(super) async fn metrics(State(state): State<Arc<AgentState>>) -> Response {
    let text = state.metrics.render(&state.gate);
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
