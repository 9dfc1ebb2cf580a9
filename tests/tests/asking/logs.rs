//! Log messages come to who asked for them, in either era and between the two, and to nobody else.

use serde_json::{Value, json};
use tests::agent::{Agent, MODERN, answer, messages};
use tests::up::{Up, folder};

use super::{ALLOW, before, connected, fixture};

const TOOL: &str = "f.test_tool_with_logging";

/// The log messages on the stream of a modern call, before its answer.
async fn logged(agent: &Agent, level: Option<&str>) -> Vec<Value> {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(level) = level {
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
    }
    let params = json!({"name": TOOL, "arguments": {"wanted": level}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params});
    let request = agent
        .request(reqwest::Method::POST, "/mcp")
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", TOOL)
        .json(&message);
    before_the_answer(&request.send().await.unwrap().text().await.unwrap())
}

fn before_the_answer(text: &str) -> Vec<Value> {
    let mut told = messages(text);
    let last = told.pop().unwrap_or_default();
    assert!(last.to_string().contains("executed successfully"), "{text}");
    assert!(
        told.iter()
            .all(|message| message["method"] == "notifications/message"),
        "{told:?}"
    );
    told.into_iter()
        .map(|message| message["params"].clone())
        .collect()
}

async fn set_level(agent: &Agent, level: &str) -> Value {
    let message =
        json!({"jsonrpc": "2.0", "id": 5, "method": "logging/setLevel", "params": {"level": level}});
    agent.legacy(&message).send().await.unwrap().json().await.unwrap()
}

async fn logged_in_session(agent: &Agent) -> Vec<Value> {
    let message =
        json!({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": TOOL, "arguments": {}}});
    before_the_answer(&agent.legacy(&message).send().await.unwrap().text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_level_of_a_legacy_session_goes_with_its_requests_to_a_modern_server() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "modern").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = connected(&up, "anna", json!({})).await;
    let other = connected(&up, "anna", json!({})).await;
    assert_eq!(set_level(&anna, "info").await["result"], json!({}));
    let told = logged_in_session(&anna).await;
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(
        told[0],
        json!({"level": "info", "logger": "fixture", "data": "Tool execution started"})
    );
    assert!(logged_in_session(&other).await.is_empty());
    assert_eq!(set_level(&anna, "error").await["result"], json!({}));
    assert!(logged_in_session(&anna).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_request_that_asks_for_log_messages_has_them_from_a_server_of_either_era() {
    for era in ["modern", "legacy"] {
        let place = folder();
        let (_server, url) = fixture(place.path(), era).await;
        let up = Up::start(&before(&url, ALLOW)).await;
        let (anna, bert) = (
            Agent::new(&up.url, "anna", None),
            Agent::new(&up.url, "bert", None),
        );
        assert!(logged(&anna, None).await.is_empty(), "{era}");
        assert!(logged(&anna, Some("warning")).await.is_empty(), "{era}");
        let (told, meanwhile) = tokio::join!(logged(&anna, Some("debug")), logged(&bert, None));
        assert_eq!(told.len(), 3, "{era}: {told:?}");
        assert!(meanwhile.is_empty(), "{era}: {meanwhile:?}");
        assert!(logged(&anna, Some("error")).await.is_empty(), "{era}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_set_a_level_hears_no_log_messages() {
    let rules = "      - {tools: [\"f.method:*\"], action: deny}\n      - {tools: [\"*\"], action: allow}\n";
    for era in ["modern", "legacy"] {
        let place = folder();
        let (_server, url) = fixture(place.path(), era).await;
        let up = Up::start(&before(&url, rules)).await;
        let anna = Agent::new(&up.url, "anna", None);
        assert!(logged(&anna, Some("debug")).await.is_empty(), "{era}");
        let session = connected(&up, "anna", json!({})).await;
        assert!(set_level(&session, "debug").await.get("error").is_some(), "{era}");
        assert!(logged_in_session(&session).await.is_empty(), "{era}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_that_there_is_not_is_refused() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "modern").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = Agent::new(&up.url, "anna", None);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "loud",
    });
    let message = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {"_meta": meta}});
    let request = anna
        .request(reqwest::Method::POST, "/mcp")
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", "tools/list")
        .json(&message);
    let refused = answer(request).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let session = connected(&up, "anna", json!({})).await;
    assert_eq!(set_level(&session, "loud").await["error"]["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_there_is_not_has_the_code_of_the_agents_era() {
    for era in ["legacy", "modern"] {
        let place = folder();
        let (_server, url) = fixture(place.path(), era).await;
        let up = Up::start(&before(&url, ALLOW)).await;
        let uri = "f.test://nowhere";
        let asked = json!({"uri": uri});
        let anna = Agent::new(&up.url, "anna", None);
        let modern = answer(anna.modern("resources/read", Some(uri), asked.clone())).await;
        let session = connected(&up, "anna", json!({})).await;
        let message = json!({"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": asked});
        let legacy = answer(session.legacy(&message)).await;
        assert_eq!(modern["error"]["code"], -32602, "{era}: {modern}");
        assert_eq!(legacy["error"]["code"], -32002, "{era}: {legacy}");
        let across = if era == "legacy" { &modern } else { &legacy };
        assert_eq!(across["error"]["data"]["uri"], "test://nowhere", "{across}");
        assert_eq!(across["error"]["message"], "Resource not found", "{across}");
    }
}
