//! Real MCP servers, as published, behind `toolgate up`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests::fleet::free_port;
use tests::process::Process;
use tests::programs::{checkout, npm, python};
use tests::up::{Up, folder, output};
use tests::wait;

const OPEN: &str = r#"
policies:
  - name: open
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
"#;

/// A real server: how it is started or reached, and one deterministic call.
struct Server {
    name: &'static str,
    /// What a Python client needs to reach it without Toolgate.
    direct: Value,
    tool: &'static str,
    arguments: Value,
}

fn stdio(name: &'static str, command: Vec<String>, tool: &'static str, arguments: Value) -> Server {
    Server {
        name,
        direct: json!({"command": command}),
        tool,
        arguments,
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The answer of the legacy Python client; servers of both eras take it.
async fn client(spec: &Value) -> Value {
    let mut command = Command::new(python("clients-1", "python"));
    command
        .arg(checkout().join("tests/python/client_1.py"))
        .arg(spec.to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let ran = output(command, "").await;
    assert_eq!(ran.code, 0, "{spec}: {}", ran.stderr);
    ran.json()
}

/// A folder with a file and a Git repository.
async fn material() -> tempfile::TempDir {
    let place = folder();
    std::fs::write(place.path().join("note.txt"), "bread and coffee\n").unwrap();
    let repository = place.path().join("repository");
    std::fs::create_dir(&repository).unwrap();
    std::fs::write(repository.join("a.txt"), "a\n").unwrap();
    for arguments in [
        &["init", "-q", "-b", "main"][..],
        &["add", "a.txt"],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "commit",
            "-q",
            "-m",
            "First",
        ],
    ] {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&repository);
        let ran = output(git, "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    place
}

fn servers(place: &Path, everything_url: &str) -> Vec<Server> {
    let everything = text(&npm("mcp-server-everything"));
    let repository = text(&place.join("repository"));
    vec![
        stdio(
            "everything",
            vec![everything, "stdio".to_owned()],
            "echo",
            json!({"message": "well"}),
        ),
        Server {
            name: "everything-http",
            direct: json!({"url": everything_url}),
            tool: "get-sum",
            arguments: json!({"a": 2, "b": 40}),
        },
        stdio(
            "files",
            vec![text(&npm("mcp-server-filesystem")), text(place)],
            "read_text_file",
            json!({"path": text(&place.join("note.txt"))}),
        ),
        stdio(
            "git",
            vec![
                text(&python("servers", "mcp-server-git")),
                "--repository".to_owned(),
                repository.clone(),
            ],
            "git_log",
            json!({"repo_path": repository}),
        ),
        stdio(
            "time",
            vec![
                text(&python("servers", "mcp-server-time")),
                "--local-timezone".to_owned(),
                "UTC".to_owned(),
            ],
            "convert_time",
            json!({"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        ),
    ]
}

fn configuration(servers: &[Server]) -> String {
    let mut yaml = "mcp_servers:\n".to_owned();
    for server in servers {
        writeln!(yaml, "  - name: {}", server.name).unwrap();
        if let Some(command) = server.direct["command"].as_array() {
            let arguments = Value::from(command[1..].to_vec());
            writeln!(
                yaml,
                "    transport: stdio\n    command: {}\n    args: {arguments}",
                command[0]
            )
            .unwrap();
        } else {
            writeln!(
                yaml,
                "    transport: streamable-http\n    url: {}",
                server.direct["url"]
            )
            .unwrap();
        }
    }
    yaml + OPEN
}

/// server-everything over Streamable HTTP, once it answers.
async fn everything_over_http(place: &Path) -> (Process, String) {
    let port = free_port();
    let mut command = Command::new(npm("mcp-server-everything"));
    command.arg("streamableHttp").env("PORT", port.to_string());
    let process = Process::spawn(command, &place.join("everything.log"));
    wait::until("server-everything listens", || async {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
    })
    .await;
    (process, format!("http://127.0.0.1:{port}/mcp"))
}

#[tokio::test(flavor = "multi_thread")]
async fn real_servers_are_listed_pinned_and_answer_as_they_do_directly() {
    let (place, logs) = (material().await, folder());
    let (_http, url) = everything_over_http(logs.path()).await;
    let servers = servers(place.path(), &url);
    let up = Up::start(&configuration(&servers)).await;
    let calls: Vec<Value> = servers
        .iter()
        .map(|server| json!({"name": format!("{}.{}", server.name, server.tool), "arguments": server.arguments}))
        .collect();
    let governed = client(&json!({
        "url": format!("{}/mcp", up.url),
        "headers": {"Authorization": "Bearer agent:reader"},
        "calls": calls,
    }))
    .await;
    let catalogue = up.operator().get("/tools").await;
    let pins = up.operator().get("/tools/pins?all=true").await;

    for (index, server) in servers.iter().enumerate() {
        let mut spec = server.direct.clone();
        spec["calls"] = json!([{"name": server.tool, "arguments": server.arguments}]);
        let direct = client(&spec).await;
        let (through, without) = (&governed["results"][index], &direct["results"][0]);
        assert_eq!(through["content"], without["content"], "{}", server.name);
        assert_eq!(
            through["structuredContent"], without["structuredContent"],
            "{}",
            server.name
        );
        assert_ne!(through["isError"], true, "{}: {through}", server.name);

        for tool in direct["tools"].as_array().unwrap() {
            let name = format!("{}.{}", server.name, tool["name"].as_str().unwrap());
            let find = |list: &Value, key: &str| {
                let found = list
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|row| row[key] == name.as_str());
                found.unwrap_or_else(|| panic!("{name} is not in {list}")).clone()
            };
            let listed = find(&governed["tools"], "name");
            assert_eq!(listed["inputSchema"], tool["inputSchema"], "{name}");
            assert_eq!(listed["description"], tool["description"], "{name}");
            let pin = find(&pins, "tool");
            let fingerprint = &pin["current"]["fingerprint"];
            assert_eq!(fingerprint.as_str().map(str::len), Some(64), "{name}: {pin}");
            assert_eq!(&find(&catalogue, "name")["version_hash"], fingerprint, "{name}");
        }
    }
    let records = up
        .operator()
        .records("agent=reader&outcome=ok", servers.len())
        .await;
    assert_eq!(records.len(), servers.len(), "{records:?}");
}
