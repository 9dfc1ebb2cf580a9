//! A REST server of the tests' own: it remembers every request byte for byte and answers as its path says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;

/// One request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: String,
    /// Path and query, encoded as they came.
    pub target: String,
    /// Headers, by name.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Asked {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A running server.
#[derive(Clone)]
pub struct Rest {
    /// Where it is.
    pub url: String,
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Shared {
    document: Mutex<String>,
    asked: Mutex<Vec<Asked>>,
}

impl Rest {
    /// Starts one that serves a document at `/openapi`.
    pub async fn start(document: &str) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut rest = Self {
            url: format!("http://{address}"),
            address,
            shared: Arc::default(),
            stop: CancellationToken::new(),
        };
        rest.declare(document);
        rest.serve(listener);
        rest
    }

    /// Serves another document from now on.
    pub fn declare(&self, document: &str) {
        document.clone_into(&mut self.shared.document.lock().unwrap());
    }

    /// Nobody is there any more.
    pub async fn go(&self) {
        self.stop.cancel();
        crate::wait::until("the server is gone", || async {
            tokio::net::TcpStream::connect(self.address)
                .await
                .is_err()
                .then_some(())
        })
        .await;
    }

    /// It is there again, at the same place.
    pub async fn come_back(&mut self) {
        self.stop = CancellationToken::new();
        let listener = tokio::net::TcpListener::bind(self.address).await.unwrap();
        self.serve(listener);
    }

    /// The requests so far, apart from those for the document.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The newest request.
    #[must_use]
    pub fn last(&self) -> Asked {
        self.asked().pop().expect("a request came")
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the server ends with the test's runtime, and small answers need no TCP_NODELAY"
    )]
    fn serve(&mut self, listener: tokio::net::TcpListener) {
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&self.shared));
        let stop = self.stop.clone();
        tokio::spawn(async move {
            let serving = axum::serve(listener, router);
            tokio::select! {
                served = serving => served.unwrap(),
                () = stop.cancelled() => {}
            }
        });
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if path == "/openapi" {
        return shared.document.lock().unwrap().clone().into_response();
    }
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let asked = Asked {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        headers: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        body: axum::body::to_bytes(body, 64 << 20).await.unwrap().to_vec(),
    };
    shared.asked.lock().unwrap().push(asked);
    let json = |status: StatusCode, body: &'static str| {
        (status, [("content-type", "application/json")], body).into_response()
    };
    match path.as_str() {
        "/missing" => json(StatusCode::NOT_FOUND, r#"{"error":"no such thing"}"#),
        "/broken" => json(StatusCode::INTERNAL_SERVER_ERROR, r#"{"error":"broken"}"#),
        "/image" => ([("content-type", "image/png")], vec![0x89, b'P', b'N', b'G']).into_response(),
        // Longer than any test waits.
        "/slow" => {
            tokio::time::sleep(std::time::Duration::from_secs(600)).await;
            json(StatusCode::OK, "{}")
        }
        // 200 MB, in pieces.
        "/huge" => {
            let piece = vec![b'x'; 1 << 20];
            let pieces = (0..200).map(move |_| Ok::<_, std::io::Error>(piece.clone()));
            Response::new(Body::from_stream(futures_util::stream::iter(pieces)))
        }
        _ => json(StatusCode::OK, r#"{"ok":true,"number":12345678901234567890}"#),
    }
}
