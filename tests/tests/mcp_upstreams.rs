//! What MCP servers do to those who depend on them: restart, change their tools, list them on many pages, fall silent.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::{Value, json};
use tests::agent::{Agent, LEGACY};
use tests::fleet::free_port;
use tests::process::Process;
use tests::programs::{built, checkout, npm, python};
use tests::up::{Up, folder};
use tests::wait;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

const OPEN: &str = r#"
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
# A test that waits repeats its calls on purpose.
loop:
  max: 10000
"#;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const PAGE: usize = 7;

/// A configuration of HTTP servers: name, transport, URL.
fn servers(all: &[(&str, &str, &str)]) -> String {
    let mut yaml = "mcp_servers:\n".to_owned();
    for (name, transport, url) in all {
        writeln!(
            yaml,
            "  - {{name: {name}, transport: {transport}, url: \"{url}\"}}"
        )
        .unwrap();
    }
    yaml + OPEN
}

async fn listening(port: u16) {
    wait::until("the server listens", || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
    })
    .await;
}

/// The Python SDK's server with these tools.
async fn python_server(place: &Path, port: u16, transport: &str, tools: &[&str]) -> Process {
    let mut command = Command::new(python("clients-1", "python"));
    command
        .arg(checkout().join("tests/python/server.py"))
        .args([&port.to_string(), transport])
        .args(tools)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let process = Process::spawn(command, &place.join("python.log"));
    listening(port).await;
    process
}

async fn everything_over_sse(place: &Path) -> (Process, u16) {
    let port = free_port();
    let mut command = Command::new(npm("mcp-server-everything"));
    command.arg("sse").env("PORT", port.to_string());
    let process = Process::spawn(command, &place.join("everything.log"));
    listening(port).await;
    (process, port)
}

/// Waits until an agent's stream says that the tools changed.
async fn hears_of_changed_tools(stream: reqwest::Response) {
    let mut bytes = stream.bytes_stream();
    let mut text = String::new();
    let hearing = async {
        while !text.contains("notifications/tools/list_changed") {
            let chunk = bytes.next().await.expect("the stream goes on").unwrap();
            text.push_str(&String::from_utf8_lossy(&chunk));
        }
    };
    tokio::time::timeout(wait::PATIENCE, hearing)
        .await
        .expect("nothing is told of changed tools");
}

async fn stream_of(agent: &Agent) -> reqwest::Response {
    let request = agent
        .request(Method::GET, "/mcp")
        .header("MCP-Protocol-Version", LEGACY)
        .header("Mcp-Session-Id", agent.session().unwrap());
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    response
}

async fn state_of(agent: &Agent, name: &str) -> Value {
    let response = agent.request(Method::GET, "/mcp-servers").send().await.unwrap();
    let states: Value = response.json().await.unwrap();
    let state = states
        .as_array()
        .unwrap()
        .iter()
        .find(|state| state["name"] == name);
    state
        .unwrap_or_else(|| panic!("{name} is not in {states}"))
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn real_servers_over_sse_are_listed_called_and_discovered() {
    let place = folder();
    let (_everything, one) = everything_over_sse(place.path()).await;
    let two = free_port();
    let _python = python_server(place.path(), two, "sse", &["first", "second"]).await;
    let (one, two) = (
        format!("http://127.0.0.1:{one}/sse"),
        format!("http://127.0.0.1:{two}/sse"),
    );
    let up = Up::start(&servers(&[("one", "sse", &one), ("two", "sse", &two)])).await;
    let agent = up.agent("reader").await;
    assert_eq!(
        agent.call("one.get-sum", json!({"a": 2, "b": 40})).await.text(),
        "The sum of 2 and 40 is 42."
    );
    assert_eq!(
        agent.call("two.second", json!({"text": "né"})).await.text(),
        "second: né"
    );
    let state = state_of(&agent, "two").await;
    assert_eq!(
        (&state["transport"], &state["tools"]),
        (&json!("sse"), &json!(2)),
        "{state}"
    );

    let configuration = up.folder.path().join("toolgate.yaml");
    let mut discover = Command::new(built("toolgate"));
    discover
        .args(["discover", "--output", "json", "--config"])
        .arg(configuration);
    let discovered = tests::up::output(discover, "").await;
    assert_eq!(discovered.code, 0, "{discovered:?}");
    let tools = discovered.json();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert!(
        names.contains(&"one.echo") && names.contains(&"two.first"),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_with_other_tools_is_called_again_and_agents_are_told() {
    for (transport, path) in [("sse", "sse"), ("streamable-http", "mcp")] {
        let (place, port) = (folder(), free_port());
        let mut python = python_server(place.path(), port, transport, &["before"]).await;
        let url = format!("http://127.0.0.1:{port}/{path}");
        let up = Up::start(&servers(&[("python", transport, &url)])).await;
        let agent = up.agent("reader").await;
        let stream = stream_of(&agent).await;
        assert!(agent.call("python.before", json!({"text": "x"})).await.is_ok());

        python.kill();
        let failed = agent.call("python.before", json!({"text": "x"})).await;
        assert!(!failed.is_ok(), "{transport}: {:?}", failed.answer);
        drop(python);
        let _python = python_server(place.path(), port, transport, &["after", "later"]).await;
        hears_of_changed_tools(stream).await;
        assert_eq!(
            agent.tools().await,
            ["python.after", "python.later"],
            "{transport}"
        );
        let called = agent.call("python.after", json!({"text": "x"})).await;
        assert_eq!(called.text(), "after: x", "{transport}: {:?}", called.answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_accepts_and_says_nothing_is_given_up_and_bothers_no_other() {
    let (place, port, other) = (folder(), free_port(), free_port());
    let mut python = python_server(place.path(), port, "streamable-http", &["tool"]).await;
    let _other = python_server(place.path(), other, "streamable-http", &["tool"]).await;
    let urls = [port, other].map(|port| format!("http://127.0.0.1:{port}/mcp"));
    let up = Up::start(&servers(&[
        ("silent", "streamable-http", &urls[0]),
        ("well", "streamable-http", &urls[1]),
    ]))
    .await;
    let agent = up.agent("reader").await;
    python.kill();
    // The kernel takes connections, and nobody answers them.
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let mut hanging = JoinSet::new();
    let asking = agent.clone();
    hanging.spawn(async move { asking.call("silent.tool", json!({"text": "x"})).await });
    for number in 0..20 {
        let called = agent.call("well.tool", json!({"text": number.to_string()})).await;
        assert_eq!(called.text(), format!("tool: {number}"));
    }
    drop(silent);
    let failed = hanging.join_next().await.unwrap().unwrap();
    assert!(!failed.is_ok(), "{:?}", failed.answer);
    let _python = python_server(place.path(), port, "streamable-http", &["tool"]).await;
    wait::until("the server that came back is called", || async {
        let called = agent.call("silent.tool", json!({"text": "x"})).await;
        called.is_ok().then_some(())
    })
    .await;
}

/// A legacy server whose tools are many, and change.
#[derive(Clone, Default)]
struct Many {
    tools: Arc<Mutex<usize>>,
    streams: Arc<Mutex<Vec<mpsc::Sender<String>>>>,
}

impl Many {
    async fn start(count: usize) -> (Self, String, JoinSet<()>) {
        let server = Self::default();
        *server.tools.lock().unwrap() = count;
        let router = Router::new().route("/mcp", post(Self::posted).get(Self::stream));
        let router = router.with_state(server.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(net::serve::serve(
            listener,
            None,
            router,
            net::serve::Limits::default(),
            CancellationToken::new(),
        ));
        (server, url, serving)
    }

    async fn posted(State(server): State<Self>, body: String) -> Response {
        let message: Value = serde_json::from_str(&body).unwrap();
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": LEGACY,
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "many", "version": "1"},
            }),
            Some("tools/list") => server.page(&message["params"]),
            Some("tools/call") => json!({"content": [{"type": "text", "text": message["params"]["name"]}]}),
            _ if message.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                return axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
                    .into_response();
            }
        };
        let body = axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        ([(SESSION, "one")], body).into_response()
    }

    fn page(&self, params: &Value) -> Value {
        let count = *self.tools.lock().unwrap();
        let start: usize = params["cursor"]
            .as_str()
            .map_or(0, |cursor| cursor.parse().unwrap());
        let end = (start + PAGE).min(count);
        let tools: Vec<Value> = (start..end)
            .map(|number| json!({"name": format!("tool-{number:03}"), "inputSchema": {"type": "object"}}))
            .collect();
        let mut page = json!({"tools": tools});
        if end < count {
            page["nextCursor"] = json!(end.to_string());
        }
        page
    }

    async fn stream(State(server): State<Self>) -> Response {
        let (sender, receiver) = mpsc::channel(16);
        server.streams.lock().unwrap().push(sender);
        let events = ReceiverStream::new(receiver)
            .map(|message| Ok::<_, std::io::Error>(format!("data: {message}\n\n")));
        (
            [(header::CONTENT_TYPE, "text/event-stream")],
            Body::from_stream(events),
        )
            .into_response()
    }

    /// Has this many tools from now on, and says so.
    async fn change(&self, count: usize) {
        *self.tools.lock().unwrap() = count;
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let streams = self.streams.lock().unwrap().clone();
        for stream in streams {
            stream.send(changed.to_owned()).await.ok();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_tools_is_listed_and_its_changes_reach_agents_of_both_eras() {
    let (server, url, _serving) = Many::start(100).await;
    let up = Up::start(&servers(&[("many", "streamable-http", &url)])).await;
    let (legacy, modern) = (up.agent("legacy").await, Agent::new(&up.url, "modern", None));
    let expected = |count: usize| -> Vec<String> {
        (0..count)
            .map(|number| format!("many.tool-{number:03}"))
            .collect()
    };
    assert_eq!(legacy.tools().await, expected(100));
    wait::until("Toolgate listens to the server", || async {
        (!server.streams.lock().unwrap().is_empty()).then_some(())
    })
    .await;
    let listen = modern.modern(
        "subscriptions/listen",
        None,
        json!({"notifications": {"toolsListChanged": true}}),
    );
    let (old, new) = (stream_of(&legacy).await, listen.send().await.unwrap());
    server.change(103).await;
    tokio::join!(hears_of_changed_tools(old), hears_of_changed_tools(new));
    assert_eq!(legacy.tools().await, expected(103));
    assert_eq!(legacy.call("many.tool-102", json!({})).await.text(), "tool-102");
}
