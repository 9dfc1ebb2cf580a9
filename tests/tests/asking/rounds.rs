//! `input_required`: passed on, and bridged in both directions.

use serde_json::{Value, json};
use tests::agent::{Agent, MODERN, answer};
use tests::up::{Up, folder};
use tests::wait;

use super::{ALLOW, before, call, connected, everything, fixture, recorded, says};

/// One round of a modern agent that can be asked everything.
async fn round(agent: &Agent, tool: &str, more: Value) -> Value {
    let mut params = json!({
        "name": tool, "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": everything(),
        },
    });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    let message = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params});
    let request = agent
        .request(reqwest::Method::POST, "/mcp")
        .header("MCP-Protocol-Version", MODERN)
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", tool)
        .json(&message);
    answer(request).await
}

/// The answers of the client called `name` to the questions of a round, and the state that goes with them.
fn next_round(name: &str, answered: &Value) -> Value {
    let result = &answered["result"];
    assert_eq!(result["resultType"], "input_required", "{answered}");
    let questions = result["inputRequests"].as_object().unwrap();
    let responses: serde_json::Map<String, Value> = questions
        .iter()
        .map(|(key, asked)| {
            let method = asked["method"].as_str().unwrap();
            (key.clone(), says(name, method, &asked["params"]))
        })
        .collect();
    json!({"inputResponses": responses, "requestState": result["requestState"]})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_agent_answers_a_legacy_server_in_rounds() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "legacy").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let (anna, bert) = (
        Agent::new(&up.url, "anna", None),
        Agent::new(&up.url, "bert", None),
    );
    let tool = "f.test_input_required_result_multi_round";
    let first = round(&anna, tool, json!({})).await;
    assert!(first.to_string().contains("Step 1"), "{first}");
    let stolen = round(&bert, tool, next_round("bert", &first)).await;
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    // Without the answers, it is asked again.
    let state = json!({"requestState": first["result"]["requestState"]});
    let again = round(&anna, tool, state).await;
    assert!(again.to_string().contains("Step 1"), "{again}");
    let second = round(&anna, tool, next_round("anna", &again)).await;
    assert!(second.to_string().contains("Step 2"), "{second}");
    let used_up = round(&anna, tool, next_round("anna", &again)).await;
    assert_eq!(used_up["error"]["code"], -32602, "{used_up}");
    let last = round(&anna, tool, next_round("anna", &second)).await;
    assert!(last.to_string().contains("anna likes"), "{last}");
    assert_eq!(last["result"]["resultType"], "complete", "{last}");

    // What the server asks at once is one round, under the names that it gave.
    let tool_of_several = "f.test_input_required_result_multiple_inputs";
    let asked = round(&anna, tool_of_several, json!({})).await;
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    for name in ["user_name", "greeting", "client_roots"] {
        assert!(questions.contains_key(name), "{asked}");
    }
    let answered = round(&anna, tool_of_several, next_round("anna", &asked)).await;
    assert!(answered.to_string().contains("1 roots"), "{answered}");
    let calls = recorded(&up, "anna", tool).await;
    assert_eq!(calls.len(), 1, "one call, whatever its rounds: {calls:?}");
    let questions = recorded(&up, "anna", "f.method:elicitation/create").await;
    assert!(questions.len() >= 2, "{questions:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_call_that_is_held_between_rounds() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "legacy").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = Agent::new(&up.url, "anna", None);
    let tool = "f.test_input_required_result_elicitation";
    let first = round(&anna, tool, json!({})).await;
    let operator = up.operator();
    let stop = json!({"scope": "agent:anna", "reason": "test", "by": "test"});
    operator.post("/stops?wait=applied", stop).await;
    let ended = round(&anna, tool, next_round("anna", &first)).await;
    assert!(
        ended["result"]["isError"] == true || ended.get("error").is_some(),
        "{ended}"
    );
    assert!(!ended.to_string().contains("Hello"), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_agent_is_asked_what_a_modern_server_needs() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "modern").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = connected(&up, "anna", everything()).await;
    let (asked, result) = call(
        &anna,
        "anna",
        "f.test_input_required_result_multi_round",
        json!({}),
    )
    .await;
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(result.contains("anna likes"), "{result}");
    let (asked, result) = call(
        &anna,
        "anna",
        "f.test_input_required_result_multiple_inputs",
        json!({}),
    )
    .await;
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert!(result.contains("1 roots"), "{result}");
    let deaf = connected(&up, "deaf", json!({})).await;
    let called = deaf
        .call("f.test_input_required_result_capabilities", json!({}))
        .await;
    assert_eq!(called.text(), "{}", "{}", called.answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_carries_through_the_rounds_of_its_call_and_no_further() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "modern").await;
    let rules = "      - {tools: [\"*\"], action: human_approval}\n";
    let up = Up::start(&before(&url, rules)).await;
    let anna = Agent::new(&up.url, "anna", None);
    let tool = "f.test_input_required_result_multi_round";
    let pending = round(&anna, tool, json!({})).await;
    assert_eq!(pending["result"]["isError"], true, "{pending}");
    let operator = up.operator();
    let approval = operator.pending(tool).await;
    let id = approval["id"].as_str().unwrap();
    operator
        .post(&format!("/approvals/{id}/approve"), json!({}))
        .await;
    let first = wait::until("the approved call runs", || async {
        let answered = round(&anna, tool, json!({})).await;
        (answered["result"]["resultType"] == "input_required").then_some(answered)
    })
    .await;
    let second = round(&anna, tool, next_round("anna", &first)).await;
    assert!(second.to_string().contains("Step 2"), "{second}");
    // Another call may not go on by it.
    let other = round(
        &anna,
        "f.test_input_required_result_elicitation",
        next_round("anna", &second),
    )
    .await;
    assert!(other["result"]["isError"] == true, "{other}");
    let used_up = round(&anna, tool, next_round("anna", &second)).await;
    assert_eq!(used_up["error"]["code"], -32602, "{used_up}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_server_that_asks_for_too_much_at_once_is_let_through_with_nothing() {
    let place = folder();
    let (_server, url) = fixture(place.path(), "modern").await;
    let up = Up::start(&before(&url, ALLOW)).await;
    let anna = Agent::new(&up.url, "anna", None);
    let flooded = round(&anna, "f.test_input_required_result_flood", json!({})).await;
    assert_eq!(flooded["result"]["isError"], true, "{flooded}");
    let text = flooded["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("more than 32 inputs at once"), "{text}");
    // The next one is asked as ever, and nothing was recorded of the flood.
    let asked = round(&anna, "f.test_input_required_result_elicitation", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let questions = recorded(&up, "anna", "f.method:elicitation/create").await;
    assert_eq!(questions.len(), 1, "{questions:?}");
}
