//! The operators' API in one process, over SQLite in a temporary folder.

mod approvals;
mod chain;
mod confined;
mod corrections;
mod door;
mod fleet;
mod hostile;
mod policies;
mod providers;
mod roles;
mod tool_edits;
mod tools;

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use http::{HeaderMap, Method, Request, StatusCode, header};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::store::Revision;
use crate::store::approvals::{ApprovalDraft, Binding, Opened};
use crate::{ControlPlane, Options, start};

const TOKEN: &str = "the-operators-own-token";

/// A control plane with nothing in it.
struct World {
    plane: ControlPlane,
    _folder: TempDir,
}

/// What came back.
#[derive(Debug)]
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn header(&self, name: header::HeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[track_caller]
    fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self.json()
    }

    /// A refusal with all that problem details have.
    #[track_caller]
    fn problem(self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.header(header::CONTENT_TYPE), "application/problem+json");
        let body = self.json();
        assert_eq!(body["status"], status);
        assert_eq!(body["error"], body["detail"]);
        body["detail"].as_str().unwrap().to_owned()
    }
}

/// A request to be sent.
struct Ask {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    peer: SocketAddr,
    body: Vec<u8>,
}

impl Ask {
    fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.parse().unwrap(),
            path: path.to_owned(),
            headers: Vec::new(),
            peer: "192.0.2.7:5000".parse().unwrap(),
            body: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn bearer(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    fn operator(self) -> Self {
        self.bearer(TOKEN)
    }

    fn from(mut self, peer: &str) -> Self {
        self.peer = peer.parse().unwrap();
        self
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    async fn send(self, world: &World) -> Got {
        let mut request = Request::builder().method(self.method).uri(&self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let mut request = request.body(Body::from(self.body)).unwrap();
        request.extensions_mut().insert(ConnectInfo(self.peer));
        let response = world.plane.router().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Got {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }
}

impl World {
    async fn new() -> Self {
        Self::of(|_| {}).await
    }

    async fn of(change: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::in_directory(folder.path());
        options.admin_token = Some(TOKEN.to_owned());
        options.lifetimes.checkpoint = Duration::from_millis(50);
        change(&mut options);
        Self {
            plane: start(options).await.unwrap(),
            _folder: folder,
        }
    }

    async fn get(&self, path: &str) -> Got {
        Ask::new("GET", path).operator().send(self).await
    }

    async fn post(&self, path: &str, body: Value) -> Got {
        Ask::new("POST", path)
            .operator()
            .body(body.to_string())
            .send(self)
            .await
    }

    async fn put(&self, path: &str, body: &str) -> Got {
        Ask::new("PUT", path)
            .operator()
            .with("content-type", "application/yaml")
            .body(body)
            .send(self)
            .await
    }

    async fn delete(&self, path: &str) -> Got {
        Ask::new("DELETE", path).operator().send(self).await
    }

    /// A question that an agent's call asks.
    async fn asks(&self, agent: &str, tool: &str) -> String {
        self.asks_in("default", agent, tool).await
    }

    async fn asks_in(&self, namespace: &str, agent: &str, tool: &str) -> String {
        let call = uuid::Uuid::now_v7().to_string();
        let draft = ApprovalDraft {
            namespace: namespace.to_owned(),
            sidecar: "sidecar-1".to_owned(),
            call_id: call.clone(),
            binding: Binding {
                agent: agent.to_owned(),
                user: String::new(),
                tool: tool.to_owned(),
                fingerprint: vec![1; 32],
                arguments_digest: call.clone().into_bytes(),
                digest_key_id: "digest-1".to_owned(),
                session: "session-1".to_owned(),
            },
            params: r#"{"amount":1.50}"#.into(),
            classification: r#"{"risk":"FINANCIAL"}"#.into(),
            policy_rule: "support".to_owned(),
            rule_index: 2,
            revision: Revision::new(1, 1),
            message: "Money needs a person.".to_owned(),
            injection_risk: false,
            resources: Vec::new(),
            identity: "asserted".to_owned(),
            floors: Vec::new(),
            timeout: Duration::from_secs(300),
        };
        match self.plane.core().store.open_approval(draft, 100).await.unwrap() {
            Opened::New(approval) => approval.id,
            other => panic!("not opened: {other:?}"),
        }
    }

    /// The names of the acts in the chain, oldest first, with who did them.
    async fn acts(&self) -> Vec<(String, String)> {
        let mut acts: Vec<_> = self
            .get("/traces?kind=act&limit=1000")
            .await
            .expect(200)
            .as_array()
            .unwrap()
            .iter()
            .map(|act| {
                (
                    act["tool"].as_str().unwrap().to_owned(),
                    act["user_id"].as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect();
        acts.reverse();
        acts
    }

    async fn did(&self, act: &str, by: &str) -> bool {
        self.acts().await.contains(&(act.to_owned(), by.to_owned()))
    }
}
