//! Upstreams that are child processes.

use std::time::Duration;

use bytes::Bytes;
use sidecar::upstream::{
    AnswerKind, Connection, Era, ForwardedIdentity, UpstreamError, UpstreamRequest, Upstreams,
};
use tempfile::TempDir;

use crate::support::*;

const EXACT: &str = r#"{"z":9223372036854775813,"a":[1.0,1.00,1E2,-0],"é":"\u00e9","nested":{"y":1,"x":2}}"#;

fn is_alive(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.contains(") Z"),
        Err(_) => false,
    }
}

#[tokio::test]
async fn both_eras_are_found_out() {
    for (style, era, revision) in [
        ("legacy", Era::Legacy, "2025-06-18"),
        ("modern", Era::Modern, "2026-07-28"),
        ("fragile", Era::Legacy, "2025-06-18"),
    ] {
        let (upstreams, upstream) = connected(stdio(style, None)).await;
        let expected = Connection::Connected {
            era,
            revision: revision.to_owned(),
        };
        assert_eq!(upstream.state().connection, expected, "{style}");
        upstreams.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_is_silent_about_the_modern_request_is_legacy() {
    let mut silent = stdio("silent", None);
    silent.limits.probe_timeout = Duration::from_millis(100);
    let (_upstreams, upstream) = connected(silent).await;
    assert!(matches!(
        upstream.state().connection,
        Connection::Connected { era: Era::Legacy, .. }
    ));
}

#[tokio::test]
async fn a_modern_server_that_is_slow_to_start_is_modern() {
    let mut slow = stdio("modern", None);
    slow.limits.probe_timeout = Duration::ZERO;
    let (_upstreams, upstream) = connected(slow).await;
    assert!(matches!(
        upstream.state().connection,
        Connection::Connected { era: Era::Modern, .. }
    ));
}

#[tokio::test]
async fn all_pages_are_read_and_declarations_stay_raw() {
    let (_upstreams, upstream) = connected(stdio("legacy", None)).await;
    let catalogue = upstream.catalogue().borrow().clone();
    assert_eq!(catalogue.tools.len(), 9);
    assert!(
        catalogue
            .tools
            .iter()
            .all(|tool| tool.declared.get().ends_with(r#""vendorField":1.00}"#))
    );
    assert_eq!(upstream.state().tools, 9);
}

#[tokio::test]
async fn arguments_results_and_errors_pass_byte_for_byte() {
    for style in ["legacy", "modern"] {
        let (_upstreams, upstream) = connected(stdio(style, None)).await;
        let answer = upstream.call(request("echo", EXACT)).await.unwrap();
        assert_eq!(answer.kind, AnswerKind::Result);
        assert!(!answer.is_failure());
        let raw = std::str::from_utf8(&answer.raw).unwrap();
        assert!(
            raw.ends_with(&format!(r#"], "structuredContent":{EXACT}}}"#)),
            "{raw}"
        );
        assert!(text(&answer).contains(&format!(r#""arguments":{EXACT}"#)));

        let error = upstream.call(request("none", "{}")).await.unwrap();
        assert_eq!(error.kind, AnswerKind::Error);
        assert!(error.is_failure());
        assert_eq!(
            error.raw,
            r#"{"code":-32602,"message":"no tool none","data":{"big":9223372036854775813}}"#
        );
    }
}

#[tokio::test]
async fn absent_arguments_stay_absent_and_line_breaks_do_not_break_lines() {
    let (_upstreams, upstream) = connected(stdio("legacy", None)).await;
    let absent = UpstreamRequest {
        tool: "echo".into(),
        ..UpstreamRequest::default()
    };
    let answer = upstream.call(absent).await.unwrap();
    assert_eq!(text(&answer), r#"{"name":"echo"}"#);
    let answer = upstream
        .call(request("echo", "{\n  \"a\": 1\r\n}"))
        .await
        .unwrap();
    assert!(
        text(&answer).contains(r#""arguments":{   "a": 1  }"#),
        "{}",
        text(&answer)
    );
}

#[tokio::test]
async fn the_verified_identity_is_sent_only_where_it_is_wanted() {
    for wanted in [true, false] {
        let mut spec = stdio("legacy", None);
        spec.forward_identity = wanted;
        let (_upstreams, upstream) = connected(spec).await;
        let mut request = request("echo", "{}");
        request.meta = Some(Bytes::from_static(br#"{"art.flux7/agent":"forged","keep":1.0}"#));
        request.identity = Some(ForwardedIdentity {
            agent: "claude".to_owned(),
            user: Some("ada".to_owned()),
        });
        request.traceparent = Some("00-1-2-01".to_owned());
        let said = text(&upstream.call(request).await.unwrap());
        assert!(!said.contains("forged"), "{said}");
        assert!(
            said.contains(r#""_meta":{"keep":1.0,"traceparent":"00-1-2-01""#),
            "{said}"
        );
        assert_eq!(
            said.contains(r#""art.flux7/agent":"claude","art.flux7/user":"ada""#),
            wanted,
            "{said}"
        );
    }
}

#[tokio::test]
async fn progress_comes_in_order_before_the_answer() {
    for style in ["legacy", "modern"] {
        let (_upstreams, upstream) = connected(stdio(style, None)).await;
        let (progress, mut received) = progress();
        let mut request = request("progress", "{}");
        request.audience = Some(progress);
        let answer = upstream.call(request).await.unwrap();
        assert_eq!(text(&answer), "done");
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
async fn a_cancelled_call_is_heard_and_the_next_one_served() {
    for style in ["legacy", "modern"] {
        let folder = TempDir::new().unwrap();
        let events = folder.path().join("events");
        let (_upstreams, upstream) = connected(stdio(style, Some(&events))).await;
        let slow = request("slow", "{}");
        let cancel = slow.cancel.clone();
        let calling = upstream.call(slow);
        let cancelling = async {
            until(|| has_heard(&events, "call slow")).await;
            cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(calling, cancelling);
        assert!(
            matches!(outcome, Err(UpstreamError::Cancelled { .. })),
            "{outcome:?}"
        );
        until(|| has_heard(&events, "cancelled slow")).await;
        upstream.call(request("echo", "{}")).await.unwrap();
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_or_times_out_is_cancelled_as_well() {
    let folder = TempDir::new().unwrap();
    let events = folder.path().join("events");
    let (_upstreams, upstream) = connected(stdio("legacy", Some(&events))).await;
    let mut slow = request("slow", "{}");
    slow.timeout = Some(Duration::from_millis(50));
    let outcome = upstream.call(slow).await;
    assert!(
        matches!(outcome, Err(UpstreamError::Timeout { .. })),
        "{outcome:?}"
    );
    until(|| has_heard(&events, "cancelled slow")).await;
    std::fs::remove_file(&events).unwrap();
    tokio::select! {
        outcome = upstream.call(request("slow", "{}")) => panic!("{outcome:?}"),
        () = until(|| has_heard(&events, "call slow")) => {}
    }
    until(|| has_heard(&events, "cancelled slow")).await;
}

#[tokio::test]
async fn a_crash_fails_the_call_and_the_upstream_comes_back() {
    let folder = TempDir::new().unwrap();
    let events = folder.path().join("events");
    let (_upstreams, upstream) = connected(stdio("legacy", Some(&events))).await;
    let slow = upstream.call(request("slow", "{}"));
    let crash = async {
        until(|| has_heard(&events, "call slow")).await;
        upstream.call(request("crash", "{}")).await
    };
    for outcome in <[_; 2]>::from(tokio::join!(slow, crash)) {
        let error = outcome.unwrap_err();
        assert!(matches!(error, UpstreamError::Lost { .. }), "{error}");
        assert!(error.may_have_run());
    }
    assert!(upstream.state().last_error.is_some());
    until(|| upstream.state().status() == "connected").await;
    upstream.call(request("echo", "{}")).await.unwrap();
}

#[tokio::test]
async fn garbage_unknown_ids_and_duplicates_are_ignored() {
    let (_upstreams, upstream) = connected(stdio("legacy", None)).await;
    for _ in 0..20 {
        assert_eq!(
            text(&upstream.call(request("garbage", "{}")).await.unwrap()),
            "found"
        );
    }
}

#[tokio::test]
async fn a_ping_is_answered_and_what_was_not_offered_refused() {
    let (_upstreams, upstream) = connected(stdio("legacy", None)).await;
    let answer = upstream.call(request("ask", "{}")).await.unwrap();
    assert_eq!(
        text(&answer),
        r#"{} {"code":-32601,"message":"Method not found"}"#
    );
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    for style in ["legacy", "modern"] {
        let folder = TempDir::new().unwrap();
        let events = folder.path().join("events");
        let (_upstreams, upstream) = connected(stdio(style, Some(&events))).await;
        if style == "modern" {
            until(|| has_heard(&events, "subscriptions/listen")).await;
        }
        upstream.call(request("change", "{}")).await.unwrap();
        catalogue_where(&upstream, |catalogue| {
            catalogue.tools.iter().any(|tool| &*tool.name == "added")
        })
        .await;
    }
}

#[tokio::test]
async fn calls_share_the_child() {
    let (_upstreams, upstream) = connected(stdio("legacy", None)).await;
    let calls = (0..200).map(|number| {
        let upstream = upstream.clone();
        async move {
            let arguments = format!("{{\"n\":{number}}}");
            let answer = upstream.call(request("echo", &arguments)).await.unwrap();
            assert!(
                std::str::from_utf8(&answer.raw)
                    .unwrap()
                    .ends_with(&format!("\"structuredContent\":{arguments}}}"))
            );
        }
    });
    futures_util::future::join_all(calls).await;
}

#[tokio::test]
async fn nothing_is_left_behind() {
    let (upstreams, upstream) = connected(stdio("legacy", None)).await;
    let family = text(&upstream.call(request("family", "{}")).await.unwrap());
    assert!(family.split(' ').all(is_alive));
    drop(upstreams);
    until(|| !family.split(' ').any(is_alive)).await;
}

#[tokio::test]
async fn shutdown_waits_until_children_are_gone() {
    let (upstreams, upstream) = connected(stdio("legacy", None)).await;
    let family = text(&upstream.call(request("family", "{}")).await.unwrap());
    upstreams.shutdown().await;
    assert!(!family.split(' ').next().is_some_and(is_alive));
    until(|| !family.split(' ').any(is_alive)).await;
    let outcome = upstream.call(request("echo", "{}")).await;
    assert!(
        matches!(outcome, Err(UpstreamError::Unavailable { .. })),
        "{outcome:?}"
    );
}

#[test]
fn children_end_with_the_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (upstreams, family) = runtime.block_on(async {
        let (upstreams, upstream) = connected(stdio("legacy", None)).await;
        (
            upstreams,
            text(&upstream.call(request("family", "{}")).await.unwrap()),
        )
    });
    runtime.shutdown_background();
    let waiting = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    waiting.block_on(until(|| !family.split(' ').any(is_alive)));
    drop(upstreams);
}

#[tokio::test]
async fn a_program_that_is_not_there_is_retried_and_said() {
    let mut missing = stdio("legacy", None);
    missing.transport = sidecar::upstream::TransportSpec::Stdio(sidecar::upstream::StdioSpec {
        command: "/nowhere/mcp-server".to_owned(),
        ..Default::default()
    });
    missing.retry = Default::default();
    let upstreams = Upstreams::start(vec![missing]);
    until(|| upstreams.states()[0].last_error.is_some()).await;
    let state = &upstreams.states()[0];
    assert_eq!(state.status(), "retrying");
    assert!(
        state
            .last_error
            .as_deref()
            .unwrap()
            .contains("/nowhere/mcp-server")
    );
    until(|| matches!(upstreams.states()[0].connection, Connection::Retrying { next_try } if next_try > Duration::from_secs(3))).await;
    let error = upstreams
        .get("fixture")
        .unwrap()
        .call(request("echo", "{}"))
        .await
        .unwrap_err();
    assert!(!error.may_have_run());
}
