//! One tool's action set by the command, in a file of the policy directory: the sidecar decides by it, and nothing else of the
//! file changes.

use std::path::Path;

use reqwest::Method;
use serde_json::json;
use tests::agent::Agent;
use tests::fleet::{Fleet, SidecarOptions, TOKEN};
use tests::operator::Operator;
use tests::up::{Ran, output, toolgate};
use tests::wait;

const FILE: &str = "\u{feff}# Who may do what.\r\n--- # a stranger\r\nname: other\r\nagent: other\r\nrules: [{action: deny}]\r\n---\r\n\
                    rules:\r\n-   tools: [ 'fixture.get_item' ]   # reads\r\n    action:  allow\r\n\r\n\
                    # everything else\r\n-   action: deny   # all of it\r\n    message: |\r\n      Ask\t\u{e9}lodie.\r\n\
                    name: worker\r\nagent: worker   # one agent";

/// `toolgate policy set worker TOOL ACTION` against the fleet.
async fn set(fleet: &Fleet, arguments: &[&str]) -> Ran {
    let mut command = toolgate(&["policy", "set", "worker"]);
    command.args(arguments);
    command
        .arg("--url")
        .arg(format!("https://localhost:{}", fleet.planes[0].operator_port));
    command
        .arg("--ca-cert")
        .arg(fleet.ca_file())
        .env("TOOLGATE_TOKEN", TOKEN);
    output(command, "").await
}

async fn decides(agent: &Agent, tool: &str, action: &str) {
    wait::until_equal(
        &format!("the sidecar decides {action} for {tool}"),
        action.to_owned(),
        || async {
            let (_, body) = agent.decide(tool, json!({"id": 1})).await;
            body["action"].as_str().unwrap_or_default().to_owned()
        },
    )
    .await;
}

async fn shown(operator: &Operator, tool: &str) -> String {
    let all = operator.get("/tools/decisions?agent=worker").await;
    let found = all.as_array().unwrap().iter().find(|entry| entry["name"] == tool);
    found.unwrap()["action"].as_str().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_set_by_the_command_is_decided_so_and_as_before_when_it_inherits() {
    let folder = tests::up::folder();
    let path = folder.path().join("all.yaml");
    std::fs::write(&path, FILE).unwrap();
    let fleet = Fleet::on_sqlite(&format!("policy_dir: {}\n", folder.path().display())).await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let agent = sidecar.stateless_agent("worker");
    let operator = fleet.operator();
    decides(&agent, "fixture.get_item", "allow").await;
    decides(&agent, "fixture.write_item", "deny").await;

    let ran = set(&fleet, &["fixture.write_item", "allow", "--by", "dana\u{202e}"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stdout
            .contains("fixture.write_item is allow for worker (was deny)"),
        "{ran:?}"
    );
    decides(&agent, "fixture.write_item", "allow").await;
    assert_eq!(shown(&operator, "fixture.write_item").await, "allow");
    let called = agent.call_modern("fixture.write_item", json!({"id": 1})).await;
    assert!(called.is_ok(), "{called:?}");

    let after = read(&path);
    let (head, tail) = FILE.split_at(FILE.find("# everything else").unwrap());
    let inserted = after
        .strip_prefix(head)
        .and_then(|rest| rest.strip_suffix(tail))
        .unwrap();
    let lines: Vec<&str> = inserted.split("\r\n").collect();
    assert!(
        lines[0].starts_with("# set from console, 20") && lines[0].ends_with(" by dana"),
        "{lines:?}"
    );
    assert_eq!(
        lines[1..],
        ["-   tools: [\"fixture.write_item\"]", "    action: allow", ""]
    );
    assert_eq!(read(&folder.path().join("all.yaml.bak")), FILE);

    let ran = set(&fleet, &["fixture.get_item", "inherit"]).await;
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("written by hand"), "{ran:?}");
    assert_eq!(read(&path), after);

    let ran = set(&fleet, &["fixture.write_item", "inherit"]).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(read(&path), FILE);
    decides(&agent, "fixture.write_item", "deny").await;
    decides(&agent, "fixture.get_item", "allow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_at_the_same_time_both_hold() {
    let folder = tests::up::folder();
    let path = folder.path().join("all.yaml");
    std::fs::write(&path, FILE).unwrap();
    let fleet = Fleet::on_sqlite(&format!("policy_dir: {}\n", folder.path().display())).await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let agent = sidecar.stateless_agent("worker");
    let operator = fleet.operator();
    let put = |tool: &str, action: &str| {
        let path = format!("/policies/worker/tools/{tool}");
        operator.try_send(
            operator
                .request(Method::PUT, &path)
                .json(&json!({"action": action})),
        )
    };
    let (one, other) = tokio::join!(
        put("fixture.write_item", "allow"),
        put("fixture.slow", "human_approval")
    );
    assert_eq!((one.0, other.0), (200, 200), "{one:?} {other:?}");
    decides(&agent, "fixture.write_item", "allow").await;
    decides(&agent, "fixture.slow", "human_approval").await;
    let after = read(&path);
    assert_eq!(after.matches("\r\n").count(), FILE.matches("\r\n").count() + 6);
}
