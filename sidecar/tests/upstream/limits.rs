//! Bounds of messages and calls.

use std::time::Duration;

use sidecar::upstream::{UpstreamError, UpstreamSpec};

use crate::fixture::{Answers, HttpFixture, HttpOptions, SseFixture, SseOptions, Style};
use crate::support::*;

async fn a_bound_is_a_clear_error(mut spec: UpstreamSpec) {
    spec.limits.message_bytes = 100_000;
    let (_upstreams, upstream) = connected(spec).await;
    let answer = upstream.call(request("huge", "{\"bytes\":90000}")).await.unwrap();
    assert_eq!(text(&answer).len(), 90_000);
    let error = upstream
        .call(request("huge", "{\"bytes\":1000000}"))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            UpstreamError::TooLarge {
                what: "the answer",
                limit: 100_000,
                ..
            }
        ),
        "{error}"
    );
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(200_000));
    let error = upstream.call(request("echo", &long)).await.unwrap_err();
    assert!(
        matches!(
            error,
            UpstreamError::TooLarge {
                what: "the request",
                ..
            }
        ),
        "{error}"
    );
    assert!(!error.may_have_run());
    upstream.call(request("echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn a_message_beyond_the_bound_is_a_clear_error_over_stdio() {
    a_bound_is_a_clear_error(stdio("legacy", None)).await;
}

#[tokio::test]
async fn a_message_beyond_the_bound_is_a_clear_error_over_http() {
    for answers in [Answers::Json, Answers::Events] {
        let server = HttpFixture::start(HttpOptions {
            style: Style::Legacy,
            answers,
            redirect: None,
        })
        .await;
        a_bound_is_a_clear_error(http(&server.url())).await;
    }
}

#[tokio::test]
async fn a_message_beyond_the_bound_is_a_clear_error_over_sse_and_the_stream_goes_on() {
    let server = SseFixture::start(SseOptions::default()).await;
    a_bound_is_a_clear_error(sse(&server.url())).await;
    assert_eq!(server.opened().len(), 1);
}

#[tokio::test]
async fn more_calls_than_the_bound_are_refused() {
    let server = HttpFixture::start(HttpOptions {
        style: Style::Modern,
        answers: Answers::Events,
        redirect: None,
    })
    .await;
    for mut spec in [http(&server.url()), stdio("legacy", None)] {
        spec.limits.calls_in_flight = 2;
        // A modern server over standard streams also holds a subscription, so a legacy one is used there.
        let (_upstreams, upstream) = connected(spec).await;
        let slow = || {
            let mut slow = request("slow", "{}");
            slow.timeout = Some(Duration::from_secs(1));
            upstream.call(slow)
        };
        let (first, second, third) = tokio::join!(slow(), slow(), slow());
        assert!(matches!(first, Err(UpstreamError::Timeout { .. })), "{first:?}");
        assert!(matches!(second, Err(UpstreamError::Timeout { .. })), "{second:?}");
        assert!(
            matches!(third, Err(UpstreamError::Busy { limit: 2, .. })),
            "{third:?}"
        );
    }
}
