//! The database goes away, and comes back older than it was.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tests::agent::Agent;
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::operator::Operator;
use tests::wait;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Records stay on the sidecars until a checkpoint covers them: here, for the whole test.
const SETTINGS: &str = "loop:\n  max: 10000\ntraces:\n  checkpoint_seconds: 3600\n";
const POLICY: &str = "name: everybody\nagent: '*'\nrules:\n  - tools: [fixture.delete_item]\n    action: human_approval\n  \
                      - tools: ['*']\n    action: allow\n";
const LATER: &str = "name: everybody\nagent: '*'\nrules:\n  - tools: ['*']\n    action: deny\n";

async fn started(settings: &str) -> (Fleet, Sidecar) {
    let fleet = Fleet::on_postgres(1, settings).await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("recording")).await;
    let revision = fleet.operator().put_policy("everybody", POLICY).await;
    fleet.operator().applied(&revision, 1).await;
    (fleet, sidecar)
}

/// Makes calls numbered from `from` until cancelled; answers the number of the next.
async fn call_until(agents: Vec<Agent>, from: u64, end: CancellationToken) -> u64 {
    let next = Arc::new(AtomicU64::new(from));
    let mut callers = JoinSet::new();
    for agent in agents {
        let (next, end) = (Arc::clone(&next), end.clone());
        callers.spawn(async move {
            while !end.is_cancelled() {
                let n = next.fetch_add(1, Ordering::Relaxed);
                let (status, body) = agent.rest("fixture.write_item", json!({"n": n})).await;
                assert_eq!(status, 200, "call {n}: {body}");
                // A pace that leaves room for others on a small machine.
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap();
    }
    next.load(Ordering::Relaxed)
}

/// Waits until each of the calls 0 to `count` is in the chain; each is there once, and the chain verifies.
async fn assert_all_recorded_once(operator: &Operator, count: u64) -> Value {
    let query = "agent=caller&tool=fixture.write_item&outcome=ok";
    let records = wait::until("every call is in the chain", || async {
        let records = operator.all_records(query).await;
        (records.len() as u64 >= count).then_some(records)
    })
    .await;
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for record in &records {
        *times.entry(record["params"]["n"].as_u64().unwrap()).or_default() += 1;
    }
    let wrong: Vec<_> = (0..count)
        .filter(|n| times.get(n) != Some(&1))
        .map(|n| (n, times.get(&n)))
        .collect();
    assert!(wrong.is_empty() && times.len() as u64 == count, "{wrong:?}");
    let gaps = operator.get("/traces/gaps").await;
    assert_eq!(gaps, json!([]));
    let verified = operator.get("/traces/verify").await;
    assert_eq!(verified["valid"], true, "{verified}");
    verified
}

async fn answers(operator: &Operator) {
    wait::until("the control plane reaches its database", || async {
        let request = operator.request(reqwest::Method::GET, "/readyz");
        (operator.try_send(request).await.0 == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn postgres_restarted_in_the_middle_of_calls_loses_nothing() {
    let (fleet, sidecar) = started("loop:\n  max: 10000\n").await;
    let operator = fleet.operator();
    let cluster = fleet.cluster.as_ref().unwrap();
    let end = CancellationToken::new();
    let agents = vec![sidecar.stateless_agent("caller"); 2];
    let mut calls = JoinSet::new();
    calls.spawn(call_until(agents, 0, end.clone()));

    for _ in 0..3 {
        let in_chain = async || operator.get("/traces?limit=1&agent=caller").await[0]["seq"].as_u64();
        let before = in_chain().await;
        wait::until("more calls are in the chain", || async {
            (in_chain().await > before.map(|seq| seq + 20)).then_some(())
        })
        .await;
        let ran = sidecar.ran().len();
        cluster.stop().unwrap();
        wait::until("calls go on without the database", || async {
            (sidecar.ran().len() > ran + 200).then_some(())
        })
        .await;
        cluster.boot().unwrap();
        answers(&operator).await;
    }
    end.cancel();
    let count = calls.join_next().await.unwrap().unwrap();

    let verified = assert_all_recorded_once(&operator, count).await;
    assert_eq!(verified["head"]["generation"], 1, "{verified}");
    let revision = operator.put_policy("everybody", LATER).await;
    operator.applied(&revision, 1).await;
}

#[tokio::test]
async fn an_old_dump_restored_begins_a_new_generation_in_which_nothing_comes_twice() {
    let (mut fleet, sidecar) = started(SETTINGS).await;
    let operator = fleet.operator();
    let caller = sidecar.stateless_agent("caller");
    let call = async |from: u64, until: u64| {
        for n in from..until {
            let (status, body) = caller.rest("fixture.write_item", json!({"n": n})).await;
            assert_eq!(status, 200, "{body}");
        }
    };
    call(0, 10).await;
    let asking = sidecar.agent("asking").await;
    let question = json!({"id": 1});
    assert!(!asking.call("fixture.delete_item", question.clone()).await.is_ok());
    let approval = operator.pending("fixture.delete_item").await;
    let path = format!("/approvals/{}", approval["id"].as_str().unwrap());
    operator
        .post(&format!("{path}/approve"), json!({"resolved_by": "dave"}))
        .await;
    assert_all_recorded_once(&operator, 10).await;

    let dump = fleet.dump();
    call(10, 20).await;
    assert_all_recorded_once(&operator, 20).await;
    let revision = operator.put_policy("everybody", LATER).await;
    operator.applied(&revision, 1).await;
    let (status, body) = caller.rest("fixture.write_item", json!({"n": 20})).await;
    assert_eq!(status, 403, "{body}");

    fleet.restore(&dump).await;

    let operator = fleet.operator();
    let rollout = operator.get("/rollouts/latest").await;
    let revision = rollout["revision"].as_str().unwrap();
    assert!(revision.starts_with("2."), "{rollout:#}");
    operator.applied(revision, 1).await;
    let cancelled = operator.get(&path).await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    let asked = asking.call("fixture.delete_item", question).await;
    assert!(
        !asked.is_ok(),
        "a cancelled approval opens nothing: {}",
        asked.answer
    );
    assert!(
        sidecar
            .ran()
            .iter()
            .all(|line| !line.starts_with("ran delete_item"))
    );
    let again = operator.pending("fixture.delete_item").await;
    assert_ne!(again["id"], approval["id"]);

    // What the dump does not hold is gone from desired state; what the sidecar still had comes back to the chain.
    call(20, 30).await;
    let verified = assert_all_recorded_once(&operator, 30).await;
    assert_eq!(verified["head"]["generation"], 2, "{verified}");
    let denied = operator.records("agent=caller&outcome=denied", 1).await;
    assert_eq!(denied.len(), 1);
}
