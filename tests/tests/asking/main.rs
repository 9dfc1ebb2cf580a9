//! Servers that ask, sessions with servers, and streams that go on: what lies between one agent session and its upstreams.

mod leak;
mod logs;
mod questions;
mod rounds;
mod streams;
mod subscriptions;

use std::process::Command;

use serde_json::{Value, json};
use tests::agent::Agent;
use tests::fleet::free_port;
use tests::process::Process;
use tests::programs::{conformance_fixture as fixture, npm};
use tests::up::Up;
use tests::wait;

const POLICY: &str = r#"
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
"#;

/// server-everything over HTTP, where it begins a session for each client.
async fn over_http(place: &std::path::Path) -> (Process, u16) {
    let port = free_port();
    let mut command = Command::new(npm("mcp-server-everything"));
    command.arg("streamableHttp").env("PORT", port.to_string());
    let process = Process::spawn(command, &place.join("everything.log"));
    wait::until("server-everything listens", || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
    })
    .await;
    (process, port)
}

fn http(port: u16, more: &str) -> String {
    format!(
        "mcp_servers:\n  - {{name: all, transport: streamable-http, url: \"http://127.0.0.1:{port}/mcp\"{more}}}\n{POLICY}"
    )
}

fn stdio(more: &str) -> String {
    let command = npm("mcp-server-everything").display().to_string();
    format!(
        "mcp_servers:\n  - {{name: all, transport: stdio, command: {command}, args: [stdio]{more}}}\n{POLICY}"
    )
}

fn everything() -> Value {
    json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}})
}

async fn connected(up: &Up, name: &str, capabilities: Value) -> Agent {
    Agent::new(&up.url, name, None).connect_with(capabilities).await
}

/// What the client called `name` says to a question.
fn says(name: &str, method: &str, params: &Value) -> Value {
    match method {
        "sampling/createMessage" => json!({
            "role": "assistant", "model": name,
            "content": {"type": "text", "text": format!("{name} has read {}", params["messages"][0]["content"]["text"])},
        }),
        "elicitation/create" if params["mode"] == "url" => json!({"action": "accept"}),
        "elicitation/create" => json!({"action": "accept", "content": {"name": name, "check": true}}),
        "roots/list" => json!({"roots": [{"uri": format!("file:///home/{name}"), "name": name}]}),
        other => panic!("{name} was asked {other}"),
    }
}

async fn call(agent: &Agent, name: &str, tool: &str, arguments: Value) -> (Vec<Value>, String) {
    let params = json!({"name": tool, "arguments": arguments});
    let (asked, answer) = agent
        .answering("tools/call", params, |method, params| says(name, method, params))
        .await;
    (asked, answer["result"].to_string())
}

async fn recorded(up: &Up, agent: &str, tool: &str) -> Vec<Value> {
    let query = format!("agent={agent}");
    let operator = up.operator();
    wait::until(&format!("a record of {tool}"), || async {
        let records = operator.records(&query, 0).await;
        let of_tool: Vec<Value> = records
            .into_iter()
            .filter(|record| record["tool"] == tool)
            .collect();
        (!of_tool.is_empty()).then_some(of_tool)
    })
    .await
}

fn before(url: &str, rules: &str) -> String {
    format!(
        "mcp_servers:\n  - {{name: f, transport: streamable-http, url: \"{url}\"}}\npolicies:\n  - name: only\n    agent: \"*\"\n    rules:\n{rules}"
    )
}

const ALLOW: &str = "      - {tools: [\"*\"], action: allow}\n";
