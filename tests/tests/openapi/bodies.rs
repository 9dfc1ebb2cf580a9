//! Bodies, answers, and arguments that are not accepted.

use serde_json::{Value, json};
use tests::agent::Agent;
use tests::rest::Rest;
use tests::up::Up;

use super::{POLICIES, documented, service};

#[tokio::test(flavor = "multi_thread")]
async fn bodies_answers_and_mistakes_come_and_go_as_the_document_says() {
    let rest = Rest::start(&documented()).await;
    let up = Up::start(&service(&rest, POLICIES)).await;
    let agent = up.agent("ada").await;
    bodies_arrive(&rest, &agent).await;
    answers_come_back(&agent).await;
    mistakes_are_told_and_not_sent(&rest, &agent).await;
    let records = up.operator().records("tool=create_item", 1).await;
    assert_eq!(records[0]["tool"], "create_item");
    let log = std::fs::read_to_string(up.folder.path().join("log")).unwrap();
    assert!(!log.contains("hunter2"), "a secret is in the log");
}

async fn bodies_arrive(rest: &Rest, agent: &Agent) {
    let created = agent
        .call(
            "create_item",
            json!({"name": "a", "amount": 19.99, "parent": {"name": "p"}}),
        )
        .await;
    assert!(created.is_ok(), "{}", created.answer);
    let asked = rest.last();
    assert_eq!(
        (asked.method.as_str(), asked.header("content-type")),
        ("POST", Some("application/json"))
    );
    let sent: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(
        sent,
        json!({"name": "a", "amount": 19.99, "parent": {"name": "p"}})
    );
    let trace = asked.header("traceparent").unwrap_or_default();
    assert!(trace.starts_with("00-") && trace.len() == 55, "{trace}");
    assert_eq!(created.answer["result"]["structuredContent"]["ok"], true);
    agent.call("send_form", json!({"a": "x&y", "b": [1, 2]})).await;
    assert_eq!(rest.last().text(), "a=x%26y&b=1&b=2");
    agent
        .call("send_parts", json!({"note": "hi", "file": "aGVsbG8="}))
        .await;
    let parts = rest.last();
    assert!(
        parts
            .header("content-type")
            .unwrap()
            .starts_with("multipart/form-data; boundary=")
    );
    assert!(
        parts.text().contains("name=\"note\"\r\n\r\nhi\r\n") && parts.text().contains("\r\n\r\nhello\r\n")
    );
    let (status, _) = agent.rest("get_item", json!({"id": "a%b"})).await;
    assert_eq!((status, rest.last().target.as_str()), (200, "/items/a%25b"));
}

async fn answers_come_back(agent: &Agent) {
    let missing = agent.call("get_missing", json!({})).await;
    assert_eq!(missing.answer["result"]["isError"], true);
    assert_eq!(missing.text(), "HTTP 404 Not Found");
    assert_eq!(
        missing.answer["result"]["content"][1]["text"],
        r#"{"error":"no such thing"}"#
    );
    let broken = agent.call_modern("post_broken", json!({})).await;
    assert_eq!(broken.answer["result"]["isError"], true);
    let image = agent.call("get_image", json!({})).await;
    assert_eq!(image.answer["result"]["content"][0]["mimeType"], "image/png");
    let huge = agent.call("get_huge", json!({})).await;
    assert!(
        huge.answer.to_string().contains("is larger than"),
        "{}",
        huge.answer
    );
}

async fn mistakes_are_told_and_not_sent(rest: &Rest, agent: &Agent) {
    let before = rest.asked().len();
    for (tool, arguments, says) in [
        (
            "create_item",
            json!({"name": "too long a name"}),
            "/name: expected a string of at most 8 characters, found a string of 15 characters",
        ),
        (
            "create_item",
            json!({"amount": 1}),
            "expected the property \"name\", which is missing",
        ),
        (
            "create_item",
            json!({"name": "a", "amount": 0.001}),
            "/amount: expected a multiple of 0.01",
        ),
        (
            "create_item",
            json!({"name": "a", "status": "new"}),
            "/status: expected one of \"open\", \"done\"",
        ),
        (
            "create_item",
            json!({"name": "a", "id": 7}),
            "/id: expected one of the properties",
        ),
        (
            "create_item",
            json!({"name": "a", "parent": {"name": 1}}),
            "/parent/name: expected string, found a number",
        ),
        (
            "get_item",
            json!({}),
            "expected the property \"id\", which is missing",
        ),
        (
            "get_item",
            json!({"id": ".."}),
            "/id: \".\" and \"..\" would change the path",
        ),
        ("get_item", json!({"id": "a/../b"}), "/id: a slash or backslash"),
        (
            "get_item",
            json!({"id": "..%2f..%2fadmin"}),
            "/id: a slash or backslash, encoded or not",
        ),
        (
            "get_item",
            json!({"id": "a\u{0}b"}),
            "control characters such as NUL",
        ),
        (
            "get_item",
            json!({"id": "a\r\nHost: evil"}),
            "control characters such as NUL",
        ),
        (
            "get_item",
            json!({"id": ""}),
            "an empty text would change the path",
        ),
        (
            "send_parts",
            json!({"file": "not base64!"}),
            "/file: expected base64",
        ),
    ] {
        let called = agent.call(tool, arguments.clone()).await;
        assert!(!called.is_ok(), "{tool} {arguments}: {}", called.answer);
        assert!(
            called.answer.to_string().replace("\\\"", "\"").contains(says),
            "{tool} {arguments}: {}",
            called.answer
        );
        let (status, _) = agent.rest(tool, arguments).await;
        assert_eq!(status, 400);
    }
    assert_eq!(rest.asked().len(), before, "nothing of it was sent");
}
