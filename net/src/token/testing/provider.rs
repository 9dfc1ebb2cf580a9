//! A server that publishes keys.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::SigningKey;
use crate::serve::{Limits, serve};

/// An identity provider on loopback: its key set is at `/jwks.json`.
#[derive(Debug)]
pub struct TestProvider {
    address: SocketAddr,
    state: Arc<Published>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Published {
    /// What is answered; `None`: an error.
    set: Mutex<Option<Value>>,
    asked: AtomicUsize,
}

impl TestProvider {
    /// Starts a provider that publishes these keys, on this port or, for 0, a free one.
    ///
    /// # Panics
    /// When the port is taken.
    pub async fn start(port: u16, keys: &[&SigningKey]) -> Self {
        let listener = crate::listen::bind(SocketAddr::from(([127, 0, 0, 1], port)), "port")
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Published::default());
        let router = Router::new()
            .route("/jwks.json", get(published))
            .with_state(Arc::clone(&state));
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(serve(listener, None, router, Limits::default(), shutdown.clone()));
        tasks.close();
        let provider = Self {
            address,
            state,
            shutdown,
            tasks,
        };
        provider.publish(keys);
        provider
    }

    /// The address of its key set.
    pub fn url(&self) -> String {
        format!("http://{}/jwks.json", self.address)
    }

    /// Publishes these keys from now on, and no others.
    pub fn publish(&self, keys: &[&SigningKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        self.publish_set(Some(json!({"keys": keys})));
    }

    /// Publishes any set; `None`: answers with an error.
    ///
    /// # Panics
    /// When another test thread has.
    pub fn publish_set(&self, set: Option<Value>) {
        *self.state.set.lock().unwrap() = set;
    }

    /// How often the keys were asked for.
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// Ends it: the port is free again.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.tasks.wait().await;
    }
}

async fn published(State(state): State<Arc<Published>>) -> Response {
    state.asked.fetch_add(1, Ordering::SeqCst);
    let set = state.set.lock().unwrap().clone();
    match set {
        Some(set) => axum::Json(set).into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
