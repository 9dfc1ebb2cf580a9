//! What an edit costs on the wire.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use std::fmt::Write as _;

use serde_json::json;
use tests::fleet::{Fleet, SidecarOptions};
use tests::meter::Meter;
use tests::simulated::Simulated;

const POLICIES: usize = 10_000;
const SIMULATED: usize = 3;
const BOUND: u64 = 4 * 1024;

fn edited(action: &str) -> String {
    format!("name: edited\nagent: editor\nrules:\n  - tools: ['*']\n    action: {action}\n")
}

/// Ten thousand policies that concern every watcher.
fn folder_of_policies() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for number in 0..POLICIES {
        write!(
            text,
            "---\nname: policy-{number}\nagent: 'team-{number}-*'\nrules:\n  - tools: [fixture.get_*]\n    action: allow\n"
        )
        .unwrap();
    }
    std::fs::write(folder.path().join("all.yaml"), text).unwrap();
    folder
}

#[tokio::test]
async fn one_edit_among_ten_thousand_policies_sends_under_four_kibibytes_to_each_watcher() {
    let policies = folder_of_policies();
    let fleet = Fleet::on_sqlite(&format!(
        "policy_dir: {}\nloop:\n  max: 10000\n",
        policies.path().display()
    ))
    .await;
    let operator = fleet.operator();
    operator.put_policy("edited", &edited("deny")).await;

    let port = fleet.planes[0].grpc_port;
    let mut meters = vec![Meter::before(port).await];
    let sidecar = fleet
        .sidecar(&SidecarOptions {
            control_url: Some(meters[0].grpc_url()),
            ..SidecarOptions::named("real")
        })
        .await;
    let agent = sidecar.stateless_agent("editor");
    let token = fleet.join_token("default", &["*".to_owned()]).await;
    let mut simulated = Vec::new();
    for number in 0..SIMULATED {
        let meter = Meter::before(port).await;
        let name = format!("simulated-{number}");
        simulated.push(Simulated::join(&meter.grpc_url(), fleet.ca_file(), &token, &name).await);
        meters.push(meter);
    }
    let received = || meters.iter().map(Meter::received).collect::<Vec<_>>();
    for bytes in received() {
        assert!(
            bytes > 10 * BOUND,
            "the meter sees the first snapshot: {bytes} bytes"
        );
    }

    for (action, status) in [("allow", 200), ("deny", 403), ("allow", 200)] {
        let before = received();
        let revision = operator.put_policy("edited", &edited(action)).await;
        operator.applied(&revision, meters.len() as u64).await;
        let after = received();
        for (before, after) in before.iter().zip(after) {
            let bytes = after - before;
            assert!(bytes > 0 && bytes < BOUND, "the edit sent {bytes} bytes");
        }
        let (found, body) = agent.rest("fixture.get_item", json!({})).await;
        assert_eq!(found, status, "{body}");
    }
    assert!(simulated.iter().all(|one| one.received().fulls == 1));
}
