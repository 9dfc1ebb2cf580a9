//! Upstreams over Streamable HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sidecar::upstream::{AnswerKind, Connection, Era, TransportSpec, UpstreamError, Upstreams};

use crate::fixture::{Answers, HttpFixture, HttpOptions, Style};
use crate::support::*;

const EXACT: &str = r#"{"z":9223372036854775813,"a":[1.0,1.00,1E2,-0],"é":"\u00e9","nested":{"y":1,"x":2}}"#;

async fn server(style: Style, answers: Answers) -> HttpFixture {
    HttpFixture::start(HttpOptions {
        style,
        answers,
        redirect: None,
    })
    .await
}

fn heard(server: &HttpFixture, line: &str) -> bool {
    server
        .fixture
        .state
        .lock()
        .unwrap()
        .heard
        .iter()
        .any(|heard| heard == line)
}

fn count(server: &HttpFixture, line: &str) -> usize {
    server
        .fixture
        .state
        .lock()
        .unwrap()
        .heard
        .iter()
        .filter(|heard| *heard == line)
        .count()
}

#[tokio::test]
async fn both_eras_are_found_out() {
    for (style, era, revision) in [
        (Style::Legacy, Era::Legacy, "2025-06-18"),
        (Style::Modern, Era::Modern, "2026-07-28"),
    ] {
        let server = server(style, Answers::Json).await;
        let (_upstreams, upstream) = connected(http(&server.url())).await;
        assert_eq!(
            upstream.state().connection,
            Connection::Connected {
                era,
                revision: revision.to_owned()
            }
        );
        assert_eq!(upstream.state().transport, "streamable-http");
        // Whatever is mirrored into headers must be declared validly; a tool that does not is left out.
        assert_eq!(upstream.state().tools, 9);
        assert!(heard(&server, "header x-extra: configured"));
    }
}

#[tokio::test]
async fn arguments_results_and_errors_pass_byte_for_byte() {
    for style in [Style::Legacy, Style::Modern] {
        for answers in [Answers::Json, Answers::Events] {
            let server = server(style, answers).await;
            let (_upstreams, upstream) = connected(http(&server.url())).await;
            let answer = upstream.call(request("echo", EXACT)).await.unwrap();
            let raw = std::str::from_utf8(&answer.raw).unwrap();
            assert!(
                raw.ends_with(&format!(r#"], "structuredContent":{EXACT}}}"#)),
                "{raw}"
            );
            assert!(text(&answer).contains(&format!(r#""arguments":{EXACT}"#)));
            let error = upstream.call(request("none", "{}")).await.unwrap();
            assert_eq!(error.kind, AnswerKind::Error);
            assert_eq!(
                error.raw,
                r#"{"code":-32602,"message":"no tool none","data":{"big":9223372036854775813}}"#
            );
        }
    }
}

#[tokio::test]
async fn a_modern_call_mirrors_what_the_schema_names() {
    let server = server(Style::Modern, Answers::Json).await;
    let (_upstreams, upstream) = connected(http(&server.url())).await;
    upstream
        .call(request("echo", r#"{"region":"eu","other":1}"#))
        .await
        .unwrap();
    assert!(heard(&server, "header mcp-param-region: eu"));
    assert!(heard(&server, "header mcp-name: echo"));
    upstream
        .call(request("echo", r#"{"region":"世界"}"#))
        .await
        .unwrap();
    assert!(heard(&server, "header mcp-param-region: =?base64?5LiW55WM?="));
}

#[tokio::test]
async fn progress_comes_in_order_before_the_answer() {
    for style in [Style::Legacy, Style::Modern] {
        let server = server(style, Answers::Events).await;
        let (_upstreams, upstream) = connected(http(&server.url())).await;
        let (progress, mut received) = progress();
        let mut request = request("progress", "{}");
        request.meta = Some(Bytes::from_static(br#"{"progressToken":"theirs"}"#));
        request.audience = Some(progress);
        assert_eq!(text(&upstream.call(request).await.unwrap()), "done");
        for step in 1..=20 {
            let params = String::from_utf8(received.try_recv().unwrap().to_vec()).unwrap();
            assert!(
                params.ends_with(&format!(r#","progress":{step}.0,"total":20}}"#)),
                "{params}"
            );
        }
    }
}

#[tokio::test]
async fn a_legacy_stream_that_breaks_off_is_resumed() {
    let server = server(Style::Legacy, Answers::Broken).await;
    let (_upstreams, upstream) = connected(http(&server.url())).await;
    let (progress, mut received) = progress();
    let mut request = request("progress", "{}");
    request.audience = Some(progress);
    assert_eq!(text(&upstream.call(request).await.unwrap()), "done");
    let mut count = 0;
    while received.try_recv().is_ok() {
        count += 1;
    }
    assert_eq!(count, 20);
    assert!(heard(&server, "header last-event-id: event-2"));
}

#[tokio::test]
async fn a_cancelled_call_is_heard_and_the_next_one_served() {
    for (style, said) in [(Style::Legacy, "cancelled slow"), (Style::Modern, "closed slow")] {
        for answers in [Answers::Json, Answers::Events] {
            let server = server(style, answers).await;
            let (_upstreams, upstream) = connected(http(&server.url())).await;
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
            until(|| heard(&server, said) || heard(&server, "closed slow")).await;
            if style == Style::Legacy {
                until(|| heard(&server, "notifications/cancelled")).await;
            } else {
                assert!(!heard(&server, "notifications/cancelled"));
            }
            upstream.call(request("echo", "{}")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_forgotten_session_is_opened_anew_and_the_call_made_once() {
    let server = server(Style::Legacy, Answers::Json).await;
    let (_upstreams, upstream) = connected(http(&server.url())).await;
    assert!(heard(&server, "header mcp-session-id: session-1"));
    {
        let mut sessions = server.sessions.lock().unwrap();
        sessions.clear();
        sessions.insert("session-of-another".to_owned());
    }
    let calls = (0..10).map(|_| upstream.call(request("echo", "{}")));
    for outcome in futures_util::future::join_all(calls).await {
        outcome.unwrap();
    }
    assert!(heard(&server, "header mcp-session-id: session-2"));
    let calls = server
        .fixture
        .state
        .lock()
        .unwrap()
        .heard
        .iter()
        .filter(|heard| *heard == "call echo")
        .count();
    assert_eq!(calls, 10);
    assert_eq!(
        server.sessions.lock().unwrap().len(),
        2,
        "one new session for all calls"
    );
}

#[tokio::test]
async fn a_ping_is_answered_and_what_was_not_offered_refused() {
    let server = server(Style::Legacy, Answers::Events).await;
    let (_upstreams, upstream) = connected(http(&server.url())).await;
    let answer = upstream.call(request("ask", "{}")).await.unwrap();
    assert_eq!(
        text(&answer),
        r#"{} {"code":-32601,"message":"Method not found"}"#
    );
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    for (style, listening) in [(Style::Legacy, "GET"), (Style::Modern, "subscriptions/listen")] {
        let server = server(style, Answers::Json).await;
        let (_upstreams, upstream) = connected(http(&server.url())).await;
        until(|| heard(&server, listening) && !server.fixture.state.lock().unwrap().listeners.is_empty())
            .await;
        upstream.call(request("change", "{}")).await.unwrap();
        catalogue_where(&upstream, |catalogue| {
            catalogue.tools.iter().any(|tool| &*tool.name == "added")
        })
        .await;
    }
}

#[tokio::test]
async fn changes_do_not_reopen_the_stream_they_come_on() {
    for (style, listening) in [(Style::Legacy, "GET"), (Style::Modern, "subscriptions/listen")] {
        let server = server(style, Answers::Json).await;
        let (_upstreams, upstream) = connected(http(&server.url())).await;
        until(|| heard(&server, listening) && !server.fixture.state.lock().unwrap().listeners.is_empty())
            .await;
        let lists = || count(&server, "tools/list");
        for _ in 0..2 {
            let before = lists();
            for _ in 0..10 {
                upstream.call(request("change", "{}")).await.unwrap();
            }
            until(|| lists() > before).await;
        }
        assert_eq!(count(&server, listening), 1);
        // Six pages each; ten changes in a row are read once or twice.
        assert!(lists() <= 6 * 5, "{}", lists());
    }
}

#[tokio::test]
async fn an_upstream_is_reached_over_tls_when_its_certificate_is_trusted() {
    let folder = tempfile::TempDir::new().unwrap();
    let certificates = net::tls::self_signed(&["localhost"], Duration::from_secs(60)).unwrap();
    let (authority, files) = certificates.write(folder.path()).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(
        net::tls::ServerTls::load(files, net::clock::Clock::machine())
            .await
            .unwrap()
            .current(),
    );
    let options = HttpOptions {
        style: Style::Legacy,
        answers: Answers::Events,
        redirect: None,
    };
    let server = HttpFixture::start_with("127.0.0.1:0".parse().unwrap(), options, Some(acceptor)).await;
    let url = format!("https://localhost:{}/mcp", server.address.port());

    let mut trusting = http(&url);
    let TransportSpec::StreamableHttp(spec) = &mut trusting.transport else {
        panic!("{trusting:?}");
    };
    spec.tls = Some(Arc::new(net::tls::ClientTls::load(Some(&authority)).unwrap()));
    let (_upstreams, upstream) = connected(trusting).await;
    upstream.call(request("echo", "{}")).await.unwrap();

    let upstreams = Upstreams::start(vec![http(&url)]);
    until(|| {
        upstreams.states()[0]
            .last_error
            .as_deref()
            .is_some_and(|error| error.contains("certificate"))
    })
    .await;
}

#[tokio::test]
async fn an_upstream_that_goes_away_is_connected_to_again_and_its_era_found_out_anew() {
    let before = server(Style::Legacy, Answers::Json).await;
    let address = before.address;
    let (_upstreams, upstream) = connected(http(&before.url())).await;
    drop(before);
    let error = upstream.call(request("echo", "{}")).await.unwrap_err();
    assert!(
        matches!(
            error,
            UpstreamError::Unavailable { .. } | UpstreamError::Lost { .. }
        ),
        "{error}"
    );
    until(|| upstream.state().status() == "retrying").await;
    assert_eq!(upstream.catalogue().borrow().tools.len(), 9, "tools stay listed");
    let options = HttpOptions {
        style: Style::Modern,
        answers: Answers::Json,
        redirect: None,
    };
    let _after = HttpFixture::start_at(address, options).await;
    until(|| {
        matches!(
            upstream.state().connection,
            Connection::Connected { era: Era::Modern, .. }
        )
    })
    .await;
    upstream.call(request("echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_only() {
    let other = server(Style::Legacy, Answers::Json).await;
    let options = |redirect: String| HttpOptions {
        style: Style::Legacy,
        answers: Answers::Json,
        redirect: Some(redirect),
    };
    let same = HttpFixture::start(options("/mcp".to_owned())).await;
    let (_upstreams, upstream) = connected(http(&same.url().replace("/mcp", "/elsewhere"))).await;
    upstream.call(request("echo", "{}")).await.unwrap();

    let cross = HttpFixture::start(options(other.url())).await;
    let upstreams = Upstreams::start(vec![http(&cross.url().replace("/mcp", "/elsewhere"))]);
    until(|| {
        upstreams.states()[0]
            .last_error
            .as_deref()
            .is_some_and(|error| error.contains("another origin"))
    })
    .await;
    assert!(other.fixture.state.lock().unwrap().heard.is_empty());
}

#[tokio::test]
async fn a_session_is_said_goodbye_to() {
    let server = server(Style::Legacy, Answers::Json).await;
    let (upstreams, _upstream) = connected(http(&server.url())).await;
    upstreams.shutdown().await;
    assert!(heard(&server, "DELETE"));
}

#[tokio::test]
async fn a_url_that_cannot_be_used_is_not_retried() {
    let upstreams = Upstreams::start(vec![http("ftp://localhost/")]);
    until(|| upstreams.states()[0].status() == "failed").await;
    tokio::time::timeout(Duration::from_secs(5), upstreams.shutdown())
        .await
        .unwrap();
}

#[tokio::test]
async fn calls_run_side_by_side_and_connections_are_used_again() {
    for answers in [Answers::Json, Answers::Events] {
        let server = server(Style::Modern, answers).await;
        let (_upstreams, upstream) = connected(http(&server.url())).await;
        for _ in 0..5 {
            let calls = (0..50).map(|number| {
                let upstream = upstream.clone();
                async move {
                    let arguments = format!("{{\"n\":{number}}}");
                    let answer = upstream.call(request("echo", &arguments)).await.unwrap();
                    assert!(text(&answer).contains(&arguments));
                }
            });
            futures_util::future::join_all(calls).await;
        }
    }
}
