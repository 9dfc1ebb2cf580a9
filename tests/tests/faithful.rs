//! server-everything behind `toolgate up`: what Toolgate does not govern comes through as the bytes that the server sent.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tests::agent::{Agent, LEGACY, messages};
use tests::fleet::free_port;
use tests::process::Process;
use tests::programs::npm;
use tests::up::{Up, folder};
use tests::wait;

const POLICY: &str = r#"
policies:
  - name: open
    agent: "reader"
    rules:
      - tools: ["*"]
        action: allow
  - name: narrow
    agent: "narrow"
    rules:
      - tools: ["one.resource:demo://resource/static/document/features.md", "one.prompt:simple-prompt"]
        action: allow
"#;

/// A raw result, or the raw error.
fn outcome(message: &str) -> String {
    let mut answer: HashMap<String, Box<RawValue>> =
        serde_json::from_str(message).unwrap_or_else(|error| panic!("{error}: {message}"));
    let raw = answer.remove("result").or_else(|| answer.remove("error"));
    raw.unwrap_or_else(|| panic!("no answer: {message}"))
        .get()
        .to_owned()
}

/// server-everything over its standard streams, without Toolgate.
struct Direct {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Direct {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Direct {
    fn start() -> Self {
        let mut command = Command::new(npm("mcp-server-everything"));
        command
            .arg("stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut direct = Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        };
        let client = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "direct", "version": "1"}});
        direct.ask("initialize", &client);
        writeln!(
            direct.input,
            r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
        )
        .unwrap();
        direct
    }

    fn ask(&mut self, method: &str, params: &Value) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
        writeln!(self.input, "{message}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server ended");
            let read: Value = serde_json::from_str(&line).unwrap();
            if read["id"] == 5 && read.get("method").is_none() {
                return outcome(&line);
            }
        }
    }
}

async fn through(agent: &Agent, method: &str, params: &Value) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params});
    let text = agent.legacy(&message).send().await.unwrap().text().await.unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap_or(&text);
    outcome(line)
}

fn everything(port: Option<u16>) -> String {
    let command = npm("mcp-server-everything").display().to_string();
    let http = port.map_or(String::new(), |port| {
        format!("  - name: two\n    transport: streamable-http\n    url: http://127.0.0.1:{port}/mcp\n")
    });
    format!(
        "mcp_servers:\n  - name: one\n    transport: stdio\n    command: {command}\n    args: [stdio]\n{http}{POLICY}"
    )
}

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

const FEATURES: &str = "demo://resource/static/document/features.md";

#[tokio::test(flavor = "multi_thread")]
async fn resources_and_prompts_come_through_as_the_server_sent_them() {
    let place = folder();
    let (_http, port) = over_http(place.path()).await;
    let up = Up::start(&everything(Some(port))).await;
    let mut direct = Direct::start();
    let agent = up.agent("reader").await;
    let reference = |name: &str| json!({"ref": {"type": "ref/prompt", "name": name}, "argument": {"name": "department", "value": "E"}});

    for upstream in ["one", "two"] {
        for (method, own, governed) in [
            (
                "resources/read",
                json!({"uri": FEATURES}),
                json!({"uri": format!("{upstream}.{FEATURES}")}),
            ),
            (
                "prompts/get",
                json!({"name": "args-prompt", "arguments": {"city": "Oslo"}}),
                json!({"name": format!("{upstream}.args-prompt"), "arguments": {"city": "Oslo"}}),
            ),
            (
                "completion/complete",
                reference("completable-prompt"),
                reference(&format!("{upstream}.completable-prompt")),
            ),
            (
                "prompts/get",
                json!({"name": "args-prompt"}),
                json!({"name": format!("{upstream}.args-prompt")}),
            ),
        ] {
            let (without, with) = (direct.ask(method, &own), through(&agent, method, &governed).await);
            assert_eq!(with, without, "{upstream} {method} {own}");
        }
        for (method, member, key, joined) in [
            ("resources/list", "resources", "uri", "."),
            (
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
                ".",
            ),
            ("prompts/list", "prompts", "name", "."),
        ] {
            let without: Value = serde_json::from_str(&direct.ask(method, &json!({}))).unwrap();
            let with: Value = serde_json::from_str(&through(&agent, method, &json!({})).await).unwrap();
            let entries = without[member].as_array().unwrap();
            assert!(!entries.is_empty(), "{without}");
            for entry in entries {
                let mut expected = entry.clone();
                expected[key] = json!(format!("{upstream}{joined}{}", entry[key].as_str().unwrap()));
                assert!(
                    with[member].as_array().unwrap().contains(&expected),
                    "{expected} in {with}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_only_what_its_policy_lets_it_and_every_attempt_is_recorded() {
    let up = Up::start(&everything(None)).await;
    let agent = up.agent("narrow").await;
    let list = |text: String, member: &str, key: &str| -> Vec<String> {
        let result: Value = serde_json::from_str(&text).unwrap();
        let entries = result[member].as_array().unwrap().clone();
        entries
            .iter()
            .map(|entry| entry[key].as_str().unwrap().to_owned())
            .collect()
    };
    let none = json!({});
    let resources = through(&agent, "resources/list", &none).await;
    assert_eq!(list(resources, "resources", "uri"), [format!("one.{FEATURES}")]);
    let prompts = through(&agent, "prompts/list", &none).await;
    assert_eq!(list(prompts, "prompts", "name"), ["one.simple-prompt"]);
    let templates = through(&agent, "resources/templates/list", &none).await;
    assert!(list(templates, "resourceTemplates", "uriTemplate").is_empty());

    let read = through(&agent, "resources/read", &json!({"uri": FEATURES})).await;
    assert!(read.contains("contents"), "{read}");
    let denied = through(
        &agent,
        "resources/read",
        &json!({"uri": "one.demo://resource/dynamic/text/1"}),
    )
    .await;
    let denied: Value = serde_json::from_str(&denied).unwrap();
    assert_eq!(
        denied["data"]["dev.toolgate/decision"]["reason"], "no_rule",
        "{denied}"
    );
    let method = through(&agent, "tasks/list", &none).await;
    assert!(method.contains("one.method:tasks/list"), "{method}");

    let operator = up.operator();
    let records = operator.records("agent=narrow", 3).await;
    let of = |tool: &str| {
        records
            .iter()
            .find(|record| record["tool"] == tool)
            .cloned()
            .unwrap_or_default()
    };
    assert_eq!(
        of(&format!("one.resource:{FEATURES}"))["outcome"],
        "ok",
        "{records:?}"
    );
    assert_eq!(
        of("one.resource:demo://resource/dynamic/text/1")["outcome"],
        "denied",
        "{records:?}"
    );
    assert_eq!(of("one.method:tasks/list")["outcome"], "denied", "{records:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_of_a_resource_come_to_the_session_that_subscribed() {
    let place = folder();
    let (_http, port) = over_http(place.path()).await;
    let up = Up::start(&everything(Some(port))).await;
    for upstream in ["one", "two"] {
        let (subscriber, other) = (up.agent("reader").await, up.agent("reader").await);
        let uri = format!("{upstream}.demo://resource/dynamic/text/1");
        let subscribed = through(&subscriber, "resources/subscribe", &json!({"uri": uri})).await;
        assert_eq!(subscribed, "{}", "{upstream}");
        let stream = |agent: &Agent| {
            agent
                .request(reqwest::Method::GET, "/mcp")
                .header("MCP-Protocol-Version", LEGACY)
                .header("Mcp-Session-Id", agent.session().unwrap())
        };
        let mut heard = stream(&subscriber).send().await.unwrap();
        let _unheard = stream(&other).send().await.unwrap();
        let toggled = subscriber
            .call(&format!("{upstream}.toggle-subscriber-updates"), json!({}))
            .await;
        assert!(toggled.is_ok(), "{}", toggled.answer);
        let mut text = String::new();
        let hearing = async {
            loop {
                let chunk = heard.chunk().await.unwrap().expect("the stream ended");
                text.push_str(&String::from_utf8_lossy(&chunk));
                let mut found = messages(&text).into_iter();
                if let Some(found) =
                    found.find(|message| message["method"] == "notifications/resources/updated")
                {
                    return found;
                }
            }
        };
        let update = tokio::time::timeout(wait::PATIENCE, hearing)
            .await
            .expect("the update comes");
        assert_eq!(update["params"]["uri"], uri);
    }
}
