//! A changed configuration file takes effect while `toolgate up` runs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::agent::Agent;
use tests::programs::built;
use tests::up::Up;
use tests::wait;

const POLICY: &str = r#"
pin_tools: true
policies:
  - name: people
    agent: "*"
    rules:
      - tools: ["*.get_item"]
        action: allow
"#;

fn server(up: &Up, name: &str) -> String {
    format!(
        "  - name: {name}\n    transport: stdio\n    command: {}\n    args: [stdio, {}/ran-{name}]\n",
        built("fixture-mcp").display(),
        up.folder.path().display()
    )
}

struct Configuration {
    path: PathBuf,
    text: String,
}

impl Configuration {
    fn of(up: &Up) -> Self {
        let path = up.folder.path().join("toolgate.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        Self { path, text }
    }

    fn write(&self, text: &str) {
        std::fs::write(&self.path, text).unwrap();
    }

    fn with_server(&self, server: &str) -> String {
        self.text
            .replacen("mcp_servers:\n", &format!("mcp_servers:\n{server}"), 1)
    }
}

async fn until_served(up: &Up, tool: &str, is_served: bool) {
    let agent = up.agent("claude").await;
    wait::until(&format!("{tool} is served: {is_served}"), || async {
        let served = agent.tools().await.iter().any(|name| name == tool);
        (served == is_served).then_some(())
    })
    .await;
}

async fn sidecar(up: &Up) -> Value {
    up.operator().get("/sidecars").await[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_server_is_served_and_pinned_and_a_removed_one_is_gone() {
    let up = Up::start(POLICY).await;
    let configuration = Configuration::of(&up);
    let before = sidecar(&up).await;
    let children = tests::up::children(up.process.id());
    assert_eq!(children.len(), 1);

    configuration.write(&configuration.with_server(&server(&up, "second")));
    until_served(&up, "second.get_item", true).await;
    let agent = up.agent("claude").await;
    wait::until("the control plane has pinned the new tools", || async {
        let called = agent.call("second.get_item", json!({"id": "a"})).await;
        called.is_ok().then_some(())
    })
    .await;
    let after = sidecar(&up).await;
    assert_eq!(after["id"], before["id"], "it is the same sidecar");
    assert!(
        tests::up::children(up.process.id()).contains(&children[0]),
        "what did not change goes on"
    );

    configuration.write(&configuration.text);
    until_served(&up, "second.get_item", false).await;
    let called = agent.call("second.get_item", json!({"id": "a"})).await;
    assert!(!called.is_ok(), "{:?}", called.answer);
    wait::until("its process has ended", || async {
        (tests::up::children(up.process.id()) == children).then_some(())
    })
    .await;
    until_served(&up, "fixture.get_item", true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_added_between_two_starts_is_served() {
    let mut up = Up::start(POLICY).await;
    let before = sidecar(&up).await;
    up.process.terminate();
    let configuration = Configuration::of(&up);
    configuration.write(&configuration.with_server(&server(&up, "second")));
    up.restart().await;
    until_served(&up, "second.get_item", true).await;
    assert_eq!(sidecar(&up).await["id"], before["id"]);
}

/// Outcomes of the same call, one after the other.
async fn repeated(agent: &Agent, times: usize) -> Vec<u16> {
    let mut outcomes = Vec::new();
    for _ in 0..times {
        outcomes.push(agent.rest("fixture.get_item", json!({"id": "same"})).await.0);
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_fleet_decides_gets_looser_and_stricter_while_it_runs() {
    let strict = "hide_denied_tools: true\nloop: {max: 2}\ntraces: {params: digest}\nstaleness: {write: 60s, read: 90s}\n";
    let loose = "hide_denied_tools: false\nloop: {max: 50}\ntraces: {params: full}\nstaleness: {write: 9m, read: 9m}\n";
    let up = Up::start(&format!("{POLICY}{strict}")).await;
    let configuration = Configuration::of(&up);
    until_served(&up, "fixture.get_item", true).await;
    until_served(&up, "fixture.delete_item", false).await;
    let agent = up.agent("claude").await;
    assert_eq!(repeated(&agent, 3).await, [200, 200, 429]);
    let records = up.operator().records("tool=fixture.get_item&outcome=ok", 2).await;
    assert!(records[0]["params"].is_null(), "{}", records[0]);

    configuration.write(&configuration.text.replace(strict, loose));
    until_served(&up, "fixture.delete_item", true).await;
    wait::until("more of the same is no loop", || async {
        (repeated(&agent, 1).await == [200]).then_some(())
    })
    .await;
    assert_eq!(repeated(&agent, 5).await, [200; 5]);
    wait::until("the records hold arguments", || async {
        let records = up.operator().records("tool=fixture.get_item&outcome=ok", 7).await;
        (records[0]["params"]["id"] == "same").then_some(())
    })
    .await;
    let log = up.process.log();
    assert!(log.contains(r#"at_next_start=[]"#), "{log}");

    configuration.write(&configuration.text);
    until_served(&up, "fixture.delete_item", false).await;
    assert_eq!(repeated(&agent, 3).await.last(), Some(&429));
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_of_arguments_change_while_it_runs_and_that_of_messages_is_named() {
    let before = "limits: {argument_bytes: 64, message_bytes: 4KiB, depth: 3}\n";
    let up = Up::start(&format!("{POLICY}{before}")).await;
    let configuration = Configuration::of(&up);
    until_served(&up, "fixture.get_item", true).await;
    let agent = up.agent("claude").await;
    let call = async |arguments: Value| agent.rest("fixture.get_item", arguments).await.0;
    let (large, deep) = (
        json!({"id": "x".repeat(200)}),
        json!({"id": 1, "a": {"b": {"c": {"d": {"e": 1}}}}}),
    );
    assert!(call(large.clone()).await >= 400 && call(deep.clone()).await >= 400);

    let after = "limits: {argument_bytes: 1KiB, message_bytes: 8KiB, depth: 9}\n";
    configuration.write(&configuration.text.replace(before, after));
    wait::until("larger arguments pass", || async {
        (call(large.clone()).await == 200).then_some(())
    })
    .await;
    assert_eq!(call(deep.clone()).await, 200);
    wait::until("what waits is named", || async {
        let log = up.process.log();
        log.contains(r#"at_next_start=["limits.message_bytes"]"#)
            .then_some(())
    })
    .await;
    configuration.write(&configuration.text);
    wait::until("they are refused again", || async {
        (call(deep.clone()).await >= 400).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_policies_are_applied_and_a_file_with_mistakes_changes_nothing() {
    let up = Up::start(POLICY).await;
    let configuration = Configuration::of(&up);
    let agent = up.agent("claude").await;
    let is_allowed = || async {
        let (status, _) = agent.decide("fixture.get_item", json!({"id": "a"})).await;
        status == 200
    };
    wait::until("its tools are pinned", || async {
        is_allowed().await.then_some(())
    })
    .await;

    let refused = configuration.text.replace("action: allow", "action: alow");
    configuration.write(&refused);
    wait::until("the mistake is logged", || async {
        up.process.log().contains("the one in force stays").then_some(())
    })
    .await;
    assert!(is_allowed().await);

    configuration.write(&configuration.text.replace("action: allow", "action: deny"));
    wait::until("the new policy is in force", || async {
        (!is_allowed().await).then_some(())
    })
    .await;

    configuration.write(&configuration.text.replace("seconds: 2", "seconds: 3"));
    wait::until("what waits for the next start is named", || async {
        up.process
            .log()
            .contains(r#"at_next_start=["drain"]"#)
            .then_some(())
    })
    .await;
    wait::until("the policy of the file is in force again", || async {
        is_allowed().await.then_some(())
    })
    .await;
}
