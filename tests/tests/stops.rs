//! Emergency stops: they end what runs, refuse what comes, deny what waits, and are lifted.

use serde_json::{Value, json};
use tests::agent::{Agent, Called};
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::operator::Operator;
use tests::wait;

const POLICY: &str = "
name: everybody
agent: '*'
rules:
  - tools: [fixture.write_item]
    action: human_approval
  - tools: ['*']
    action: allow
";

async fn governed(fleet: &Fleet, name: &str) -> Sidecar {
    let sidecar = fleet.sidecar(&SidecarOptions::named(name)).await;
    let operator = fleet.operator();
    let revision = operator.put_policy("everybody", POLICY).await;
    operator.applied(&revision, 1).await;
    sidecar
}

/// Stops a scope, and answers when it is in force everywhere.
async fn stop(operator: &Operator, scope: &str) -> Value {
    let body = json!({"scope": scope, "reason": "something is wrong", "by": "alice"});
    let stop = operator.post("/stops?wait=applied", body).await;
    assert_eq!((&stop["applied"], &stop["of"]), (&json!(1), &json!(1)), "{stop}");
    stop
}

/// Lifts a stop, and waits until an agent's call runs again.
async fn resume(operator: &Operator, stop: &Value, agent: &Agent) {
    operator
        .delete(&format!("/stops/{}", stop["id"].as_str().unwrap()))
        .await;
    let mut attempt = 0;
    wait::until("calls run again", || {
        attempt += 1;
        let call = agent.call("fixture.get_item", json!({"resumed": attempt}));
        async { call.await.is_ok().then_some(()) }
    })
    .await;
}

fn is_stopped(called: &Called) {
    assert_eq!(called.answer["result"]["isError"], true, "{}", called.answer);
    assert_eq!(called.decision()["reason"], "stopped", "{}", called.answer);
}

async fn logged(sidecar: &Sidecar, line: &str) {
    wait::until(&format!("the upstream's log says `{line}`"), || async {
        sidecar
            .ran()
            .iter()
            .any(|logged| logged.starts_with(line))
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_stop_ends_a_call_in_flight_and_the_upstream_serves_the_next_one() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet, "one").await;
    let operator = fleet.operator();
    let agent = sidecar.agent("a-runaway").await;
    let modern = sidecar.stateless_agent("a-modern");
    let other = sidecar.agent("b-calm").await;

    let (legacy, stateless, rest, unharmed, held) = tokio::join!(
        agent.call("fixture.slow", json!({"of": "legacy"})),
        modern.call_modern("fixture.slow", json!({"of": "modern"})),
        agent.rest("fixture.slow", json!({"of": "rest"})),
        other.call("fixture.slow", json!({"of": "other", "ms": 2_000})),
        async {
            wait::until("all calls are in flight", || async {
                let ran = sidecar.ran();
                (ran.iter().filter(|line| line.starts_with("ran slow")).count() == 4).then_some(())
            })
            .await;
            stop(&operator, "agent:a-*").await
        },
    );
    for called in [&legacy, &stateless] {
        is_stopped(called);
        assert!(
            called.text().contains("an operator has stopped it"),
            "{}",
            called.text()
        );
    }
    assert_eq!(rest.0, 403, "{}", rest.1);
    assert!(unharmed.is_ok(), "{}", unharmed.answer);
    wait::until_equal("the upstream heard of each cancellation", 3, || async {
        sidecar
            .ran()
            .iter()
            .filter(|line| *line == "cancelled slow")
            .count()
    })
    .await;

    assert!(other.call("fixture.get_item", json!({"next": 1})).await.is_ok());
    is_stopped(&agent.call("fixture.get_item", json!({"next": 2})).await);
    assert_eq!(agent.rest("fixture.get_item", json!({"next": 3})).await.0, 403);
    resume(&operator, &held, &agent).await;
    let ran = sidecar.ran();
    assert!(
        !ran.iter()
            .any(|line| line.contains("\"next\":2") || line.contains("\"next\":3")),
        "{ran:?}"
    );

    let cut = operator.records("tool=fixture.slow&outcome=cancelled", 3).await;
    assert!(cut.iter().all(|record| record["reason"] == "stopped"), "{cut:?}");
    let acts = operator.records("tool=mesh.*", 2).await;
    for act in ["mesh.stop", "mesh.resume"] {
        assert!(acts.iter().any(|record| record["tool"] == act), "{act}: {acts:?}");
    }
}

#[tokio::test]
async fn a_stop_of_an_agent_of_an_upstream_or_of_everything_holds_for_these_until_it_is_lifted() {
    let fleet = Fleet::on_sqlite("").await;
    let options = SidecarOptions {
        extra: two_upstreams(&fleet),
        ..SidecarOptions::named("one")
    };
    let sidecar = fleet.sidecar(&options).await;
    let operator = fleet.operator();
    let revision = operator.put_policy("everybody", POLICY).await;
    operator.applied(&revision, 1).await;
    let one = sidecar.agent("one").await;
    let two = sidecar.agent("two").await;
    let mut number = 0;
    let mut arguments = || {
        number += 1;
        json!({ "n": number })
    };
    // scope, then whether each call runs under it: one's and two's of the first upstream, one's of the second.
    let cases = [
        ("agent:one", [false, true, false]),
        ("upstream:fixture", [false, false, true]),
        ("namespace:default", [false, false, false]),
        ("namespace:elsewhere", [true, true, true]),
        ("all", [false, false, false]),
    ];
    for (scope, runs) in cases {
        let held = operator
            .post("/stops?wait=applied", json!({"scope": scope, "reason": "drill"}))
            .await;
        let calls = [
            one.call("fixture.get_item", arguments()).await,
            two.call("fixture.get_item", arguments()).await,
            one.call("spare.get_item", arguments()).await,
        ];
        for (called, runs) in calls.iter().zip(runs) {
            match runs {
                true => assert!(called.is_ok(), "{scope}: {}", called.answer),
                false => is_stopped(called),
            }
        }
        let shown = operator.get("/stops").await;
        assert_eq!((&shown[0]["scope"], &shown[1]), (&json!(scope), &Value::Null));
        resume(&operator, &held, &one).await;
        assert!(two.call("fixture.get_item", arguments()).await.is_ok(), "{scope}");
        assert!(one.call("spare.get_item", arguments()).await.is_ok(), "{scope}");
        assert_eq!(operator.get("/stops").await, json!([]));
    }
    assert_eq!(one.tools().await.len(), 8, "stops do not change lists");
}

fn two_upstreams(fleet: &Fleet) -> String {
    let program = tests::programs::built("fixture-mcp");
    let server = |name: &str| {
        format!(
            "  - name: {name}\n    transport: stdio\n    command: {}\n    args: [stdio, {}/{name}-ran]\n",
            program.display(),
            fleet.folder.path().display()
        )
    };
    format!("mcp_servers:\n{}{}", server("fixture"), server("spare"))
}

#[tokio::test]
async fn a_stop_denies_what_waits_for_a_person_and_cancels_what_was_approved() {
    let fleet = Fleet::on_sqlite("").await;
    let sidecar = governed(&fleet, "one").await;
    let operator = fleet.operator();
    let agent = sidecar.agent("a").await;
    let approved = agent.call("fixture.write_item", json!({"n": 1})).await;
    let approved = approved.decision()["approval_id"].as_str().unwrap().to_owned();
    operator
        .post(&format!("/approvals/{approved}/approve"), json!({}))
        .await;

    let (held, stop) = tokio::join!(agent.rest("fixture.write_item", json!({"n": 2})), async {
        operator.pending("fixture.write_item").await;
        stop(&operator, "agent:a").await
    });
    assert_eq!(held.0, 403, "{}", held.1);
    let pending = stop["denied_approvals"][0].as_str().unwrap().to_owned();
    assert_eq!(stop["cancelled_approvals"], json!([approved]), "{stop}");
    for (id, status) in [(&pending, "denied"), (&approved, "cancelled")] {
        let approval = operator.get(&format!("/approvals/{id}")).await;
        assert_eq!(approval["status"], status, "{approval}");
    }
    is_stopped(&agent.call("fixture.write_item", json!({"n": 1})).await);
    assert_eq!(operator.get("/approvals?status=pending").await, json!([]));

    resume(&operator, &stop, &agent).await;
    let again = agent.call("fixture.write_item", json!({"n": 1})).await;
    assert_eq!(again.decision()["reason"], "approval_pending", "{}", again.answer);
    assert_ne!(
        again.decision()["approval_id"],
        json!(approved),
        "what was cancelled is not used"
    );
    logged(&sidecar, "ran get_item").await;
    assert!(
        !sidecar
            .ran()
            .iter()
            .any(|line| line.starts_with("ran write_item"))
    );
}
