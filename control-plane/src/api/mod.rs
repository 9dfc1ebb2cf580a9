//! The REST API that operators, the console and the command line call.

mod health;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

use crate::core::Core;

/// All operator paths.
pub fn router(core: &Arc<Core>) -> Router {
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/version", get(health::version))
        .route("/metrics", get(health::metrics))
        .with_state(Arc::clone(core))
}
