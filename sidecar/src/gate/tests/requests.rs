//! Resources, prompts and other requests, through the routes and the gate.

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::rig::{Rig, json_of, until};
use crate::upstream::Notice;

const RULES: &str = r#"
  - {tools: ["notes.resource:file:///*", "notes.prompt:greet", "notes.method:completion/*"], action: allow}
  - {tools: ["notes.method:resources/*", "notes.method:logging/setLevel", "notes.method:x/*"], action: allow}
"#;
const ALLOWED_READ: &str = r#"{"uri":"notes.file:///a.txt","later":1.00}"#;

async fn legacy(rig: &Rig, session: Option<&str>, method: &str, params: &str) -> Value {
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let headers: Vec<_> = session
        .map(|session| ("mcp-session-id", session))
        .into_iter()
        .collect();
    json_of(rig.mcp(&headers, &body).await).await
}

async fn modern(rig: &Rig, method: &str, name: Option<&str>, members: &str) -> Value {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let comma = if members.is_empty() { "" } else { "," };
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{members}{comma}{meta}}}}}"#);
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend(name.map(|name| ("mcp-name", name)));
    json_of(rig.mcp(&headers, &body).await).await
}

async fn initialize(rig: &Rig, agent: &str) -> (String, Value) {
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let credential = format!("Bearer agent:{agent}");
    let response = rig.mcp(&[("authorization", &credential)], body).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    (session, json_of(response).await)
}

fn names(answer: &Value, member: &str, key: &str) -> Vec<String> {
    let entries = answer["result"][member].as_array();
    let entries = entries.unwrap_or_else(|| panic!("{answer}"));
    entries
        .iter()
        .map(|entry| entry[key].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn lists_show_what_may_be_asked_for_in_both_eras() {
    let rig = Rig::start(RULES).await;
    for (method, member, key, expected) in [
        (
            "resources/list",
            "resources",
            "uri",
            vec!["notes.file:///a.txt", "notes.file:///b.txt"],
        ),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
            vec!["notes.file:///{name}"],
        ),
        ("prompts/list", "prompts", "name", vec!["notes.greet"]),
    ] {
        assert_eq!(
            names(&legacy(&rig, None, method, "{}").await, member, key),
            expected
        );
        let answer = modern(&rig, method, None, "").await;
        assert_eq!(names(&answer, member, key), expected);
        assert_eq!(answer["result"]["cacheScope"], "private", "{answer}");
    }
    let (_, initialized) = initialize(&rig, "a").await;
    let offered = &initialized["result"]["capabilities"];
    assert_eq!(
        offered["resources"],
        json!({"subscribe": true, "listChanged": true})
    );
    assert_eq!(offered["prompts"], json!({"listChanged": true}));
    assert!(offered["completions"].is_object() && offered["logging"].is_object());
    assert_eq!(rig.forwarded(), [""; 0]);
}

#[tokio::test]
async fn an_allowed_resource_is_read_under_its_own_uri_and_the_answer_keeps_its_bytes() {
    let rig = Rig::start(RULES).await;
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{ALLOWED_READ}}}"#);
    let response = rig.mcp(&[], &body).await;
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(
        text,
        r#"{"jsonrpc":"2.0","id":7,"result":{"n":1.00, "contents":[]}}"#
    );
    let answer = modern(
        &rig,
        "resources/read",
        Some("file:///a.txt"),
        r#""uri":"file:///a.txt""#,
    )
    .await;
    assert_eq!(answer["result"]["cacheScope"], "private", "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(
        rig.forwarded(),
        [
            r#"resources/read {"uri":"file:///a.txt","later":1.00}"#,
            r#"resources/read {"uri":"file:///a.txt"}"#
        ]
    );
    assert_eq!(rig.records(), 2);
}

#[tokio::test]
async fn what_no_rule_allows_is_denied_with_its_decision_and_recorded() {
    let rig = Rig::start(RULES).await;
    for (method, params, name) in [
        (
            "resources/read",
            r#"{"uri":"notes.secret://x"}"#,
            "notes.resource:secret://x",
        ),
        ("prompts/get", r#"{"name":"notes.hidden"}"#, "notes.prompt:hidden"),
        ("tasks/get", r#"{"taskId":"1"}"#, "notes.method:tasks/get"),
    ] {
        let answer = legacy(&rig, None, method, params).await;
        assert_eq!(answer["error"]["code"], -32010, "{answer}");
        let decision = &answer["error"]["data"]["dev.toolgate/decision"];
        assert_eq!(
            (&decision["tool"], &decision["reason"]),
            (&json!(name), &json!("no_rule"))
        );
    }
    assert_eq!(rig.forwarded(), [""; 0]);
    assert_eq!(rig.records(), 3);
}

#[tokio::test]
async fn a_uri_that_may_mean_another_one_is_refused() {
    let rig = Rig::start(RULES).await;
    for uri in ["notes.file:///x/../../etc/passwd", "notes.file:///x/%2e%2e/y"] {
        let answer = legacy(&rig, None, "resources/read", &json!({"uri": uri}).to_string()).await;
        let decision = &answer["error"]["data"]["dev.toolgate/decision"];
        assert_eq!(decision["reason"], "malformed", "{answer}");
    }
    assert_eq!(rig.forwarded(), [""; 0]);
    assert_eq!(rig.records(), 2);
}

#[tokio::test]
async fn prompts_completions_and_unknown_methods_go_to_their_upstream_under_its_names() {
    let rig = Rig::start(RULES).await;
    for (method, params) in [
        (
            "prompts/get",
            r#"{"name":"notes__greet","arguments":{"n":"1"},"Name":"hidden"}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"notes.greet"},"argument":{"name":"a","value":""}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"notes.file:///{name}"},"argument":{"name":"a","value":""}}"#,
        ),
        ("x/y", r#"{"z":1.0}"#),
    ] {
        let answer = legacy(&rig, None, method, params).await;
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(
        rig.forwarded(),
        [
            r#"prompts/get {"name":"greet","arguments":{"n":"1"}}"#,
            r#"completion/complete {"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}}"#,
            r#"completion/complete {"ref":{"type":"ref/resource","uri":"file:///{name}"},"argument":{"name":"a","value":""}}"#,
            r#"x/y {"z":1.0}"#,
        ]
    );
    assert_eq!(
        legacy(&rig, None, "sampling/createMessage", "{}").await["error"]["code"],
        -32601
    );
}

/// The next event of a stream with something in it.
async fn next(stream: &mut axum::body::BodyDataStream) -> String {
    loop {
        let piece = tokio::time::timeout(std::time::Duration::from_secs(10), stream.next()).await;
        let text = String::from_utf8(piece.unwrap().unwrap().unwrap().to_vec()).unwrap();
        let event = match text.split_once('\n') {
            Some((id, event)) if id.starts_with("id: ") => event.to_owned(),
            _ => text,
        };
        let says_something = event.lines().any(|line| line.starts_with("data: {"));
        if says_something {
            return event;
        }
    }
}

async fn stream_of(rig: &Rig, agent: &str, session: &str) -> axum::body::BodyDataStream {
    use tower::ServiceExt as _;
    let request = http::Request::get("/mcp")
        .header("host", "localhost")
        .header("authorization", format!("Bearer agent:{agent}"))
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session);
    let request = request.body(axum::body::Body::empty()).unwrap();
    let response = rig.routes.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    response.into_body().into_data_stream()
}

#[tokio::test]
async fn a_change_of_a_resource_is_told_to_the_session_that_subscribed_until_it_may_not() {
    let mut rig = Rig::start(RULES).await;
    let (mine, _) = initialize(&rig, "a").await;
    let (other, _) = initialize(&rig, "a").await;
    let params = r#"{"uri":"notes.file:///a.txt"}"#;
    assert!(legacy(&rig, Some(&mine), "resources/subscribe", params).await["result"].is_object());
    let refused = legacy(&rig, None, "resources/subscribe", params).await;
    assert!(refused["error"].is_object(), "{refused}");
    let (mut heard, mut unheard) = (
        stream_of(&rig, "a", &mine).await,
        stream_of(&rig, "a", &other).await,
    );
    let update = Notice::ResourceUpdated(Bytes::from_static(br#"{"uri":"file:///a.txt","n":1.0}"#));
    rig.notify(update.clone());
    assert_eq!(
        next(&mut heard).await,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\
         \"params\":{\"uri\":\"notes.file:///a.txt\",\"n\":1.0}}\n\n"
    );
    // The other session hears what is meant for it, and nothing before that.
    let level = legacy(&rig, Some(&other), "logging/setLevel", r#"{"level":"info"}"#).await;
    assert!(level["result"].is_object(), "{level}");
    rig.notify(Notice::Log(Bytes::from_static(br#"{"level":"debug","data":0}"#)));
    rig.notify(Notice::Log(Bytes::from_static(
        br#"{"level":"error","data":1.0}"#,
    )));
    assert!(
        next(&mut unheard)
            .await
            .contains(r#""params":{"level":"error","data":1.0}"#)
    );
    assert_eq!(
        rig.forwarded(),
        [
            r#"resources/subscribe {"uri":"file:///a.txt"}"#,
            r#"logging/setLevel {"level":"info"}"#
        ]
    );

    rig.edit("\n  - {tools: [\"notes.method:logging/setLevel\"], action: allow}\n")
        .await;
    assert!(
        next(&mut heard)
            .await
            .contains("notifications/resources/list_changed")
    );
    rig.notify(update);
    let level = legacy(&rig, Some(&mine), "logging/setLevel", r#"{"level":"error"}"#).await;
    assert!(level["result"].is_object(), "{level}");
    rig.notify(Notice::Log(Bytes::from_static(br#"{"level":"alert","data":2}"#)));
    let next = next(&mut heard).await;
    assert!(next.contains(r#""data":2"#), "{next}");
}

#[tokio::test]
async fn a_modern_stream_hears_of_the_resources_that_it_may_subscribe_to() {
    let rig = Rig::start(RULES).await;
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let filter = r#"{"resourceSubscriptions":["notes.file:///a.txt"],"promptsListChanged":true}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{{"notifications":{filter},{meta}}}}}"#
    );
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let response = rig.mcp(&headers, &body).await;
    let mut stream = response.into_body().into_data_stream();
    let acknowledged = next(&mut stream).await;
    assert!(
        acknowledged.contains(r#""resourceSubscriptions":["notes.file:///a.txt"]"#),
        "{acknowledged}"
    );
    assert!(
        acknowledged.contains(r#""promptsListChanged":true"#),
        "{acknowledged}"
    );
    rig.notify(Notice::ResourceUpdated(Bytes::from_static(
        br#"{"uri":"file:///a.txt"}"#,
    )));
    let update = next(&mut stream).await;
    assert!(
        update.contains(r#""io.modelcontextprotocol/subscriptionId":"s""#)
            && update.contains(r#""uri":"notes.file:///a.txt""#),
        "{update}"
    );
}

#[tokio::test]
async fn an_approval_is_asked_for_a_resource_as_for_a_tool() {
    let rig = Rig::start("\n  - {tools: [\"notes.resource:*\"], action: human_approval}\n").await;
    let reading = legacy(&rig, None, "resources/read", ALLOWED_READ);
    let resolving = rig.resolve(proto::v1::approval_state::Status::Denied);
    let (answer, _feed) = tokio::join!(reading, resolving);
    let decision = &answer["error"]["data"]["dev.toolgate/decision"];
    assert!(
        decision["reason"].as_str().unwrap().starts_with("approval_"),
        "{answer}"
    );
    until("the record is written", || rig.records() == 1).await;
    assert_eq!(rig.forwarded(), [""; 0]);
}
