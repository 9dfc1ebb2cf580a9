//! Upstreams over the transport of revision 2024-11-05.

use std::time::Duration;

use bytes::Bytes;
use sidecar::upstream::{Connection, Era, UpstreamError, Upstreams};

use crate::fixture::{Answers, HttpFixture, HttpOptions, SseFixture, SseOptions, Style};
use crate::support::*;

const EXACT: &str = r#"{"z":9223372036854775813,"a":[1.0,1.00,1E2,-0],"é":"\u00e9"}"#;

async fn server() -> SseFixture {
    SseFixture::start(SseOptions::default()).await
}

fn heard(server: &SseFixture, line: &str) -> bool {
    let state = server.fixture.state.lock().unwrap();
    state.heard.iter().any(|heard| heard == line)
}

async fn last_error_says(upstreams: &Upstreams, text: &str) {
    until(|| {
        let error = upstreams.states().remove(0).last_error;
        error.is_some_and(|error| error.contains(text))
    })
    .await;
}

#[tokio::test]
async fn all_pages_are_read_and_calls_pass_byte_for_byte() {
    let server = server().await;
    let (_upstreams, upstream) = connected(sse(&server.url())).await;
    let state = upstream.state();
    assert_eq!((state.transport, state.tools), ("sse", 9));
    assert!(matches!(
        state.connection,
        Connection::Connected { era: Era::Legacy, .. }
    ));
    assert!(!heard(&server, "server/discover"), "it cannot be modern");
    for line in ["GET x-extra: configured", "POST x-extra: configured"] {
        assert!(heard(&server, line), "{line}");
    }
    let answer = upstream.call(request("echo", EXACT)).await.unwrap();
    let raw = std::str::from_utf8(&answer.raw).unwrap();
    assert!(
        raw.ends_with(&format!(r#"], "structuredContent":{EXACT}}}"#)),
        "{raw}"
    );
}

#[tokio::test]
async fn progress_changes_and_requests_come_on_the_stream() {
    let server = server().await;
    let (_upstreams, upstream) = connected(sse(&server.url())).await;
    let (progress, mut received) = progress();
    let mut asked = request("progress", "{}");
    asked.meta = Some(Bytes::from_static(br#"{"progressToken":"theirs"}"#));
    asked.audience = Some(progress);
    assert_eq!(text(&upstream.call(asked).await.unwrap()), "done");
    for step in 1..=20 {
        let params = String::from_utf8(received.try_recv().unwrap().to_vec()).unwrap();
        assert!(
            params.ends_with(&format!(r#","progress":{step}.0,"total":20}}"#)),
            "{params}"
        );
    }
    let answer = upstream.call(request("ask", "{}")).await.unwrap();
    assert!(text(&answer).starts_with("{} "), "a ping is answered");
    upstream.call(request("change", "{}")).await.unwrap();
    catalogue_where(&upstream, |catalogue| {
        catalogue.tools.iter().any(|tool| &*tool.name == "added")
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_is_heard_and_the_next_one_served() {
    let server = server().await;
    let (_upstreams, upstream) = connected(sse(&server.url())).await;
    let slow = request("slow", "{}");
    let cancel = slow.cancel.clone();
    let cancelling = async {
        until(|| heard(&server, "call slow")).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(upstream.call(slow), cancelling);
    assert!(
        matches!(outcome, Err(UpstreamError::Cancelled { .. })),
        "{outcome:?}"
    );
    until(|| heard(&server, "cancelled slow")).await;
    upstream.call(request("echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_ends_fails_its_calls_and_is_opened_again() {
    let server = server().await;
    let (_upstreams, upstream) = connected(sse(&server.url())).await;
    let ending = async {
        until(|| heard(&server, "call slow")).await;
        server.end_streams();
    };
    let (outcome, ()) = tokio::join!(upstream.call(request("slow", "{}")), ending);
    assert!(matches!(outcome, Err(UpstreamError::Lost { .. })), "{outcome:?}");
    until(|| server.opened().len() > 1 && upstream.state().status() == "connected").await;
    upstream.call(request("echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn a_server_that_forgot_the_stream_is_connected_to_again() {
    let server = server().await;
    let (_upstreams, upstream) = connected(sse(&server.url())).await;
    server.forget_streams();
    let error = upstream.call(request("echo", "{}")).await.unwrap_err();
    assert!(
        error.to_string().contains("no longer knows our session"),
        "{error}"
    );
    until(|| server.opened().len() > 1 && upstream.state().status() == "connected").await;
    upstream.call(request("echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_says_its_address_and_ends_is_opened_ever_more_slowly() {
    let server = SseFixture::start(SseOptions {
        ends: true,
        ..SseOptions::default()
    })
    .await;
    let upstreams = Upstreams::start(vec![sse(&server.url())]);
    until(|| server.opened().len() >= 5).await;
    last_error_says(&upstreams, "closed its event stream").await;
    let opened = server.opened();
    // 50, 100, 200 and 400 ms lie between them.
    assert!(opened[4] - opened[0] >= Duration::from_millis(700), "{opened:?}");
}

#[tokio::test]
async fn an_address_or_a_redirect_of_another_origin_is_refused() {
    let other = server().await;
    let server = SseFixture::start(SseOptions {
        address: format!("http://{}/deep/messages?stream=1", other.address),
        ends: false,
    })
    .await;
    let upstreams = Upstreams::start(vec![sse(&server.url())]);
    last_error_says(&upstreams, "no path of its own origin").await;

    let redirecting = HttpFixture::start(HttpOptions {
        style: Style::Legacy,
        answers: Answers::Json,
        redirect: Some(other.url()),
    })
    .await;
    let url = redirecting.url().replace("/mcp", "/elsewhere");
    let redirected = Upstreams::start(vec![sse(&url)]);
    last_error_says(&redirected, "another origin").await;
    assert!(other.opened().is_empty() && other.fixture.state.lock().unwrap().heard.is_empty());
}

#[tokio::test]
async fn a_page_that_is_no_event_stream_says_so() {
    let server = HttpFixture::start(HttpOptions {
        style: Style::Modern,
        answers: Answers::Json,
        redirect: None,
    })
    .await;
    let upstreams = Upstreams::start(vec![sse(&server.url())]);
    last_error_says(&upstreams, "HTTP status 405; check its url").await;
}
