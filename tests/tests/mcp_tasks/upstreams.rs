//! Tasks that upstreams run, for agents of their own era and of the other.

use serde_json::{Value, json};
use tests::agent::{Agent, answer};
use tests::process::Process;
use tests::programs::conformance_fixture;
use tests::up::{Up, folder};
use tests::wait;

use super::{Client, UNKNOWN};

const RULES: &str = "
policies:
  - name: only
    agent: \"*\"
    rules:
      - {tools: [f.slow_compute], action: human_approval, condition: {field: label, operator: \"==\", value: asked}}
      - {tools: [\"f.*\", \"f.method:tasks/*\"], action: allow}
";

/// A fixture server of one era, and a sidecar in front of it.
struct Before {
    up: Up,
    _server: Process,
    _place: tempfile::TempDir,
}

async fn before(era: &str) -> Before {
    let place = folder();
    let (server, url) = conformance_fixture(place.path(), era).await;
    let yaml = format!("mcp_servers:\n  - {{name: f, transport: streamable-http, url: \"{url}\"}}\n{RULES}");
    Before {
        up: Up::start(&yaml).await,
        _server: server,
        _place: place,
    }
}

impl Before {
    fn modern(&self, name: &str) -> Client {
        Client {
            agent: Agent::new(&self.up.url, name, None),
            is_modern: true,
        }
    }

    async fn legacy(&self, name: &str) -> Client {
        let capabilities = json!({"elicitation": {"form": {}}});
        Client {
            agent: Agent::new(&self.up.url, name, None)
                .connect_with(capabilities)
                .await,
            is_modern: false,
        }
    }

    async fn approve(&self, agent: &str) {
        let operator = self.up.operator();
        let approval = wait::until("a pending approval", || async {
            let path = format!("/approvals?status=pending&agent={agent}");
            operator.get(&path).await.as_array()?.first().cloned()
        })
        .await;
        let path = format!("/approvals/{}/approve", approval["id"].as_str().unwrap());
        operator.post(&path, json!({})).await;
    }
}

fn text(outcome: &Value) -> &str {
    outcome["content"][0]["text"].as_str().unwrap_or_default()
}

/// A modern client that can be asked.
async fn begin_asking(client: &Client, tool: &str, arguments: Value) -> Value {
    let mut capabilities = super::with_tasks();
    capabilities["elicitation"] = json!({"form": {}});
    let params = json!({"name": tool, "arguments": arguments});
    let begun = answer(
        client
            .agent
            .modern_as(capabilities, "tools/call", Some(tool), params),
    )
    .await;
    client.task(&begun)
}

#[tokio::test]
async fn a_modern_agent_follows_a_modern_upstreams_task_across_a_restart_of_the_sidecar() {
    let mut before = before("modern").await;
    let client = before.modern("anna");
    let id = client.task(
        &client
            .begin("f.slow_compute", json!({"seconds": 60, "label": "x"}))
            .await,
    );
    let foreign = before.modern("bert").state(&id).await;
    assert_eq!(foreign["error"]["code"], UNKNOWN, "{foreign}");
    before.up.restart().await;
    let state = client.state(&id).await;
    assert_eq!(
        (&state["result"]["status"], &state["result"]["taskId"]),
        (&json!("working"), &id),
        "{state}"
    );
    client.ask("tasks/cancel", json!({"taskId": id})).await;
    client.until(&id, "cancelled").await;
}

#[tokio::test]
async fn an_agent_answers_what_an_upstreams_task_asks_whatever_the_upstreams_era() {
    for era in ["modern", "legacy"] {
        let before = before(era).await;
        let client = before.modern("anna");
        let id = begin_asking(&client, "f.confirm_delete", json!({"filename": "a.txt"})).await;
        let state = client.until(&id, "input_required").await;
        let asked = state["result"]["inputRequests"].as_object().unwrap().clone();
        let (key, request) = asked.iter().next().unwrap();
        assert_eq!(request["method"], "elicitation/create", "{era}: {state}");
        let responses = json!({key: {"action": "accept", "content": {"confirm": true}}});
        let told = client
            .ask("tasks/update", json!({"taskId": id, "inputResponses": responses}))
            .await;
        assert_eq!(told["result"]["resultType"], "complete", "{era}: {told}");
        client.until(&id, "completed").await;
        assert_eq!(text(&client.outcome(&id).await), "Deleted a.txt", "{era}");
        let query = "agent=anna&tool=f.method:elicitation/create";
        let questions = before.up.operator().records(query, 1).await;
        assert_eq!(
            (questions.len(), &questions[0]["outcome"]),
            (1, &json!("ok")),
            "{era}: {questions:?}"
        );
    }
}

#[tokio::test]
async fn a_tool_that_is_a_task_only_is_one_for_each_client_that_can_follow_it() {
    let before = before("legacy").await;
    let modern = before.modern("anna");
    let id = modern.task(&modern.begin("f.failing_job", json!({})).await);
    let state = modern.until(&id, "completed").await;
    assert_eq!(state["result"]["result"]["isError"], true, "{state}");
    assert!(
        state["result"]["result"]["_meta"]["io.modelcontextprotocol/related-task"].is_null(),
        "{state}"
    );
    let params = json!({"name": "f.failing_job", "arguments": {}});
    let refused = answer(modern.agent.modern("tools/call", Some("f.failing_job"), params)).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");

    let id = modern.task(
        &modern
            .begin("f.slow_compute", json!({"seconds": 60, "label": "x"}))
            .await,
    );
    modern.ask("tasks/cancel", json!({"taskId": id})).await;
    modern.until(&id, "cancelled").await;

    let legacy = before.legacy("bert").await;
    let id = legacy.task(&legacy.begin("f.failing_job", json!({})).await);
    legacy.until(&id, "failed").await;
    assert_eq!(text(&legacy.outcome(&id).await), "This job always fails");
}

#[tokio::test]
async fn a_legacy_agent_has_a_task_of_the_sidecar_before_a_modern_upstream() {
    let before = before("modern").await;
    let client = before.legacy("anna").await;
    let id = client.task(
        &client
            .begin("f.slow_compute", json!({"seconds": 0, "label": "x"}))
            .await,
    );
    client.until(&id, "completed").await;
    assert_eq!(text(&client.outcome(&id).await), "Computed x");
}

#[tokio::test]
async fn a_task_that_waited_for_a_person_is_its_upstreams_after_that_under_the_id_that_it_had() {
    for (era, is_modern) in [("modern", true), ("legacy", false)] {
        let before = before(era).await;
        let client = if is_modern {
            before.modern("anna")
        } else {
            before.legacy("anna").await
        };
        let begun = client
            .begin("f.slow_compute", json!({"seconds": 1, "label": "asked"}))
            .await;
        let id = client.task(&begun);
        assert_eq!(client.state(&id).await["result"]["status"], "working");
        before.approve("anna").await;
        let state = client.until(&id, "completed").await;
        assert_eq!(state["result"]["taskId"], id, "{era}: {state}");
        let outcome = client.outcome(&id).await;
        assert_eq!(text(&outcome), "Computed asked", "{era}: {outcome}");
        if !is_modern {
            assert_eq!(
                outcome["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
                id
            );
        }
        let about = before
            .up
            .operator()
            .records("agent=anna&tool=f.method:tasks/get", 1)
            .await;
        assert!(!about.is_empty(), "{era}: it is the upstream that was asked");
    }
}
