//! Upstreams that misbehave: a clear error in bounded time, and other calls notice nothing.

use std::time::{Duration, Instant};

use sidecar::upstream::{Upstream, UpstreamError, UpstreamSpec};

use crate::fixture::{Answers, HttpFixture, HttpOptions, Style};
use crate::support::*;

/// Much longer than anything here takes, and much shorter than the bounds of calls that are not given one.
const BOUND: Duration = Duration::from_secs(20);

async fn still_serves(upstream: &Upstream) {
    let answer = upstream.call(request("echo", "{\"n\":1}")).await.unwrap();
    assert!(text(&answer).contains("\"n\":1"));
}

async fn ends_in_time(upstream: &Upstream, tool: &str) -> Result<String, UpstreamError> {
    let mut call = request(tool, "{}");
    call.timeout = Some(Duration::from_secs(2));
    let begun = Instant::now();
    let (outcome, ()) = tokio::join!(upstream.call(call), still_serves(upstream));
    assert!(begun.elapsed() < BOUND, "{tool}: {:?}", begun.elapsed());
    still_serves(upstream).await;
    outcome.map(|answer| text(&answer))
}

async fn misbehaves(spec: UpstreamSpec) {
    let (_upstreams, upstream) = connected(spec).await;
    let other = ends_in_time(&upstream, "other").await.unwrap_err();
    assert!(
        matches!(
            other,
            UpstreamError::Protocol { .. } | UpstreamError::Timeout { .. } | UpstreamError::Lost { .. }
        ),
        "{other}"
    );
    let stall = ends_in_time(&upstream, "stall").await.unwrap_err();
    assert!(matches!(stall, UpstreamError::Timeout { .. }), "{stall}");
    assert_eq!(ends_in_time(&upstream, "garbage").await.unwrap(), "found");
    // Nobody is there who could be asked, and nothing is remembered of the questions.
    assert_eq!(ends_in_time(&upstream, "questions").await.unwrap(), "asked");
    let mut flood = request("flood", "{}");
    flood.timeout = Some(Duration::from_secs(60));
    let (flooded, ()) = tokio::join!(upstream.call(flood), still_serves(&upstream));
    assert_eq!(text(&flooded.unwrap()), "flooded");
    still_serves(&upstream).await;
}

#[tokio::test]
async fn an_upstream_over_stdio_that_misbehaves_fails_its_own_calls_only() {
    misbehaves(stdio("legacy", None)).await;
}

#[tokio::test]
async fn an_upstream_over_http_that_misbehaves_fails_its_own_calls_only() {
    let server = HttpFixture::start(HttpOptions {
        style: Style::Legacy,
        answers: Answers::Events,
        redirect: None,
    })
    .await;
    misbehaves(http(&server.url())).await;
}
