//! One governed call: allowed, denied, unknown, or waiting for a person, over MCP of both eras and over REST.

use reqwest::Method;
use serde_json::{Value, json};
use tests::agent::{Agent, Called};
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::wait;

const POLICY: &str = "
name: everybody
agent: 'a-*'
rules:
  - tools: [fixture.get_item, fixture.slow]
    action: allow
  - tools: [fixture.write_item]
    action: human_approval
    message: Writing needs a person.
  - tools: [fixture.delete_item]
    action: deny
    message: Nothing is deleted here.
";

async fn with_policy(fleet: &Fleet, sidecars: &[&str]) -> Vec<Sidecar> {
    let mut started = Vec::new();
    for name in sidecars {
        started.push(fleet.sidecar(&SidecarOptions::named(name)).await);
    }
    let operator = fleet.operator();
    let revision = operator.put_policy("everybody", POLICY).await;
    operator.applied(&revision, sidecars.len() as u64).await;
    started
}

fn count(sidecars: &[Sidecar], line: &str) -> usize {
    let ran = sidecars.iter().flat_map(Sidecar::ran);
    ran.filter(|ran| ran == line).count()
}

async fn approve(fleet: &Fleet, id: &Value) {
    let path = format!("/approvals/{}/approve", id.as_str().unwrap());
    let body = json!({"resolved_by": "alice", "reasoning": "fine"});
    fleet.operator().post(&path, body).await;
}

async fn deny(fleet: &Fleet, id: &Value) {
    let path = format!("/approvals/{}/deny", id.as_str().unwrap());
    let body = json!({"resolved_by": "bob", "reasoning": "not today"});
    fleet.operator().post(&path, body).await;
}

#[tokio::test]
async fn an_agent_of_either_era_gets_what_is_allowed_and_hears_why_the_rest_is_not() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecars = with_policy(&fleet, &["one"]).await;
    let sidecar = &sidecars[0];
    let legacy = sidecar.agent("a-legacy").await;
    let modern = sidecar.stateless_agent("a-modern");
    assert_eq!(
        legacy.tools().await,
        [
            "fixture.delete_item",
            "fixture.get_item",
            "fixture.slow",
            "fixture.write_item"
        ]
    );
    let listed = tests::agent::answer(modern.modern("tools/list", None, json!({}))).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4, "{listed}");

    let arguments = json!({"id": 7});
    for called in [
        legacy.call("fixture.get_item", arguments.clone()).await,
        modern.call_modern("fixture.get_item", arguments.clone()).await,
    ] {
        assert!(called.is_ok(), "{}", called.answer);
        assert_eq!(called.text(), r#"get_item {"id":7}"#);
    }
    for (called, agent) in [
        (
            legacy.call("fixture.delete_item", arguments.clone()).await,
            "a-legacy",
        ),
        (
            modern.call_modern("fixture.delete_item", arguments.clone()).await,
            "a-modern",
        ),
    ] {
        is_denied(&called, agent, "policy");
        assert!(
            called.text().contains("Nothing is deleted here"),
            "{}",
            called.text()
        );
        assert_eq!(called.decision()["rule"], "everybody");
        assert_eq!(called.decision()["rule_index"], 2);
    }
    let stranger = sidecar.agent("stranger").await;
    is_denied(
        &stranger.call("fixture.get_item", arguments.clone()).await,
        "stranger",
        "no_rule",
    );
    for called in [
        legacy.call("fixture.no_such", arguments.clone()).await,
        modern.call_modern("fixture.no_such", arguments).await,
    ] {
        assert_eq!(called.answer["error"]["code"], -32602, "{}", called.answer);
    }
    assert_eq!(count(&sidecars, r#"ran get_item {"id":7}"#), 2);
    assert!(!sidecar.ran().iter().any(|line| line.contains("delete_item")));

    let operator = fleet.operator();
    for agent in ["a-legacy", "a-modern"] {
        let query = format!("agent={agent}&tool=fixture.get_item");
        let records = operator.records(&query, 1).await;
        assert_eq!(records[0]["outcome"], "ok", "{records:?}");
    }
    for query in ["tool=fixture.delete_item", "tool=fixture.no_such"] {
        let records = operator.records(query, 2).await;
        assert!(
            records.iter().all(|record| record["outcome"] == "denied"),
            "{records:?}"
        );
    }
}

fn is_denied(called: &Called, agent: &str, reason: &str) {
    let answer = &called.answer;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let decision = called.decision();
    assert_eq!(decision["action"], "deny", "{answer}");
    assert_eq!(decision["reason"], reason, "{answer}");
    assert_eq!(decision["agent"], agent);
    assert!(
        decision["revision"].is_string() && decision["call_id"].is_string(),
        "{decision}"
    );
}

#[tokio::test]
async fn an_mcp_call_that_waits_runs_when_a_person_approves_it_and_not_when_one_denies_it() {
    let fleet = Fleet::on_sqlite("approval:\n  wait_seconds: 10\n").await;
    let sidecars = with_policy(&fleet, &["one"]).await;
    let operator = fleet.operator();
    let legacy = sidecars[0].agent("a-legacy").await;
    let modern = sidecars[0].stateless_agent("a-modern");
    for (number, is_modern) in [(1, false), (2, true)] {
        let call = |argument: Value| {
            let (legacy, modern) = (&legacy, &modern);
            async move {
                match is_modern {
                    true => modern.call_modern("fixture.write_item", argument).await,
                    false => legacy.call("fixture.write_item", argument).await,
                }
            }
        };
        let (called, asked) = tokio::join!(call(json!({"n": number})), async {
            let pending = operator.pending("fixture.write_item").await;
            approve(&fleet, &pending["id"]).await;
            pending
        });
        assert!(called.is_ok(), "{}", called.answer);
        assert_eq!(asked["params"], json!({"n": number}));
        assert_eq!(asked["message"], "Writing needs a person.");
        assert_eq!(asked["policy_rule"], "everybody");
        assert_eq!(count(&sidecars, &format!("ran write_item {{\"n\":{number}}}")), 1);

        let (called, _) = tokio::join!(call(json!({"n": number, "denied": true})), async {
            let pending = operator.pending("fixture.write_item").await;
            deny(&fleet, &pending["id"]).await;
        });
        let agent = if is_modern { "a-modern" } else { "a-legacy" };
        is_denied(&called, agent, "approval_denied");
        assert!(called.text().contains("bob has refused"), "{}", called.text());
        assert!(called.text().contains("not today"), "{}", called.text());
    }
    assert!(!sidecars[0].ran().iter().any(|line| line.contains("denied")));
    let records = operator.records("tool=fixture.write_item", 4).await;
    let found = |outcome: &str, status: &str, by: &str| {
        let is = |record: &&Value| {
            record["outcome"] == outcome && record["approval_status"] == status && record["approved_by"] == by
        };
        records.iter().filter(is).count()
    };
    assert_eq!(found("ok", "approved", "alice"), 2, "{records:?}");
    assert_eq!(found("denied", "denied", "bob"), 2, "{records:?}");
}

#[tokio::test]
async fn rest_answers_have_the_shapes_that_clients_rely_on() {
    let fleet = Fleet::on_sqlite("approval:\n  rest_hold_seconds: 20\n  timeout_seconds: 1\n").await;
    let sidecars = with_policy(&fleet, &["one"]).await;
    let agent = sidecars[0].stateless_agent("a-rest");
    let operator = fleet.operator();

    let (status, body) = agent.rest("fixture.get_item", json!({"id": 1})).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        (&body["policy"], &body["policy_rule"]),
        (&json!("allow"), &json!("everybody"))
    );
    assert_eq!(body["result"]["content"][0]["text"], r#"get_item {"id":1}"#);
    assert!(
        body["trace_id"].is_string() && body["latency_ms"].is_u64(),
        "{body}"
    );

    let (status, body) = agent.rest("fixture.delete_item", json!({"id": 1})).await;
    assert_eq!(status, 403, "{body}");
    assert_eq!(
        (&body["policy"], &body["reason"]),
        (&json!("deny"), &json!("policy"))
    );
    assert_eq!(body["denied_by"]["policy_rule"], "everybody");
    assert_eq!(body["denied_by"]["rule_index"], 2);
    assert_eq!(body["error"], body["detail"]);

    let (status, body) = agent.rest("fixture.no_such", json!({})).await;
    assert_eq!((status, &body["status"]), (404, &json!(404)), "{body}");

    let (status, body) = agent.rest("fixture.write_item", json!({"late": 1})).await;
    assert_eq!(
        (status, &body["reason"]),
        (408, &json!("approval_timeout")),
        "{body}"
    );
    let id = body["approval_id"].as_str().unwrap();
    let approval = operator.get(&format!("/approvals/{id}")).await;
    assert_eq!(approval["status"], "timeout");
    let late = operator.request(Method::POST, &format!("/approvals/{id}/approve"));
    assert_eq!(operator.try_send(late).await.0, 409);

    let unhurried = json!({"approval_timeout_ms": 300_000});
    let changed = operator.request(Method::PUT, "/settings/fleet").json(&unhurried);
    assert_eq!(operator.try_send(changed).await.0, 200);
    a_deferred_call_is_accepted_and_its_outcome_can_be_fetched(&fleet, &agent).await;

    let ((status, body), ()) = tokio::join!(agent.rest("fixture.write_item", json!({"held": 1})), async {
        let pending = operator.pending("fixture.write_item").await;
        deny(&fleet, &pending["id"]).await;
    });
    assert_eq!(
        (status, &body["reason"]),
        (403, &json!("approval_denied")),
        "{body}"
    );
    assert_eq!(count(&sidecars, r#"ran write_item {"deferred":1}"#), 1);
    let ran = sidecars[0].ran();
    assert!(
        !ran.iter()
            .any(|line| line.contains("held") || line.contains("late")),
        "{ran:?}"
    );
}

/// Asks for an answer at once: where the outcome will be, and the answer.
async fn deferred(agent: &Agent, arguments: Value) -> (String, Value) {
    let request = agent
        .request(Method::POST, "/tool/fixture.write_item")
        .header("Prefer", "respond-async")
        .json(&json!({ "params": arguments }));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 202);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    (location, response.json().await.unwrap())
}

async fn fetched(agent: &Agent, location: &str) -> (u16, Value) {
    let response = agent.request(Method::GET, location).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn outcome(agent: &Agent, location: &str) -> (u16, Value) {
    wait::until("the deferred call has its outcome", || async {
        let (status, outcome) = fetched(agent, location).await;
        (status != 202).then_some((status, outcome))
    })
    .await
}

async fn a_deferred_call_is_accepted_and_its_outcome_can_be_fetched(fleet: &Fleet, agent: &Agent) {
    let (location, body) = deferred(agent, json!({"deferred": 1})).await;
    assert_eq!(
        (&body["policy"], &body["status"]),
        (&json!("human_approval"), &json!("pending"))
    );
    let (status, pending) = fetched(agent, &location).await;
    assert_eq!((status, &pending["approval_id"]), (202, &body["approval_id"]));
    approve(fleet, &body["approval_id"]).await;
    let (status, outcome) = outcome(agent, &location).await;
    assert_eq!(status, 200, "{outcome}");
    assert_eq!(
        outcome["result"]["content"][0]["text"],
        r#"write_item {"deferred":1}"#
    );
    assert_eq!(outcome["approval_id"], body["approval_id"]);
}

#[tokio::test]
async fn an_approval_is_claimed_once_by_two_sidecars_that_race_for_it() {
    let fleet = Fleet::on_postgres(1, "").await;
    let sidecars = with_policy(&fleet, &["left", "right"]).await;
    let operator = fleet.operator();
    let agents: Vec<Agent> = sidecars
        .iter()
        .map(|sidecar| sidecar.stateless_agent("a-racer"))
        .collect();
    for round in 0..8 {
        let arguments = json!({"round": round});
        let ask = |agent: usize| agents[agent].call_modern("fixture.write_item", arguments.clone());
        let (left, right) = tokio::join!(ask(0), ask(1));
        for called in [&left, &right] {
            assert_eq!(
                called.decision()["reason"],
                "approval_pending",
                "{}",
                called.answer
            );
        }
        let id = &left.decision()["approval_id"];
        assert_eq!(
            id,
            &right.decision()["approval_id"],
            "the same question is asked once"
        );
        assert_eq!(
            operator
                .get("/approvals?status=pending")
                .await
                .as_array()
                .unwrap()
                .len(),
            1
        );
        approve(&fleet, id).await;

        let raced = tokio::join!(ask(0), ask(1));
        let ran: Vec<bool> = [&raced.0, &raced.1].iter().map(|called| called.is_ok()).collect();
        assert_ne!(ran[0], ran[1], "{} {}", raced.0.answer, raced.1.answer);
        assert_eq!(
            count(&sidecars, &format!("ran write_item {{\"round\":{round}}}")),
            1
        );
        let approval = operator
            .get(&format!("/approvals/{}", id.as_str().unwrap()))
            .await;
        assert!(approval["consumed_at"].is_string(), "{approval}");
        // The loser came before the claim or after it: then it has asked a question of its own.
        for left in operator
            .get("/approvals?status=pending")
            .await
            .as_array()
            .unwrap()
        {
            deny(&fleet, &left["id"]).await;
        }
    }
}

#[tokio::test]
async fn a_call_asked_again_while_it_waits_joins_and_only_one_of_the_two_runs() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecars = with_policy(&fleet, &["one"]).await;
    let operator = fleet.operator();
    let agent = sidecars[0].stateless_agent("a-twice");
    let (first, body) = deferred(&agent, json!({"n": 1})).await;
    let (second, again) = deferred(&agent, json!({"n": 1})).await;
    let (other, different) = deferred(&agent, json!({"n": 2})).await;
    assert_ne!(first, second);
    assert_eq!(body["approval_id"], again["approval_id"]);
    assert_ne!(body["approval_id"], different["approval_id"]);
    approve(&fleet, &body["approval_id"]).await;
    let outcomes = [outcome(&agent, &first).await, outcome(&agent, &second).await];
    let mut statuses = outcomes.each_ref().map(|(status, _)| *status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 403], "{outcomes:?}");
    let refused = outcomes.iter().find(|(status, _)| *status == 403).unwrap();
    assert_eq!(refused.1["reason"], "approval_consumed", "{outcomes:?}");
    assert_eq!(count(&sidecars, r#"ran write_item {"n":1}"#), 1);
    assert_eq!(
        fetched(&agent, &other).await.0,
        202,
        "another call is another question"
    );
    assert_eq!(count(&sidecars, r#"ran write_item {"n":2}"#), 0);
    let pending = operator.get("/approvals?status=pending").await;
    assert_eq!(pending.as_array().unwrap().len(), 1, "{pending}");
}
