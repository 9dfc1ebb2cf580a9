//! A service of the tests' own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// A service that answers as its paths say, and remembers what it was asked.
#[derive(Clone, Default)]
pub(super) struct Service {
    asked: Arc<Mutex<Vec<String>>>,
    pub(super) failures: Arc<AtomicUsize>,
    pub(super) document: Arc<Mutex<String>>,
    pub(super) stop: CancellationToken,
}

impl Service {
    pub(super) async fn start(document: &Value) -> (Self, String) {
        let service = Self::default();
        *service.document.lock().unwrap() = document.to_string();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        service.clone().serve(listener);
        (service, format!("http://{address}"))
    }

    pub(super) fn serve(self, listener: tokio::net::TcpListener) {
        let stop = self.stop.clone();
        let router = Router::new().fallback(answer).with_state(self);
        tokio::spawn(async move {
            let serving = axum::serve(listener, router);
            tokio::select! {
                served = serving => served.unwrap(),
                () = stop.cancelled() => {}
            }
        });
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(State(service): State<Service>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if path == "/openapi.json" {
        return service.document.lock().unwrap().clone().into_response();
    }
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let header = |name: &str| {
        head.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
            .to_owned()
    };
    service.asked.lock().unwrap().push(format!(
        "{} {} key={} trace={} {}",
        head.method,
        head.uri,
        header("x-key"),
        header("traceparent"),
        String::from_utf8_lossy(&body)
    ));
    let typed = |kind: &'static str, body: &'static [u8]| ([("content-type", kind)], body).into_response();
    match path.as_str() {
        "/object" => typed(
            "application/json; charset=utf-8",
            b" {\"n\": 1.00, \"big\": 12345678901234567890}\n",
        ),
        "/list" => typed("application/json", b"[1]"),
        "/twice" => typed("application/json", b"{\"a\":1,\"a\":2}"),
        "/missing" => (
            StatusCode::NOT_FOUND,
            [("content-type", "application/problem+json")],
            "{\"title\":\"gone\"}",
        )
            .into_response(),
        "/empty" => StatusCode::NO_CONTENT.into_response(),
        "/image" => typed("image/png", &[0x89, b'P', b'N', b'G', 0xff]),
        "/binary" => typed("application/zip", &[0, 1, 2]),
        "/latin" => typed("text/plain; charset=ISO-8859-1", &[b'g', 0xfc, b'n']),
        "/huge" => {
            let chunk = bytes::Bytes::from(vec![b'x'; 1 << 16]);
            let chunks =
                futures_util::stream::iter((0..3200).map(move |_| Ok::<_, std::io::Error>(chunk.clone())));
            Response::new(Body::from_stream(chunks))
        }
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            StatusCode::OK.into_response()
        }
        "/flaky" if service.failures.fetch_add(1, Ordering::SeqCst) < 2 => {
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
        "/flaky" => typed("application/json", b"{}"),
        "/away" => (StatusCode::FOUND, [("location", "http://elsewhere.example/")], "").into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// A document of GET (and POST) operations at these paths, each named as its path.
pub(super) fn document(paths: &[&str]) -> Value {
    let paths: serde_json::Map<String, Value> = paths
        .iter()
        .map(|path| {
            let name = path.trim_start_matches('/');
            let operation = |method: &str| {
                json!({"operationId": format!("{method} {name}"),
                    "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}},
                        {"name": "x-key", "in": "header", "schema": {"type": "string"}}]})
            };
            (
                (*path).to_owned(),
                json!({"get": operation("get"), "post": operation("post")}),
            )
        })
        .collect();
    json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": paths})
}
