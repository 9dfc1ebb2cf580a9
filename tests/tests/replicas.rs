//! Two control planes on one Postgres, and sidecars at each of them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::simulated::Simulated;

const NO_LOOPS: &str = "loop:\n  max: 10000\n";

fn policy(get: &str, write: &str) -> String {
    format!(
        "name: crossing\nagent: crosser\nrules:\n  - tools: [fixture.get_item]\n    action: {get}\n  \
         - tools: [fixture.write_item]\n    action: {write}\n"
    )
}

async fn sidecar_at(fleet: &Fleet, plane: usize, name: &str) -> Sidecar {
    let options = SidecarOptions {
        plane,
        ..SidecarOptions::named(name)
    };
    fleet.sidecar(&options).await
}

/// An agent of `asks` makes a call that needs a person, who answers at the replica `answers`; answers the approval.
async fn approved_across(fleet: &Fleet, asks: &Sidecar, answers: usize, arguments: &Value) -> Value {
    let agent = asks.stateless_agent("crosser");
    let operator = fleet.operator_of(answers);
    let approve = async {
        let pending = operator.pending("fixture.write_item").await;
        let path = format!("/approvals/{}/approve", pending["id"].as_str().unwrap());
        operator.post(&path, json!({"resolved_by": "carol"})).await
    };
    let ((status, body), approval) =
        tokio::join!(agent.rest("fixture.write_item", arguments.clone()), approve);
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["approval_id"], approval["id"], "{body}");
    let line = format!("ran write_item {arguments}");
    assert_eq!(asks.ran().iter().filter(|ran| **ran == line).count(), 1);
    approval
}

#[tokio::test]
async fn an_edit_an_approval_and_records_cross_two_replicas() {
    let fleet = Fleet::on_postgres(2, NO_LOOPS).await;
    let (a, b) = tokio::join!(sidecar_at(&fleet, 0, "a"), sidecar_at(&fleet, 1, "b"));
    let (agent_a, agent_b) = (a.stateless_agent("crosser"), b.stateless_agent("crosser"));

    let revision = fleet
        .operator_of(0)
        .put_policy("crossing", &policy("allow", "human_approval"))
        .await;
    fleet.operator_of(1).applied(&revision, 2).await;
    for agent in [&agent_a, &agent_b] {
        let (status, body) = agent.rest("fixture.get_item", json!({})).await;
        assert_eq!((status, &body["revision"]), (200, &json!(revision)), "{body}");
    }

    let first = approved_across(&fleet, &a, 1, &json!({"at": "a"})).await;
    let second = approved_across(&fleet, &b, 0, &json!({"at": "b"})).await;

    let revision = fleet
        .operator_of(1)
        .put_policy("crossing", &policy("deny", "deny"))
        .await;
    fleet.operator_of(0).applied(&revision, 2).await;
    for agent in [&agent_a, &agent_b] {
        let (status, body) = agent.rest("fixture.get_item", json!({})).await;
        assert_eq!((status, &body["reason"]), (403, &json!("policy")), "{body}");
    }

    for index in [0, 1] {
        let operator = fleet.operator_of(index);
        let records = operator.records("agent=crosser&tool=fixture.*", 6).await;
        assert_eq!(records.len(), 6, "{records:#?}");
        let sidecars: BTreeSet<_> = records.iter().map(|record| record["sidecar"].as_str()).collect();
        assert_eq!(sidecars.len(), 2, "records of both sidecars");
        for one in [&first, &second] {
            let of_it = records.iter().filter(|record| record["approval_id"] == one["id"]);
            let of_it: Vec<_> = of_it.map(|record| &record["approved_by"]).collect();
            assert_eq!(of_it, [&json!("carol")]);
        }
        let verified = operator.get("/traces/verify").await;
        assert_eq!(verified["valid"], true, "{verified}");
        let all = operator.get("/traces?limit=1000").await;
        let last = all
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["seq"].as_u64());
        assert!(verified["checked"].as_u64() >= last.max().unwrap(), "{verified}");
    }
}

#[tokio::test]
async fn an_edit_reaches_twenty_sidecars_at_two_replicas_and_the_rollout_says_so() {
    let fleet = Fleet::on_postgres(2, NO_LOOPS).await;
    let real = sidecar_at(&fleet, 0, "real").await;
    let token = fleet.join_token("default", &["*".to_owned()]).await;
    let mut simulated = Vec::new();
    for number in 0..19 {
        let url = fleet.grpc_url(number % 2);
        simulated.push(Simulated::join(&url, fleet.ca_file(), &token, &format!("simulated-{number}")).await);
    }

    let operator = fleet.operator_of(1);
    let revision = operator.put_policy("crossing", &policy("allow", "deny")).await;
    operator.applied(&revision, 20).await;

    let (status, body) = real
        .stateless_agent("crosser")
        .rest("fixture.get_item", json!({}))
        .await;
    assert_eq!((status, &body["revision"]), (200, &json!(revision)), "{body}");
    for one in &simulated {
        let received = one.received();
        assert!(received.changed.contains("crossing"), "{received:?}");
        assert_eq!(received.fulls, 1, "an edit is no reason for a full snapshot");
    }
    for index in [0, 1] {
        let rollout = fleet
            .operator_of(index)
            .get(&format!("/rollouts/{revision}"))
            .await;
        assert_eq!(rollout["complete"], true, "{rollout:#}");
        let counts = ["of", "applied", "rejected", "pending"].map(|name| rollout[name].as_u64().unwrap());
        assert_eq!(counts, [20, 20, 0, 0], "{rollout:#}");
        let sidecars = rollout["sidecars"].as_array().unwrap();
        assert!(
            sidecars.iter().all(|one| one["latency_ms"].is_u64()),
            "{rollout:#}"
        );
        for one in &simulated {
            assert!(sidecars.iter().any(|listed| listed["sidecar"] == one.id));
        }
    }
}
