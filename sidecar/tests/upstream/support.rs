//! What the tests share.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sidecar::upstream::{
    Audience, DeclaredCatalogue, HttpSpec, LogLevel, RetryPolicy, StdioSpec, TransportSpec, Upstream,
    UpstreamAnswer, UpstreamLimits, UpstreamRequest, UpstreamSpec, Upstreams,
};
use tokio::sync::mpsc;

use crate::fixture::{EVENTS, STYLE};

pub fn limits() -> UpstreamLimits {
    UpstreamLimits {
        probe_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(30),
        ..UpstreamLimits::default()
    }
}

pub fn quick() -> RetryPolicy {
    RetryPolicy {
        first: Duration::from_millis(50),
        quick: Duration::from_millis(20),
        longest: Duration::from_millis(500),
        stable: Duration::from_secs(30),
    }
}

pub fn spec(transport: TransportSpec) -> UpstreamSpec {
    UpstreamSpec {
        name: "fixture".into(),
        transport,
        forward_identity: false,
        share: None,
        asks: None,
        limits: limits(),
        retry: quick(),
    }
}

pub fn stdio(style: &str, events: Option<&Path>) -> UpstreamSpec {
    let mut env = vec![(STYLE.to_owned(), style.to_owned())];
    if let Some(events) = events {
        env.push((EVENTS.to_owned(), events.display().to_string()));
    }
    spec(TransportSpec::Stdio(StdioSpec {
        command: std::env::current_exe().unwrap().display().to_string(),
        args: ["--exact", "fixture::stdio::fixture_process", "--nocapture"]
            .map(str::to_owned)
            .to_vec(),
        env,
    }))
}

pub fn http(url: &str) -> UpstreamSpec {
    let headers = vec![("x-extra".to_owned(), "configured".to_owned())];
    spec(TransportSpec::StreamableHttp(HttpSpec {
        url: url.to_owned(),
        headers,
        proxy: None,
        tls: None,
    }))
}

pub fn sse(url: &str) -> UpstreamSpec {
    let mut spec = http(url);
    if let TransportSpec::StreamableHttp(http) = spec.transport {
        spec.transport = TransportSpec::Sse(http);
    }
    spec
}

/// Starts one upstream and waits until it is connected.
pub async fn connected(spec: UpstreamSpec) -> (Upstreams, Upstream) {
    let upstreams = Upstreams::start(vec![spec]);
    let upstream = upstreams.get("fixture").unwrap().clone();
    catalogue_where(&upstream, |catalogue| catalogue.is_read).await;
    until(|| upstream.state().status() == "connected").await;
    (upstreams, upstream)
}

pub async fn catalogue_where(
    upstream: &Upstream,
    holds: impl Fn(&DeclaredCatalogue) -> bool,
) -> Arc<DeclaredCatalogue> {
    let mut catalogue = upstream.catalogue();
    let waiting = catalogue.wait_for(|catalogue| holds(catalogue));
    let found = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    found
        .unwrap_or_else(|_| panic!("catalogue: {:?}", upstream.state()))
        .unwrap()
        .clone()
}

/// Waits for a condition that nobody announces.
pub async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .expect("the condition never came");
}

pub fn request(tool: &str, arguments: &str) -> UpstreamRequest {
    UpstreamRequest {
        tool: tool.into(),
        arguments: Some(Bytes::copy_from_slice(arguments.as_bytes())),
        ..UpstreamRequest::default()
    }
}

/// Hears of progress, and of nothing else.
#[derive(Debug)]
struct Progress(mpsc::Sender<Bytes>);

impl Audience for Progress {
    fn wants_progress(&self) -> bool {
        true
    }

    fn progressed(&self, params: &Bytes) {
        let _ = self.0.try_send(params.clone());
    }

    fn log_level(&self, _: &str) -> Option<LogLevel> {
        None
    }

    fn logged(&self, _: &str, params: &Bytes) {
        panic!("nobody asked for {params:?}");
    }

    fn paused(&self, _: Duration) {}
}

/// Who hears of progress, and what was heard.
pub fn progress() -> (Arc<dyn Audience>, mpsc::Receiver<Bytes>) {
    let (told, heard) = mpsc::channel(64);
    (Arc::new(Progress(told)), heard)
}

/// The text of a result's first content.
pub fn text(answer: &UpstreamAnswer) -> String {
    let value: serde_json::Value = serde_json::from_slice(&answer.raw).unwrap();
    value["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}

pub fn has_heard(path: &Path, line: &str) -> bool {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .any(|heard| heard == line)
}
