//! Clients that others wrote: the Python SDK of each era, and `flux7-mesh` as published.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::fleet::{Fleet, SidecarOptions};
use tests::operator::Operator;
use tests::programs::{built, checkout, python};
use tests::up::{Ran, Up, output};

const OPEN: &str = r#"
policies:
  - name: clients
    agent: "*"
    rules:
      - tools: ["fixture.get_item", "fixture.slow"]
        action: allow
      - tools: ["*"]
        action: deny
"#;

const MESH: &str = r#"
approval:
  rest_hold_seconds: 0
policies:
  - name: mesh
    agent: "*"
    rules:
      - tools: ["fixture.get_item", "mesh-agent.add", "Read"]
        action: allow
      - tools: ["fixture.write_item", "Write", "mesh-agent.publish"]
        action: human_approval
      - tools: ["*"]
        action: deny
        message: "not for agents"
"#;

/// A script of `tests/python` in one of the environments.
fn script(environment: &str, name: &str) -> Command {
    let mut command = Command::new(python(environment, "python"));
    command.arg(checkout().join("tests/python").join(name));
    command
        .env_remove("PYTHONPATH")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// What a client of `tests/python/client_*.py` got.
async fn client(era: u8, spec: &Value) -> Value {
    let mut command = script(&format!("clients-{era}"), &format!("client_{era}.py"));
    command.arg(spec.to_string());
    let ran = output(command, "").await;
    assert_eq!(ran.code, 0, "client of era {era} with {spec}:\n{}", ran.stderr);
    ran.json()
}

/// A list, an allowed call and a denied call.
fn calls() -> Value {
    json!([
        {"name": "fixture.get_item", "arguments": {"id": 7}},
        {"name": "fixture.delete_item", "arguments": {"id": 7}},
    ])
}

fn over_http(url: &str, agent: &str) -> Value {
    json!({"url": format!("{url}/mcp"), "headers": {"Authorization": format!("Bearer agent:{agent}")}, "calls": calls()})
}

fn over_stdio(state: &Path, agent: &str) -> Value {
    let program = built("toolgate").display().to_string();
    json!({"command": [program, "mcp", "--agent", agent, "--data-dir", state], "calls": calls()})
}

fn saw_the_governed_tools(answer: &Value, protocol: &str) {
    assert_eq!(answer["protocol"], protocol);
    let tools = answer["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"fixture.get_item") && names.contains(&"fixture.slow"),
        "{names:?}"
    );
    let [allowed, denied] = answer["results"].as_array().unwrap().as_slice() else {
        panic!("{answer}")
    };
    assert_eq!(
        allowed["content"],
        json!([{"type": "text", "text": "get_item {\"id\":7}"}])
    );
    assert_ne!(allowed["isError"], true, "{allowed}");
    assert_eq!(denied["isError"], true, "{denied}");
    assert!(
        denied["content"][0]["text"].as_str().unwrap().contains("denied"),
        "{denied}"
    );
}

async fn each_agent_was_recorded(operator: &Operator, agents: &[&str]) {
    for agent in agents {
        let records = operator.records(&format!("agent={agent}"), 2).await;
        let mut outcomes: Vec<&str> = records
            .iter()
            .map(|record| record["outcome"].as_str().unwrap())
            .collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, ["denied", "ok"], "{agent}: {records:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_of_each_era_lists_and_calls_through_a_sidecar() {
    let fleet = Fleet::on_sqlite("").await;
    let revision = fleet.operator().put_policy("clients", &policy(OPEN)).await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("clients")).await;
    fleet.operator().applied(&revision, 1).await;
    saw_the_governed_tools(&client(1, &over_http(&sidecar.url, "legacy")).await, "2025-11-25");
    saw_the_governed_tools(&client(2, &over_http(&sidecar.url, "modern")).await, "2026-07-28");
    let mut falling_back = over_http(&sidecar.url, "fallback");
    falling_back["mode"] = json!("legacy");
    saw_the_governed_tools(&client(2, &falling_back).await, "2025-11-25");
    each_agent_was_recorded(&fleet.operator(), &["legacy", "modern", "fallback"]).await;
    assert_eq!(
        sidecar
            .ran()
            .iter()
            .filter(|line| line.starts_with("ran delete_item"))
            .count(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_of_each_era_works_in_front_of_toolgate_up_over_http_and_stdio() {
    let up = Up::start(OPEN).await;
    saw_the_governed_tools(&client(1, &over_http(&up.url, "legacy-http")).await, "2025-11-25");
    saw_the_governed_tools(&client(2, &over_http(&up.url, "modern-http")).await, "2026-07-28");
    saw_the_governed_tools(
        &client(1, &over_stdio(&up.state(), "legacy-stdio")).await,
        "2025-11-25",
    );
    saw_the_governed_tools(
        &client(2, &over_stdio(&up.state(), "modern-stdio")).await,
        "2026-07-28",
    );
    each_agent_was_recorded(
        &up.operator(),
        &["legacy-http", "modern-http", "legacy-stdio", "modern-stdio"],
    )
    .await;
}

/// The one document of a `policies:` list, as a document of its own.
fn policy(yaml: &str) -> String {
    let lines = yaml.lines().skip_while(|line| !line.starts_with("  - name:"));
    lines
        .map(|line| line.replacen("  - name:", "    name:", 1))
        .map(|line| line.strip_prefix("    ").unwrap_or(&line).to_owned() + "\n")
        .collect()
}

fn passed(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn flux7_mesh_works_unchanged_as_agent_and_as_operator() {
    let up = Up::start(MESH).await;
    let mut command = script("mesh", "mesh_both.py");
    command.args([&up.url, &up.token()]);
    passed(&output(command, "").await);
    let ran = up.ran();
    let count = |tool: &str| {
        ran.iter()
            .filter(|line| line.starts_with(&format!("ran {tool}")))
            .count()
    };
    assert_eq!(
        (count("get_item"), count("write_item"), count("delete_item")),
        (1, 2, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_flux7_mesh_client_is_agent_and_operator_where_loopback_callers_are_operators() {
    let up = Up::start(&format!("auth:\n  loopback_operators: true\n{MESH}")).await;
    let mut command = script("mesh", "mesh_one.py");
    command.arg(&up.url);
    passed(&output(command, "").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hook_of_flux7_mesh_governs_what_the_harness_runs_itself() {
    let up = Up::start(MESH).await;
    let hook = async |url: &str, mode: &str, payload: Value| {
        let mut command = Command::new(python("mesh", "mesh7-hook"));
        command
            .env("MESH7_URL", url)
            .env("MESH7_HOOK_MODE", mode)
            .env("MESH7_AGENT", "claude")
            .env_remove("MESH7_TOKEN");
        let ran = output(command, &payload.to_string()).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        answer["hookSpecificOutput"]["permissionDecision"].clone()
    };
    let payload =
        |tool: &str| json!({"session_id": "s-1", "tool_name": tool, "tool_input": {"file_path": "/tmp/x"}});
    assert_eq!(hook(&up.url, "enforce", payload("Read")).await, "allow");
    assert_eq!(hook(&up.url, "enforce", payload("Write")).await, "ask");
    assert_eq!(hook(&up.url, "enforce", payload("Bash")).await, "deny");
    assert_eq!(
        hook(&up.url, "enforce", payload("mcp__fixture__get_item")).await,
        Value::Null
    );
    assert_eq!(hook(&up.url, "observe", payload("Bash")).await, Value::Null);
    let nobody = format!("http://127.0.0.1:{}", tests::fleet::free_port());
    assert_eq!(hook(&nobody, "enforce", payload("Read")).await, "deny");
    let records = up.operator().records("agent=claude&session=s-1", 4).await;
    assert!(
        records
            .iter()
            .all(|record| record["outcome"] == "decided" || record["outcome"] == "denied"),
        "{records:?}"
    );
}
