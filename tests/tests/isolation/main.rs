//! Who sees and may do what: agents and sidecars open no operator path, and a namespace sees nothing of another.

mod approvals;
mod operators;
mod records;

use std::collections::BTreeSet;

use proto::v1::watch_response::Message as Hear;
use proto::v1::{DeclaredTool, PublishRequest, catalogue_client::CatalogueClient, pin_status};
use serde_json::{Value, json};
use tests::fleet::{Fleet, SidecarOptions};
use tests::programs::built;
use tests::raw::RawSidecar;
use tests::wait;

/// Credentials that do not end while a test uses them by hand.
const LASTING: &str = "credentials:\n  ttl: 1h\n";

/// A fleet with a namespace `blue` that has one of everything, and a sidecar of it.
async fn blue(fleet: &Fleet) -> tests::fleet::Sidecar {
    let program = built("fixture-mcp");
    let sidecar = fleet
        .sidecar(&SidecarOptions {
            namespace: "blue".to_owned(),
            agents: vec!["blue-*".to_owned()],
            extra: format!(
                "mcp_servers:\n  - name: blue_server\n    transport: stdio\n    command: {}\n    args: [stdio, {}/blue-ran]\n",
                program.display(),
                fleet.folder.path().display()
            ),
            ..SidecarOptions::named("blue-sidecar")
        })
        .await;
    let operator = fleet.operator();
    let rules = "rules: [{tools: ['blue_server.write_item'], action: human_approval}, {tools: ['blue_server.*'], action: allow}]";
    let by_namespace = format!("name: blue-by-namespace\nnamespace: blue\nagent: '*'\n{rules}\n");
    let revision = operator.put_policy("blue-by-namespace", &by_namespace).await;
    // Raw sidecars acknowledge nothing, so the rollout is never complete.
    wait::until("the sidecar has applied its policy", || async {
        let rollout = operator.get(&format!("/rollouts/{revision}")).await;
        (rollout["applied"].as_u64() >= Some(1)).then_some(())
    })
    .await;
    let by_agent = format!("name: blue-by-agent\nagent: 'blue-*'\n{rules}\n");
    operator.put_policy("blue-by-agent", &by_agent).await;
    let grant = json!({"agent": "*", "tools": "blue_server.get_item", "duration": "1h", "namespace": "blue", "reason": "blue"});
    operator.post("/grants", grant).await;
    let stop = json!({"scope": "agent:blue-stopped", "namespace": "blue", "reason": "blue"});
    operator.post("/stops", stop).await;
    operator
        .post(
            "/stops",
            json!({"scope": "namespace:blue-other", "reason": "blue"}),
        )
        .await;
    wait::until("the upstream's tools are pinned", || async {
        let pins = operator.get("/tools/pins?all=true").await;
        (pins.as_array()?.len() == 4).then_some(())
    })
    .await;
    sidecar
}

async fn red(fleet: &Fleet) -> RawSidecar {
    let agents = vec!["red-*".to_owned()];
    let token = fleet.join_token("red", &agents).await;
    RawSidecar::enrol(fleet, &token, &agents).await.unwrap()
}

fn belongs_to_red(heard: &tests::raw::RawWatch) {
    for resource in heard.resources() {
        let body: Value = serde_json::from_slice(&resource.body).unwrap();
        match resource.r#type.as_str() {
            "policy" => assert!(resource.name.starts_with("red"), "{resource:?}"),
            "pin" | "grant" => assert_eq!(body["namespace"], "red", "{resource:?}"),
            "setting" => assert_eq!(resource.name, "fleet"),
            other => panic!("a resource of type {other}: {resource:?}"),
        }
    }
    let text = heard.text();
    let at = text.find("blue");
    assert!(
        at.is_none(),
        "{:?}",
        at.map(|at| &text[at.saturating_sub(200)..text.len().min(at + 200)])
    );
}

#[tokio::test]
async fn nothing_that_a_sidecar_receives_belongs_to_another_namespace() {
    let fleet = Fleet::on_sqlite(&format!("pin_tools: true\n{LASTING}")).await;
    let operator = fleet.operator();
    let red_policy =
        |name: &str| format!("name: {name}\nagent: 'red-*'\nrules: [{{tools: ['*'], action: allow}}]\n");
    operator.put_policy("red-first", &red_policy("red-first")).await;
    let red_one = red(&fleet).await;
    let mut early = red_one.watch().await;
    early
        .until("the first view", |message| matches!(message, Hear::Full(_)))
        .await;

    // What changes while it watches.
    let sidecar = blue(&fleet).await;
    operator.put_policy("red-second", &red_policy("red-second")).await;
    let grant = json!({"agent": "red-*", "tools": "x.y", "duration": "1h", "namespace": "red"});
    operator.post("/grants", grant).await;
    early
        .until("the grant of its namespace", |message| {
            tests::raw::resources(message)
                .iter()
                .any(|resource| resource.r#type == "grant")
        })
        .await;
    operator
        .post("/stops", json!({"scope": "namespace:red", "reason": "red drill"}))
        .await;
    let holds =
        |message: &Hear| matches!(message, Hear::Stops(set) if format!("{set:?}").contains("red drill"));
    early.until("the stop of its namespace", holds).await;
    early.ping().await;
    early
        .until("a heartbeat", |message| matches!(message, Hear::Heartbeat(_)))
        .await;
    let names: BTreeSet<String> = early
        .resources()
        .into_iter()
        .map(|resource| resource.name)
        .collect();
    assert!(
        names.contains("red-first") && names.contains("red-second"),
        "{names:?}"
    );
    belongs_to_red(&early);

    // What is there when it comes.
    let red_two = red(&fleet).await;
    let mut late = red_two.watch().await;
    late.ping().await;
    late.until("a heartbeat", |message| matches!(message, Hear::Heartbeat(_)))
        .await;
    assert!(late.text().contains("red-second") && late.text().contains("red drill"));
    belongs_to_red(&late);
    assert!(!format!("{:?}{:?}", red_one.enrolled, red_two.enrolled).contains("blue"));
    let blue_token = fleet.join_token("blue", &["blue-*".to_owned()]).await;
    let blue_raw = RawSidecar::enrol(&fleet, &blue_token, &[]).await.unwrap();
    assert_ne!(red_one.enrolled.digest_key, blue_raw.enrolled.digest_key);
    assert_eq!(red_one.enrolled.digest_key, red_two.enrolled.digest_key);

    // The other way round, the real sidecar of `blue` still serves its own, whom the stop of `red` does not concern.
    let called = sidecar
        .agent("blue-agent")
        .await
        .call("blue_server.get_item", json!({}))
        .await;
    assert!(called.is_ok(), "{}", called.answer);
    pins_of_one_namespace_say_nothing_about_another(&red_two).await;
}

async fn pins_of_one_namespace_say_nothing_about_another(red: &RawSidecar) {
    let publish = PublishRequest {
        upstream: "blue_server".to_owned(),
        tools: vec![DeclaredTool {
            name: "blue_server.get_item".to_owned(),
            fingerprint: vec![9; 32].into(),
            declared: br#"{"name":"get_item"}"#.as_slice().into(),
            kind: "mcp".to_owned(),
        }],
    };
    let mut client = CatalogueClient::new(red.channel.clone());
    let answer = client.publish(red.request(publish)).await.unwrap().into_inner();
    assert_eq!(answer.pins.len(), 1, "{answer:?}");
    assert_eq!(
        answer.pins[0].status(),
        pin_status::Status::Pinned,
        "first seen in its namespace"
    );
}
