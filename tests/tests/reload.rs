//! A changed configuration file takes effect while `toolgate up` runs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::path::PathBuf;

use serde_json::{Value, json};
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
