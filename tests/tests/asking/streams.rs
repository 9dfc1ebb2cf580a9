//! Streams that go on where they broke off, and several messages in one POST.

use serde_json::{Value, json};
use tests::agent::{Agent, LEGACY, messages};
use tests::up::{Up, folder};
use tests::wait;

use super::{ALLOW, POLICY, before, connected, everything, fixture, says};

/// Reads a stream until an event holds `wanted`: its id, and the message.
async fn event_with(response: &mut reqwest::Response, wanted: &str) -> (String, Value) {
    let mut text = String::new();
    let reading = async {
        loop {
            let chunk = response.chunk().await.unwrap().expect("the stream ended");
            text.push_str(&String::from_utf8_lossy(&chunk));
            let found = text
                .split_inclusive("\n\n")
                .find(|event| event.contains(wanted) && event.ends_with("\n\n"));
            if let Some(event) = found {
                let id = event.lines().find_map(|line| line.strip_prefix("id: "));
                let message = messages(event).pop().unwrap();
                return (id.unwrap().to_owned(), message);
            }
        }
    };
    tokio::time::timeout(wait::PATIENCE, reading)
        .await
        .unwrap_or_else(|_| panic!("{wanted:?} never came"))
}

fn resume(agent: &Agent, last: &str) -> reqwest::RequestBuilder {
    agent
        .request(reqwest::Method::GET, "/mcp")
        .header("MCP-Protocol-Version", LEGACY)
        .header("Mcp-Session-Id", agent.session().unwrap())
        .header("Last-Event-ID", last)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_broke_off_goes_on_behind_its_last_event() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "legacy").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = connected(&up, "anna", everything()).await;
    let params = json!({"name": "f.test_elicitation", "arguments": {"message": "Who?"}});
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let mut response = anna.legacy(&message).send().await.unwrap();
    let (id, question) = event_with(&mut response, "elicitation/create").await;
    drop(response);
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("anna", "elicitation/create", &Value::Null)});
    assert_eq!(anna.legacy(&reply).send().await.unwrap().status(), 202);
    let mut resumed = resume(&anna, &id).send().await.unwrap();
    let (last, answer) = event_with(&mut resumed, "\"result\"").await;
    assert_eq!(answer["id"], "a", "{answer}");
    assert!(answer.to_string().contains("anna"), "{answer}");
    // Again from the same place, as long as it is kept; and nothing of another session.
    let mut again = resume(&anna, &id).send().await.unwrap();
    assert_eq!(event_with(&mut again, "\"result\"").await, (last, answer));
    let other = connected(&up, "anna", everything()).await;
    for (agent, event) in [(&other, id.as_str()), (&anna, "9-1"), (&anna, "x")] {
        let refused = resume(agent, event).send().await.unwrap();
        assert_eq!(refused.status(), 400, "{event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_for_what_there_is_not_takes_a_stream_from_nobody() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "legacy").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = connected(&up, "anna", everything()).await;
    let params = json!({"name": "f.test_elicitation", "arguments": {"message": "Who?"}});
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    let mut reader = anna.legacy(&message).send().await.unwrap();
    let (id, question) = event_with(&mut reader, "elicitation/create").await;
    let (stream, _) = id.split_once('-').unwrap();
    let refused = resume(&anna, &format!("{stream}-999")).send().await.unwrap();
    assert_eq!(refused.status(), 400);
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": says("anna", "elicitation/create", &Value::Null)});
    assert_eq!(anna.legacy(&reply).send().await.unwrap().status(), 202);
    let (_, answer) = event_with(&mut reader, "\"result\"").await;
    assert_eq!(answer["id"], "a", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_closes_a_stream_closes_the_agents_and_the_call_goes_on_without_its_reader() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "legacy").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = connected(&up, "anna", json!({})).await;
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "f.test_reconnection", "arguments": {}}});
    let closed = anna.legacy(&message).send().await.unwrap();
    assert_eq!(closed.headers()["content-type"], "text/event-stream");
    let text = closed.text().await.unwrap();
    assert!(
        messages(&text).is_empty(),
        "nothing but when to come back: {text}"
    );
    // The server's own time, not the sidecar's.
    assert!(text.contains("\nretry: 200\n"), "{text}");
    let last = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap();
    let mut resumed = resume(&anna, last).send().await.unwrap();
    let (_, answer) = event_with(&mut resumed, "\"result\"").await;
    assert_eq!(answer["id"], "a", "{answer}");
    assert!(
        answer.to_string().contains("after the stream was closed"),
        "{answer}"
    );
}

/// Before 2025-11-25 no stream is closed before its answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_an_earlier_revision_waits_for_its_answer() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "legacy").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = Agent::new(&up.url, "anna", None).connect_as("2025-06-18").await;
    let called = anna.call("f.test_reconnection", json!({})).await;
    assert!(
        called.text().contains("after the stream was closed"),
        "{}",
        called.answer
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn several_messages_in_one_post_are_for_one_revision_only() {
    let up = Up::start(POLICY).await;
    let old = "2025-03-26";
    let agent = Agent::new(&up.url, "anna", None);
    let post = |version: &str, body: Value| {
        agent
            .request(reqwest::Method::POST, "/mcp")
            .header("MCP-Protocol-Version", version)
            .json(&body)
    };
    let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answered: Value = post(old, json!([ping(1), told, ping(2)]))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let expected =
        json!([{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}]);
    assert_eq!(answered, expected);
    let told_only = post(old, json!([told])).send().await.unwrap();
    assert_eq!(told_only.status(), 202);
    for (version, body) in [
        (LEGACY, json!([ping(1)])),
        (old, json!([])),
        (old, json!([[ping(1)]])),
    ] {
        assert_eq!(
            post(version, body.clone()).send().await.unwrap().status(),
            400,
            "{body}"
        );
    }
}
