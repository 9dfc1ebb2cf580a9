//! A running `toolgate up`, and the `toolgate` command as a person uses it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::agent::Agent;
use crate::fleet::free_port;
use crate::operator::Operator;
use crate::process::Process;
use crate::programs::built;
use crate::wait;

/// What a keeper is called.
const KEEPER: &str = "toolgate-keeper";

/// A running `toolgate up` with a folder of its own.
pub struct Up {
    /// The process.
    pub process: Process,
    /// Where agents and operators reach it.
    pub url: String,
    /// Everything that it reads and writes: `toolgate.yaml`, `state`, and `ran` of the fixture server.
    pub folder: tempfile::TempDir,
}

/// What a program came to.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its exit code; a signal is -1.
    pub code: i32,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Ran {
    /// What it printed, as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Up {
    /// Starts one; `yaml` is its configuration beside the port, with the fixture server unless it names `mcp_servers`.
    pub async fn start(yaml: &str) -> Self {
        Self::start_in(folder(), yaml).await
    }

    /// As [`Up::start`], with a fixture server of these tools, as `tools/list` shows them.
    pub async fn serving(tools: &Value, yaml: &str) -> Self {
        let folder = folder();
        let file = folder.path().join("ran.tools");
        std::fs::write(file, tools.to_string()).unwrap();
        Self::start_in(folder, yaml).await
    }

    async fn start_in(folder: tempfile::TempDir, yaml: &str) -> Self {
        let port = free_port();
        let mut text = format!("port: {port}\n");
        if !yaml.contains("mcp_servers:") {
            write!(
                text,
                "mcp_servers:\n  - name: fixture\n    transport: stdio\n    command: {}\n    args: [stdio, {}/ran]\n",
                built("fixture-mcp").display(),
                folder.path().display()
            )
            .unwrap();
        }
        if !yaml.contains("drain:") {
            text.push_str("drain:\n  seconds: 2\n");
        }
        text.push_str(yaml);
        std::fs::write(folder.path().join("toolgate.yaml"), text).unwrap();
        let up = Self {
            process: spawn(folder.path()),
            url: format!("http://127.0.0.1:{port}"),
            folder,
        };
        up.ready().await;
        up
    }

    /// Starts it again, with the same folder and port, after it has ended.
    pub async fn restart(&mut self) {
        self.process.kill();
        self.process = spawn(self.folder.path());
        self.ready().await;
    }

    /// Starts it again without waiting for its upstreams, of which some will not be connected.
    pub fn restart_unready(&mut self) {
        self.process.kill();
        self.process = spawn(self.folder.path());
    }

    /// Waits until every upstream is connected and the commands of this machine find it.
    pub async fn ready(&self) {
        wait::until("`toolgate up` says where it is", || async {
            self.state().join("up.json").exists().then_some(())
        })
        .await;
        let http = crate::operator::client(None);
        wait::until("`toolgate up` serves its upstreams' tools", || async {
            let answer = http.get(format!("{}/mcp-servers", self.url)).send().await.ok()?;
            let servers: Value = answer.json().await.ok()?;
            let all = servers.as_array()?;
            all.iter()
                .all(|server| server["state"] == "connected")
                .then_some(())
        })
        .await;
    }

    /// Its data folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The operator's token that it made.
    #[must_use]
    pub fn token(&self) -> String {
        let text = std::fs::read_to_string(self.state().join("admin-token")).unwrap();
        text.trim().to_owned()
    }

    /// The operator.
    #[must_use]
    pub fn operator(&self) -> Operator {
        Operator::new(&self.url, &self.token(), None)
    }

    /// An agent with a legacy session.
    pub async fn agent(&self, name: &str) -> Agent {
        Agent::new(&self.url, name, None).connect().await
    }

    /// What the fixture server says that it ran.
    #[must_use]
    pub fn ran(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join("ran")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// `toolgate` with arguments, as the user who started this `up`.
    pub async fn toolgate(&self, arguments: &[&str]) -> Ran {
        let mut command = toolgate(arguments);
        command.arg("--data-dir").arg(self.state());
        output(command, "").await
    }

    /// `toolgate … --output json`, which must succeed; its answer.
    pub async fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.toolgate(&[arguments, &["--output", "json"]].concat()).await;
        assert_eq!(ran.code, 0, "toolgate {arguments:?}: {ran:?}");
        ran.json()
    }
}

fn spawn(folder: &Path) -> Process {
    let mut command = toolgate(&["up"]);
    command.arg("--config").arg(folder.join("toolgate.yaml"));
    command.arg("--data-dir").arg(folder.join("state"));
    Process::spawn(command, &folder.join("log"))
}

/// A temporary folder of the tests.
#[must_use]
pub fn folder() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("toolgate-test-")
        .tempdir()
        .unwrap()
}

/// The `toolgate` command without anything from this shell that could steer it.
#[must_use]
pub fn toolgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(built("toolgate"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("TOOLGATE_") || text.starts_with("MESH") {
            command.env_remove(&name);
        }
    }
    command.args(arguments);
    command
}

/// Runs a program to its end, with `input` on its standard input.
pub async fn output(command: Command, input: &str) -> Ran {
    let shown = format!("{command:?}");
    let mut child = tokio::process::Command::from(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends without reading closes the pipe: that is no failure.
    stdin.write_all(input.as_bytes()).await.ok();
    drop(stdin);
    let output = tokio::time::timeout(wait::PATIENCE, child.wait_with_output())
        .await
        .unwrap_or_else(|_| panic!("{shown} does not end"))
        .unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// The keeper beside the programs of a sidecar, where it has started any.
#[must_use]
pub fn keeper(sidecar: u32) -> Option<u32> {
    family(sidecar).into_iter().find(|id| name(*id) == KEEPER)
}

/// The processes whose parent is `parent`, but its keeper, by id.
#[must_use]
pub fn children(parent: u32) -> Vec<u32> {
    let mut family = family(parent);
    family.retain(|id| name(*id) != KEEPER);
    family
}

fn name(id: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn family(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        line.and_then(|text| text.trim().parse().ok()) == Some(parent)
    })
    .collect()
}

/// Whether a process exists that has not ended; one that waits to be reaped has.
#[must_use]
pub fn is_alive(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/status"))
        .is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:\tZ")))
}
