//! Sampling, elicitation and roots reach the agent session that caused them, and no other.

use serde_json::{Value, json};
use tests::agent::{Agent, LEGACY, messages};
use tests::up::{Up, folder};
use tests::wait;

use super::{call, connected, everything, http, over_http, recorded, says, stdio};

/// Every question of server-everything is put to the agent that called, and its answer comes back.
async fn asks_only_who_called(up: &Up) {
    let anna = connected(up, "anna", everything()).await;
    let bert = connected(up, "bert", everything()).await;
    let prompt = json!({"prompt": "the weather", "maxTokens": 10});
    let (of_anna, of_bert) = tokio::join!(
        call(&anna, "anna", "all.trigger-sampling-request", prompt.clone()),
        call(&bert, "bert", "all.trigger-sampling-request", prompt),
    );
    for (name, (asked, result)) in [("anna", of_anna), ("bert", of_bert)] {
        let questions: Vec<_> = asked.iter().map(|asked| &asked["method"]).collect();
        assert!(questions.contains(&&json!("sampling/createMessage")), "{asked:?}");
        assert!(result.contains(&format!("{name} has read")), "{result}");
    }
    let (asked, result) = call(&anna, "anna", "all.trigger-elicitation-request", json!({})).await;
    let form = asked
        .iter()
        .find(|asked| asked["method"] == "elicitation/create")
        .unwrap();
    assert!(
        form["params"]["requestedSchema"]["properties"].is_object(),
        "{form}"
    );
    assert!(result.contains("anna"), "{result}");
    let (_, result) = call(&bert, "bert", "all.get-roots-list", json!({})).await;
    assert!(
        result.contains("file:///home/bert") && !result.contains("anna"),
        "{result}"
    );
    let url =
        json!({"url": "https://example.com/consent", "message": "Please consent", "elicitationId": "e-1"});
    let (asked, result) = call(&bert, "bert", "all.trigger-url-elicitation", url).await;
    assert!(
        asked
            .iter()
            .any(|asked| asked["params"]["elicitationId"] == "e-1"),
        "{asked:?}"
    );
    assert!(result.contains("https://example.com/consent"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_asks_the_agent_that_called_and_each_question_is_recorded() {
    let place = folder();
    let (_server, port) = over_http(place.path()).await;
    let up = Up::start(&http(port, "")).await;
    asks_only_who_called(&up).await;
    let questions = recorded(&up, "anna", "all.method:sampling/createMessage").await;
    assert_eq!(questions[0]["outcome"], "ok", "{questions:?}");
    let calls = recorded(&up, "anna", "all.trigger-sampling-request").await;
    assert_eq!(questions[0]["trace_id"], calls[0]["trace_id"]);
    assert_eq!(questions[0]["session"], calls[0]["session"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_stdio_that_may_ask_has_a_process_for_each_session() {
    let up = Up::start(&stdio(", server_requests: [sampling, elicitation, roots]")).await;
    asks_only_who_called(&up).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_may_not_ask_is_not_offered_to_it() {
    let place = folder();
    let (_server, port) = over_http(place.path()).await;
    let up = Up::start(&http(port, ", server_requests: [roots]")).await;
    let anna = connected(&up, "anna", everything()).await;
    let tools = anna.tools().await;
    assert!(tools.contains(&"all.get-roots-list".to_owned()), "{tools:?}");
    assert!(
        !tools.contains(&"all.trigger-sampling-request".to_owned()),
        "{tools:?}"
    );
    let (_, result) = call(&anna, "anna", "all.get-roots-list", json!({})).await;
    assert!(result.contains("file:///home/anna"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_roots_reaches_the_server_of_the_session() {
    let place = folder();
    let (_server, port) = over_http(place.path()).await;
    let up = Up::start(&http(port, "")).await;
    let anna = connected(&up, "anna", everything()).await;
    let (_, result) = call(&anna, "first", "all.get-roots-list", json!({})).await;
    assert!(result.contains("file:///home/first"), "{result}");
    let mut stream = anna
        .request(reqwest::Method::GET, "/mcp")
        .header("MCP-Protocol-Version", LEGACY)
        .header("Mcp-Session-Id", anna.session().unwrap())
        .send()
        .await
        .unwrap();
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    anna.legacy(&changed).send().await.unwrap();
    let mut text = String::new();
    let hearing = async {
        loop {
            let chunk = stream.chunk().await.unwrap().expect("the stream ended");
            text.push_str(&String::from_utf8_lossy(&chunk));
            let found = messages(&text);
            if let Some(found) = found.iter().find(|message| message["method"] == "roots/list") {
                return found["id"].clone();
            }
        }
    };
    let id = tokio::time::timeout(wait::PATIENCE, hearing)
        .await
        .expect("the server asks again");
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": says("second", "roots/list", &Value::Null)});
    anna.legacy(&reply).send().await.unwrap();
    wait::until("the new roots", || async {
        let (_, result) = call(&anna, "second", "all.get-roots-list", json!({})).await;
        result.contains("file:///home/second").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_answers_a_question_with_a_task_that_its_server_follows() {
    let place = folder();
    let (_server, port) = over_http(place.path()).await;
    let up = Up::start(&http(port, "")).await;
    let mut capabilities = everything();
    capabilities["tasks"] =
        json!({"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}});
    let anna = connected(&up, "anna", capabilities).await;
    let task = |status: &str| {
        json!({
            "taskId": "of-anna", "status": status, "ttl": null, "pollInterval": 100,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        })
    };
    let params =
        json!({"name": "all.trigger-sampling-request-async", "arguments": {"prompt": "the weather"}});
    let (asked, answer) = anna
        .answering("tools/call", params, |method, params| match method {
            "sampling/createMessage" => {
                assert!(params["task"]["ttl"].is_number(), "{params}");
                json!({"task": task("working")})
            }
            "tasks/get" => task("completed"),
            "tasks/result" => says(
                "anna",
                "sampling/createMessage",
                &json!({"messages": [{"content": {"text": "it"}}]}),
            ),
            other => says("anna", other, params),
        })
        .await;
    let result = answer["result"].to_string();
    assert!(
        result.contains("[COMPLETED]") && result.contains("anna has read"),
        "{result}"
    );
    let methods: Vec<_> = asked
        .iter()
        .filter_map(|asked| asked["method"].as_str())
        .collect();
    assert!(
        methods.contains(&"tasks/get") && methods.contains(&"tasks/result"),
        "{methods:?}"
    );
    let polled = recorded(&up, "anna", "all.method:tasks/get").await;
    assert_eq!(polled[0]["outcome"], "ok", "{polled:?}");

    // A client that runs no tasks is asked nothing about any.
    let bert = connected(&up, "bert", everything()).await;
    let (asked, result) = call(
        &bert,
        "bert",
        "all.trigger-sampling-request-async",
        json!({"prompt": "the weather"}),
    )
    .await;
    assert!(
        !asked.iter().any(|asked| asked["method"] == "tasks/get"),
        "{asked:?} {result}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_belongs_to_the_session_that_began_it() {
    let place = folder();
    let (_server, port) = over_http(place.path()).await;
    let up = Up::start(&http(port, "")).await;
    let anna = connected(&up, "anna", everything()).await;
    let other = connected(&up, "anna", everything()).await;
    let ask = async |agent: &Agent, method: &str, params: Value| {
        let (_, answer) = agent
            .answering(method, params, |method, params| says("anna", method, params))
            .await;
        answer
    };
    let call = json!({
        "name": "all.simulate-research-query", "arguments": {"topic": "bread", "ambiguous": false}, "task": {"ttl": 60000},
    });
    let begun = ask(&anna, "tools/call", call).await;
    let id = begun["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{begun}");
    let state = ask(&anna, "tasks/get", json!({"taskId": id})).await;
    assert_eq!(state["result"]["taskId"], id, "{state}");
    let foreign = ask(&other, "tasks/get", json!({"taskId": id})).await;
    assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
    let result = ask(&anna, "tasks/result", json!({"taskId": id})).await;
    assert!(result.to_string().contains("bread"), "{result}");
}
