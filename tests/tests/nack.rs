//! What a sidecar cannot decode denies those whom it concerns, and nobody else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use serde_json::json;
use tests::agent::Agent;
use tests::fleet::{Fleet, SidecarOptions};
use tests::wait;

const EVERYBODY: &str = "name: everybody\nagent: '*'\nrules:\n  - tools: ['*']\n    action: allow\n";
const MENDED: &str = "name: newer\nagent: 'concerned-*'\nrules:\n  - tools: ['*']\n    action: allow\n";
/// A newer control plane's change: one revision that writes a policy in a form that this build does not know.
const NEWER: &str = r#"
BEGIN;
UPDATE revision SET number = number + 1;
INSERT INTO policies SELECT 'newer', 'name: newer', convert_to('{"format": 999, "name": "newer"}', 'UTF8'), '["concerned-*"]', '["*"]',
    'api', '', 0, NULL, 1, generation, number, 0, 'a newer control plane' FROM revision;
INSERT INTO policy_versions SELECT p.*, false FROM policies p WHERE name = 'newer';
INSERT INTO changes SELECT r.generation, r.number, 0, (extract(epoch FROM now()) * 1000000)::bigint, 'a newer control plane', 'policy',
    'newer', body, agents, namespaces, '[]', '[]' FROM policies, revision r WHERE name = 'newer';
COMMIT;
"#;

async fn assert_runs(agent: &Agent) {
    let (status, body) = agent.rest("fixture.get_item", json!({})).await;
    assert_eq!(status, 200, "{body}");
}

async fn assert_denied(agent: &Agent, reason: &str) {
    let (status, body) = agent.rest("fixture.get_item", json!({})).await;
    assert_eq!((status, &body["reason"]), (403, &json!(reason)), "{body}");
}

#[tokio::test]
async fn an_undecodable_policy_is_nacked_and_denies_its_agents_while_a_stop_still_arrives() {
    let fleet = Fleet::on_postgres(1, "loop:\n  max: 10000\n").await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("old")).await;
    let operator = fleet.operator();
    let revision = operator.put_policy("everybody", EVERYBODY).await;
    operator.applied(&revision, 1).await;
    let (concerned, other) = (
        sidecar.stateless_agent("concerned-1"),
        sidecar.stateless_agent("other"),
    );
    assert_runs(&concerned).await;
    assert_runs(&other).await;

    let cluster = fleet.cluster.as_ref().unwrap();
    cluster
        .tool("psql", &["-d", "toolgate", "-v", "ON_ERROR_STOP=1", "-c", NEWER])
        .unwrap();
    let rollout = wait::until("the sidecar rejects it", || async {
        let rollout = operator.get("/rollouts/latest").await;
        (rollout["rejected"] == 1).then_some(rollout)
    })
    .await;
    assert_ne!(rollout["revision"], json!(revision));
    assert_eq!(rollout["sidecars"][0]["state"], "rejected", "{rollout:#}");
    let reason = rollout["sidecars"][0]["reasons"][0].as_str().unwrap();
    assert!(
        reason.starts_with("policy newer: ") && reason.contains("999"),
        "{reason}"
    );
    let listed = operator.get("/sidecars").await;
    assert_eq!(listed[0]["nacks"][0]["name"], "newer", "{listed:#}");

    assert_denied(&concerned, "invalid_policy").await;
    assert_runs(&other).await;

    let stop = json!({"scope": "agent:other", "reason": "test"});
    let stop = operator.post("/stops?wait=applied", stop).await;
    assert_eq!(stop["applied"], 1, "{stop}");
    assert_denied(&other, "stopped").await;
    operator
        .delete(&format!("/stops/{}", stop["id"].as_str().unwrap()))
        .await;
    wait::until("the stop is lifted", || async {
        (other.rest("fixture.get_item", json!({})).await.0 == 200).then_some(())
    })
    .await;

    let revision = operator.put_policy("newer", MENDED).await;
    operator.applied(&revision, 1).await;
    assert_runs(&concerned).await;
    let listed = operator.get("/sidecars").await;
    assert_eq!(listed[0]["nacks"], json!([]), "{listed:#}");
}
