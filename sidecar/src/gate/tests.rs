//! Calls through the routes and the gate, against a scripted control plane and a scripted upstream.

mod requests;
mod rig;

use std::time::Duration;

use proto::v1;
use proto::v1::approval_state::Status as Wire;
use serde_json::json;

use crate::control::tests::plane::{approval, revision};
use rig::{Rig, until};

const RULES: &str = r#"
  - {tools: ["notes.read", "notes.slow"], action: allow}
  - {tools: ["notes.write"], action: human_approval}
"#;

#[tokio::test]
async fn an_allowed_call_is_forwarded_byte_for_byte_and_recorded() {
    let rig = Rig::start(RULES).await;
    let (status, body) = rig
        .post("/tool/notes.read", r#"{"params":{"n":1e400, "é":"\u0041"}}"#)
        .await;
    assert_eq!(
        (status, &body["policy"], &body["policy_rule"]),
        (200, &json!("allow"), &json!("main"))
    );
    assert_eq!(rig.forwarded(), [r#"read {"n":1e400, "é":"\u0041"}"#]);
    assert_eq!(rig.records(), 1);
}

#[tokio::test]
async fn what_is_denied_unknown_or_unreadable_is_recorded_and_never_forwarded() {
    let rig = Rig::start(RULES).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64));
    for (tool, body, expected, reason) in [
        ("notes.delete", "{}", 403, "no_rule"),
        ("notes.read", r#"{"a":1,"\u0061":2}"#, 400, "duplicate_keys"),
        ("notes.read", deep.as_str(), 413, "too_large"),
        ("notes.read", "[1]", 400, "malformed"),
        ("notes.read", "{\"a\":", 400, "malformed"),
    ] {
        let (status, answer) = rig.post(&format!("/tool/{tool}"), body).await;
        assert_eq!((status, &answer["reason"]), (expected, &json!(reason)), "{body}");
    }
    assert_eq!(rig.post("/tool/elsewhere.read", "{}").await.0, 404);
    assert_eq!(rig.forwarded(), [""; 0]);
    assert_eq!(rig.records(), 6);
}

#[tokio::test]
async fn writes_stop_and_then_reads_when_the_lease_grows_old() {
    let rig = Rig::start("\n  - {tools: [\"*\"], action: allow}\n").await;
    rig.clock.advance(Duration::from_secs(181));
    let (status, body) = rig.post("/tool/notes.write", "{}").await;
    assert_eq!((status, &body["reason"]), (503, &json!("stale")));
    assert_eq!(rig.post("/tool/notes.read", "{}").await.0, 200);
    rig.clock.advance(Duration::from_secs(720));
    assert_eq!(rig.post("/tool/notes.read", "{\"again\":1}").await.0, 503);
}

#[tokio::test]
async fn the_same_call_too_often_is_a_loop() {
    let rig = Rig::start("\n  - {tools: [\"*\"], action: allow}\n").await;
    for _ in 0..3 {
        assert_eq!(rig.post("/tool/notes.write", "{}").await.0, 200);
    }
    let (status, body) = rig.post("/tool/notes.write", "{}").await;
    assert_eq!((status, &body["reason"]), (429, &json!("loop_detected")));
    assert_eq!(rig.post("/tool/notes.write", "{\"b\":1}").await.0, 200);
}

#[tokio::test]
async fn asking_about_the_same_call_too_often_is_only_warned_of() {
    let rig = Rig::start("\n  - {tools: [\"*\"], action: allow}\n").await;
    let ask = r#"{"tool":"Write","arguments":{"file_path":"/tmp/a","content":"b"}}"#;
    for _ in 0..3 {
        let (status, body) = rig.post("/decide", ask).await;
        assert_eq!((status, body.get("warnings")), (200, None), "{body}");
    }
    let (status, body) = rig.post("/decide", ask).await;
    assert_eq!(status, 200, "{body}");
    let warning = body["warnings"][0].as_str().unwrap();
    assert!(warning.contains("more than 3 times in ten seconds"), "{body}");
}

#[tokio::test]
async fn a_stop_ends_a_call_in_flight_and_denies_the_next() {
    let rig = Rig::start(RULES).await;
    let call = rig.post("/tool/notes.slow", "{}");
    let stop = async {
        until("the call is in flight", || rig.forwarded().len() == 1).await;
        rig.stop(v1::stop::Scope::Agent("a*".into())).await;
    };
    let ((status, body), ()) = tokio::join!(call, stop);
    assert_eq!(status, 403);
    assert!(
        body["detail"]
            .as_str()
            .unwrap()
            .contains("an operator has stopped it"),
        "{body}"
    );
    assert_eq!(rig.cancelled(), 1);
    let (status, body) = rig.post("/tool/notes.read", "{}").await;
    assert_eq!((status, &body["reason"]), (403, &json!("stopped")));
}

#[tokio::test]
async fn an_edit_that_denies_ends_a_call_in_flight() {
    let mut rig = Rig::start(RULES).await;
    let gate = rig.gate.clone();
    let routes = rig.routes.clone();
    let call = rig::post(routes, "/tool/notes.slow", "{}");
    let edit = async {
        until("the call is in flight", || {
            gate.calls_in_flight() == 1 && !rig.forwarded().is_empty()
        })
        .await;
        rig.edit("\n  - {tools: [\"*\"], action: deny}\n").await;
    };
    let ((status, body), ()) = tokio::join!(call, edit);
    assert_eq!(status, 403);
    assert!(
        body["detail"]
            .as_str()
            .unwrap()
            .contains("a policy denies it now"),
        "{body}"
    );
}

fn claimed(id: &str, number: u64) -> v1::claim_response::Outcome {
    v1::claim_response::Outcome::Claimed(v1::Claimed {
        revision: Some(revision(1, number)),
        stop_sequence: 0,
        approval: Some(approval(id, Wire::Approved, 8)),
    })
}

#[tokio::test]
async fn an_approved_call_is_claimed_and_runs() {
    let rig = Rig::start(RULES).await;
    rig.plane.script.claims.lock().unwrap().push_back(claimed("x", 1));
    let call = rig.post("/tool/notes.write", r#"{"text":"x"}"#);
    let ((status, body), _stream) = tokio::join!(call, rig.resolve(Wire::Approved));
    assert_eq!((status, &body["policy"]), (200, &json!("human_approval")));
    assert_eq!(rig.forwarded(), [r#"write {"text":"x"}"#]);
    assert_eq!(rig.records(), 1);
}

#[tokio::test]
async fn a_call_that_a_person_refuses_does_not_run() {
    let rig = Rig::start(RULES).await;
    let call = rig.post("/tool/notes.write", r#"{"text":"x"}"#);
    let ((status, body), _stream) = tokio::join!(call, rig.resolve(Wire::Denied));
    assert_eq!((status, &body["reason"]), (403, &json!("approval_denied")));
    assert_eq!(rig.forwarded(), [""; 0]);
    assert_eq!(rig.records(), 1);
}

#[tokio::test]
async fn an_approval_that_another_call_took_lets_nothing_run() {
    let rig = Rig::start(RULES).await;
    let refused = v1::claim_response::Outcome::Refused(v1::Refusal {
        code: "already_claimed".into(),
        message: "another call took it".into(),
    });
    rig.plane.script.claims.lock().unwrap().push_back(refused);
    let call = rig.post("/tool/notes.write", r#"{"text":"y"}"#);
    let ((status, body), _stream) = tokio::join!(call, rig.resolve(Wire::Approved));
    assert_eq!((status, &body["reason"]), (403, &json!("approval_consumed")));
    assert_eq!(rig.forwarded(), [""; 0]);
    assert_eq!(rig.records(), 1);
}

#[tokio::test]
async fn a_claimed_call_is_decided_again_at_the_claims_revision() {
    let mut rig = Rig::start(RULES).await;
    rig.plane.script.claims.lock().unwrap().push_back(claimed("x", 2));
    let call = rig::post(rig.routes.clone(), "/tool/notes.write", r#"{"text":"x"}"#);
    let plane = async {
        let stream = rig.resolve(Wire::Approved).await;
        rig.edit("\n  - {tools: [\"*\"], action: deny}\n").await;
        stream
    };
    let ((status, body), _stream) = tokio::join!(call, plane);
    assert_eq!((status, &body["reason"]), (403, &json!("policy")), "{body}");
    assert_eq!(rig.forwarded(), [""; 0]);
}

#[tokio::test]
async fn an_approved_call_of_a_tool_that_changed_meanwhile_does_not_run() {
    let rig = Rig::start(RULES).await;
    rig.plane.script.claims.lock().unwrap().push_back(claimed("x", 1));
    let call = rig::post(rig.routes.clone(), "/tool/notes.write", r#"{"text":"x"}"#);
    let plane = async {
        rig.declare(&[r#"{"name":"write","description":"another","inputSchema":{"type":"object"}}"#]);
        rig.resolve(Wire::Approved).await
    };
    let ((status, body), _stream) = tokio::join!(call, plane);
    assert_eq!((status, &body["reason"]), (403, &json!("pin")), "{body}");
    assert_eq!(rig.forwarded(), [""; 0]);
}

#[tokio::test]
async fn an_mcp_session_lists_calls_and_is_its_owners_alone() {
    let rig = Rig::start(RULES).await;
    let begin =
        json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}});
    let response = rig.mcp(&[], &begin.to_string()).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let listed = rig::json_of(rig.mcp(&[("mcp-session-id", &session)], list).await).await;
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["notes.delete", "notes.read", "notes.slow", "notes.write"]);
    let stranger = [
        ("mcp-session-id", session.as_str()),
        ("authorization", "Bearer agent:other"),
    ];
    assert_eq!(rig.mcp(&stranger, list).await.status(), 404);
    let denied = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"notes.delete"}}"#;
    let answer = rig::json_of(rig.mcp(&[("mcp-session-id", &session)], denied).await).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(
        answer["result"]["_meta"]["dev.toolgate/decision"]["reason"],
        "no_rule"
    );
}
