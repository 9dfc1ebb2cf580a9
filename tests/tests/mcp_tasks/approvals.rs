//! A call that waits for a person is a task for a client that speaks tasks, whatever its upstream can do.

use serde_json::json;
use tests::agent::{answer, messages};
use tests::fleet::Fleet;
use tests::wait;

use super::{Client, UNKNOWN, both, count, governed, pending, resolve, with_tasks};

#[tokio::test]
async fn a_call_that_needs_a_person_is_a_task_at_once_and_runs_when_it_is_approved() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    for (name, client) in both(&sidecar).await {
        let begun = client.begin("fixture.write_item", json!({"of": name})).await;
        let id = client.task(&begun);
        let approval = pending(&fleet, name).await;
        let named = approval["id"].as_str().unwrap();
        wait::until("a status that names the approval", || async {
            let state = client.state(&id).await;
            let message = state["result"]["statusMessage"].to_string();
            (state["result"]["status"] == "working" && message.contains(named)).then_some(())
        })
        .await;
        assert_eq!(
            count(&sidecar, &format!("ran write_item {{\"of\":\"{name}\"}}")),
            0
        );

        resolve(&fleet, &approval, "approve").await;
        // Nobody asks for the call again: the task is what waits.
        let state = client.until(&id, "completed").await;
        assert_eq!(state["result"]["taskId"], id);
        let outcome = client.outcome(&id).await;
        let text = outcome["content"][0]["text"].as_str().unwrap();
        assert_eq!(text, format!("write_item {{\"of\":\"{name}\"}}"), "{outcome}");
        assert_eq!(
            count(&sidecar, &format!("ran write_item {{\"of\":\"{name}\"}}")),
            1
        );
        if !client.is_modern {
            let related = &outcome["_meta"]["io.modelcontextprotocol/related-task"];
            assert_eq!(related["taskId"], id);
        }
        let query = format!("agent={name}&tool=fixture.write_item");
        let records = fleet.operator().records(&query, 1).await;
        assert_eq!(
            (records.len(), &records[0]["outcome"]),
            (1, &json!("ok")),
            "{records:?}"
        );
    }
}

#[tokio::test]
async fn the_result_of_a_task_is_waited_for_and_a_refusal_of_any_kind_ends_it() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    let client = Client::legacy(&sidecar, "a-legacy").await;
    let begun = client.begin("fixture.write_item", json!({"n": 1})).await;
    let id = client.task(&begun);
    let asking = client.ask("tasks/result", json!({"taskId": id}));
    let denying = async {
        let approval = pending(&fleet, "a-legacy").await;
        resolve(&fleet, &approval, "deny").await;
    };
    let (result, ()) = tokio::join!(asking, denying);
    let decision = &result["result"]["_meta"]["dev.toolgate/decision"];
    assert_eq!(decision["reason"], "approval_denied", "{result}");
    assert_eq!(result["result"]["isError"], true);
    let state = client.until(&id, "failed").await;
    assert!(
        state["result"]["statusMessage"]
            .as_str()
            .unwrap()
            .contains("alice has refused"),
        "{state}"
    );

    let modern = Client::modern(&sidecar, "a-modern");
    let begun = modern.begin("fixture.write_item", json!({"n": 2})).await;
    let id = modern.task(&begun);
    resolve(&fleet, &pending(&fleet, "a-modern").await, "deny").await;
    // In the words of the extension, a tool that says no has completed.
    let state = modern.until(&id, "completed").await;
    let decision = &state["result"]["result"]["_meta"]["dev.toolgate/decision"];
    assert_eq!(decision["reason"], "approval_denied", "{state}");

    // What policies deny at once is a task that has failed for a client that asked for one, and a result for one that did not.
    let denied = client.begin("fixture.delete_item", json!({})).await;
    let id = client.task(&denied);
    client.until(&id, "failed").await;
    assert_eq!(
        client.outcome(&id).await["_meta"]["dev.toolgate/decision"]["reason"],
        "policy"
    );
    let denied = modern.begin("fixture.delete_item", json!({})).await;
    assert_eq!(
        (&denied["result"]["resultType"], &denied["result"]["isError"]),
        (&json!("complete"), &json!(true))
    );
    assert!(
        !sidecar.ran().iter().any(|line| line.contains("_item")),
        "{:?}",
        sidecar.ran()
    );
}

#[tokio::test]
async fn a_stop_ends_tasks() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    let operator = fleet.operator();
    let clients = both(&sidecar).await;
    let mut ids = Vec::new();
    for (name, client) in &clients {
        let begun = client.begin("fixture.write_item", json!({"of": name})).await;
        ids.push(client.task(&begun));
        pending(&fleet, name).await;
    }
    operator
        .post("/stops", json!({"scope": "agent:a-*", "reason": "drill"}))
        .await;
    for ((_, client), id) in clients.iter().zip(&ids) {
        let ended = if client.is_modern { "completed" } else { "failed" };
        client.until(id, ended).await;
        let outcome = client.outcome(id).await;
        assert_eq!(outcome["isError"], true, "{outcome}");
    }
    assert_eq!(count(&sidecar, "ran write_item"), 0);
}

#[tokio::test]
async fn nobody_who_answers_in_time_is_a_task_that_failed() {
    let fleet = Fleet::on_sqlite("approval:\n  timeout_seconds: 2\n").await;
    let sidecar = governed(&fleet).await;
    let client = Client::legacy(&sidecar, "a-legacy").await;
    let begun = client.begin("fixture.write_item", json!({})).await;
    let id = client.task(&begun);
    client.until(&id, "failed").await;
    let outcome = client.outcome(&id).await;
    let reason = &outcome["_meta"]["dev.toolgate/decision"]["reason"];
    assert_eq!(reason, "approval_timeout", "{outcome}");
}

#[tokio::test]
async fn a_task_that_is_cancelled_takes_its_approval_back_and_ends_a_call_in_flight() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    for (name, client) in both(&sidecar).await {
        let begun = client.begin("fixture.write_item", json!({"of": name})).await;
        let id = client.task(&begun);
        let approval = pending(&fleet, name).await;
        let cancelled = client.ask("tasks/cancel", json!({"taskId": id})).await;
        assert!(cancelled.get("result").is_some(), "{cancelled}");
        client.until(&id, "cancelled").await;
        let path = format!("/approvals/{}", approval["id"].as_str().unwrap());
        wait::until("the approval is cancelled", || async {
            let approval = fleet.operator().get(&path).await;
            (approval["status"] == "cancelled").then_some(())
        })
        .await;
        let again = client.ask("tasks/cancel", json!({"taskId": id})).await;
        if client.is_modern {
            assert_eq!(again["result"]["resultType"], "complete", "{again}");
        } else {
            assert_eq!(again["error"]["code"], UNKNOWN, "{again}");
            let result = client.ask("tasks/result", json!({"taskId": id})).await;
            assert_eq!(result["error"]["code"], -32800, "{result}");
        }
    }
    // A legacy client can ask for a task of any tool; the sidecar runs it where the upstream does not.
    let client = Client::legacy(&sidecar, "a-legacy").await;
    let begun = client.begin("fixture.slow", json!({})).await;
    let id = client.task(&begun);
    wait::until("the call runs", || async {
        (count(&sidecar, "ran slow {}") == 1).then_some(())
    })
    .await;
    client.ask("tasks/cancel", json!({"taskId": id})).await;
    wait::until("the upstream hears of it", || async {
        (count(&sidecar, "cancelled slow") == 1).then_some(())
    })
    .await;
    let records = fleet.operator().records("tool=fixture.slow", 1).await;
    assert_eq!(records[0]["outcome"], "cancelled", "{records:?}");
}

#[tokio::test]
async fn a_task_is_its_owners_alone() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    let clients = both(&sidecar).await;
    for (name, client) in &clients {
        let begun = client.begin("fixture.write_item", json!({"of": name})).await;
        let id = client.task(&begun);
        let others = [
            Client::legacy(&sidecar, name).await,
            Client::legacy(&sidecar, "a-other").await,
            Client::modern(&sidecar, "a-other"),
        ];
        for other in others {
            for method in ["tasks/get", "tasks/cancel"] {
                let answer = other.ask(method, json!({"taskId": id})).await;
                assert_eq!(answer["error"]["code"], UNKNOWN, "{answer}");
            }
        }
        assert_eq!(client.state(&id).await["result"]["status"], "working");
    }
    // A client that does not say that it speaks the extension is told what it would have to say.
    let (_, modern) = &clients[1];
    let request = modern
        .agent
        .modern("tasks/get", Some("x"), json!({"taskId": "x"}));
    let refused = answer(request).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let needed = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
    assert!(needed["io.modelcontextprotocol/tasks"].is_object(), "{refused}");
}

#[tokio::test]
async fn who_listens_to_a_task_is_told_how_it_ends() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet).await;
    let client = Client::modern(&sidecar, "a-modern");
    let begun = client
        .begin("fixture.write_item", json!({"of": "a-modern"}))
        .await;
    let id = client.task(&begun);
    let filter = json!({"notifications": {"taskIds": [id, "of-nobody"]}});
    let listening = client
        .agent
        .modern_as(with_tasks(), "subscriptions/listen", None, filter.clone());
    let mut stream = listening.send().await.unwrap();
    let mut text = String::new();
    resolve(&fleet, &pending(&fleet, "a-modern").await, "approve").await;
    let hearing = async {
        loop {
            let chunk = stream.chunk().await.unwrap().expect("the stream ended");
            text.push_str(&String::from_utf8_lossy(&chunk));
            let heard = messages(&text);
            let ended = heard
                .iter()
                .find(|message| message["params"]["status"] == "completed");
            if let Some(ended) = ended {
                return (heard[0].clone(), ended.clone());
            }
        }
    };
    let (acknowledged, ended) = tokio::time::timeout(wait::PATIENCE, hearing)
        .await
        .expect("the end of the task");
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([id]));
    assert_eq!(ended["method"], "notifications/tasks");
    assert_eq!(ended["params"]["taskId"], id);
    assert_eq!(ended["params"]["_meta"], acknowledged["params"]["_meta"]);
    let result = &ended["params"]["result"]["content"][0]["text"];
    assert_eq!(result, "write_item {\"of\":\"a-modern\"}", "{ended}");

    let undeclared = client.agent.modern("subscriptions/listen", None, filter);
    let refused = answer(undeclared).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}
