//! What is offered, how much of it, and what is left after a restart.

use serde_json::{Value, json};
use tests::agent::{Agent, answer};
use tests::fleet::Fleet;
use tests::wait;

use super::{Client, UNKNOWN, count, governed, pending, resolve, with_tasks};

#[tokio::test]
async fn tasks_are_offered_by_revision_and_tools_that_can_wait_say_so() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    let client = Client::legacy(&sidecar, "a-legacy").await;
    let supports = async |client: &Client| {
        let listed = client.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let named = |tool: &Value| {
            (
                tool["name"].as_str().unwrap().to_owned(),
                tool["execution"].clone(),
            )
        };
        tools.iter().map(named).collect::<Vec<_>>()
    };
    let can = |tool: &str, execution: Value| (format!("fixture.{tool}"), execution);
    let expected = [
        can("delete_item", Value::Null),
        can("get_item", Value::Null),
        can("slow", Value::Null),
        can("write_item", json!({"taskSupport": "optional"})),
    ];
    assert_eq!(supports(&client).await, expected);
    let modern = Client::modern(&sidecar, "a-modern");
    assert!(
        supports(&modern)
            .await
            .iter()
            .all(|(_, execution)| execution.is_null())
    );

    let discovered = answer(modern.agent.modern("server/discover", None, json!({}))).await;
    let extensions = &discovered["result"]["capabilities"]["extensions"];
    assert_eq!(extensions, &with_tasks()["extensions"], "{discovered}");
    for (version, offered) in [
        (
            "2025-11-25",
            json!({"cancel": {}, "requests": {"tools": {"call": {}}}}),
        ),
        ("2025-06-18", Value::Null),
    ] {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let request = sidecar
            .stateless_agent("a-x")
            .request(reqwest::Method::POST, "/mcp")
            .json(&message);
        let initialized = answer(request).await;
        assert_eq!(
            initialized["result"]["capabilities"]["tasks"], offered,
            "{initialized}"
        );
    }
}

#[tokio::test]
async fn a_flood_of_tasks_is_bounded_and_each_refusal_recorded() {
    const FLOOD: usize = 150;
    const MOST: usize = 128;
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    let client = Client::legacy(&sidecar, "a-legacy").await;
    let mut begun = Vec::new();
    let mut refused = 0;
    for number in 0..FLOOD {
        let answer = client.begin("fixture.slow", json!({"n": number})).await;
        match answer["error"]["code"].as_i64() {
            None => begun.push(client.task(&answer)),
            Some(code) => {
                assert_eq!(code, -32010, "{answer}");
                assert!(
                    answer["error"]["message"].as_str().unwrap().contains("tasks"),
                    "{answer}"
                );
                refused += 1;
            }
        }
    }
    assert_eq!((begun.len(), refused), (MOST, FLOOD - MOST));
    let records = fleet
        .operator()
        .records("agent=a-legacy&outcome=denied", refused)
        .await;
    assert_eq!(records.len(), refused);
    assert!(
        records.iter().all(|record| record["reason"] == "rate_limited"),
        "{records:?}"
    );
    // Another agent is not in the way, and neither is this one once a task has ended.
    let other = Client::legacy(&sidecar, "a-other").await;
    other.task(&other.begin("fixture.get_item", json!({})).await);
    client.ask("tasks/cancel", json!({"taskId": begun[0]})).await;
    let again = wait::until("room for another task", || async {
        let answer = client.begin("fixture.get_item", json!({})).await;
        answer.get("result").is_some().then_some(answer)
    })
    .await;
    client.until(&client.task(&again), "completed").await;
    assert_eq!(client.state(&begun[0]).await["error"]["code"], UNKNOWN);

    // The session ends, and every call with it.
    let ending = client
        .agent
        .request(reqwest::Method::DELETE, "/mcp")
        .header("Mcp-Session-Id", client.agent.session().unwrap());
    assert!(ending.send().await.unwrap().status().is_success());
    wait::until_equal("every call is cancelled", MOST, || async {
        count(&sidecar, "cancelled slow")
    })
    .await;
}

#[tokio::test]
async fn one_stream_asks_for_no_more_tasks_than_an_agent_can_have() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    let client = Client::modern(&sidecar, "a-modern");
    let id = client.task(&client.begin("fixture.write_item", json!({"n": 1})).await);
    for (unknown, heard) in [(127, json!([id])), (128, Value::Null)] {
        let mut ids: Vec<Value> = (0..unknown).map(|number| json!(format!("no-{number}"))).collect();
        ids.push(id.clone());
        let honoured = client.agent.honoured(with_tasks(), json!({"taskIds": ids})).await;
        assert_eq!(honoured["taskIds"], heard, "{honoured}");
    }
}

#[tokio::test]
async fn a_sidecar_that_restarts_knows_no_tasks_and_the_approval_is_used_by_the_next_call() {
    let fleet = Fleet::on_sqlite("").await;
    let mut sidecar = governed(&fleet).await;
    let client = Client::modern(&sidecar, "a-modern");
    let begun = client.begin("fixture.write_item", json!({"n": 1})).await;
    let id = client.task(&begun);
    let approval = pending(&fleet, "a-modern").await;
    sidecar.restart();
    sidecar.ready().await;
    let lost = client.state(&id).await;
    assert_eq!(lost["error"]["code"], UNKNOWN, "{lost}");
    assert!(
        lost["error"]["message"]
            .as_str()
            .unwrap()
            .contains("make the call again"),
        "{lost}"
    );
    resolve(&fleet, &approval, "approve").await;
    let agent: &Agent = &client.agent;
    wait::until("the policy is there again", || async {
        let (_, decision) = agent.decide("fixture.write_item", json!({"n": 1})).await;
        (decision["action"] == "human_approval").then_some(())
    })
    .await;
    let called = agent.call_modern("fixture.write_item", json!({"n": 1})).await;
    assert!(called.is_ok(), "{}", called.answer);
    assert_eq!(count(&sidecar, r#"ran write_item {"n":1}"#), 1);
}
