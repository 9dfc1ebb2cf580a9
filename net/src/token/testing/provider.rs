//! A server that publishes keys.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::SigningKey;
use crate::clock::Clock;
use crate::serve::{Limits, serve};
use crate::tls::{ServerFiles, ServerTls};

/// An identity provider on loopback: its key set is at `/jwks.json`; that of a cluster is where Kubernetes has it.
#[derive(Debug)]
pub struct TestProvider {
    url: String,
    state: Arc<Published>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Published {
    /// What is answered; `None`: an error.
    set: Mutex<Option<Value>>,
    asked: AtomicUsize,
    /// What has to be shown to read the set.
    reader: Option<String>,
}

impl TestProvider {
    /// Starts a provider that publishes these keys, on this port or, for 0, a free one.
    ///
    /// # Panics
    /// When the port is taken.
    pub async fn start(port: u16, keys: &[&SigningKey]) -> Self {
        Self::serving(port, None, "/jwks.json", None, keys).await
    }

    /// Starts one as an API server of Kubernetes is: over TLS, for `localhost`, and for whoever shows a token.
    ///
    /// # Panics
    /// When the certificate cannot be used.
    pub async fn cluster(files: ServerFiles, reader: &str, keys: &[&SigningKey]) -> Self {
        let tls = ServerTls::load(files, Clock::machine()).await.unwrap();
        Self::serving(0, Some(tls), "/openid/v1/jwks", Some(reader.to_owned()), keys).await
    }

    async fn serving(
        port: u16,
        tls: Option<ServerTls>,
        path: &str,
        reader: Option<String>,
        keys: &[&SigningKey],
    ) -> Self {
        let listener = crate::listen::bind(SocketAddr::from(([127, 0, 0, 1], port)), "port")
            .await
            .unwrap();
        let address = listener.local_addr().unwrap();
        let url = match tls {
            Some(_) => format!("https://localhost:{}{path}", address.port()),
            None => format!("http://{address}{path}"),
        };
        let state = Arc::new(Published {
            reader,
            ..Published::default()
        });
        let router = Router::new()
            .route(path, get(published))
            .with_state(Arc::clone(&state));
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let tls = tls.map(Arc::new);
        tasks.spawn(serve(listener, tls, router, Limits::default(), shutdown.clone()));
        tasks.close();
        let provider = Self {
            url,
            state,
            shutdown,
            tasks,
        };
        provider.publish(keys);
        provider
    }

    /// The address of its key set.
    pub fn url(&self) -> String {
        self.url.clone()
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

async fn published(State(state): State<Arc<Published>>, headers: HeaderMap) -> Response {
    let shown = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if state.reader.is_some() && shown != state.reader.as_deref() {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    state.asked.fetch_add(1, Ordering::SeqCst);
    let set = state.set.lock().unwrap().clone();
    match set {
        Some(set) => axum::Json(set).into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
