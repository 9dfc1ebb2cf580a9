//! The two planes as processes of their own, as they are run in production, but without TLS.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::error::{During as _, Result, unexpected};
use crate::process::{Process, free_address};
use crate::request::{Call, Era};
use crate::rest::Rest;

const PATIENCE: Duration = Duration::from_secs(30);

/// Where the programs of this build are: beside this one.
///
/// # Errors
/// When a program is not built.
pub fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().during("find this program")?;
    let path = own.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(unexpected(format!(
            "{} is not built; bench/run.sh builds it",
            path.display()
        )))
    }
}

/// A control plane.
#[derive(Debug)]
pub struct ControlPlane {
    /// The process.
    pub process: Process,
    /// Its operators' API.
    pub rest: Rest,
    /// Where it serves sidecars.
    pub grpc: SocketAddr,
}

impl ControlPlane {
    /// Starts one with 1,000 policies, on SQLite or on the database at a URL, and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(folder: &Path, name: &str, database: Option<&str>) -> Result<Self> {
        let home = folder.join(name);
        fs::create_dir_all(&home).during("make a folder")?;
        let (operator, grpc) = (free_address()?, free_address()?);
        let token = "bench-operator-token-of-this-machine-only";
        let mut text = format!(
            "listen: {{operator: \"{operator}\", grpc: \"{grpc}\"}}\ndata_dir: {0}\nauth: {{admin_token: {token}}}\n\
             policy_dir: {0}/policies\nloop: {{max: 10000}}\n",
            home.display()
        );
        if let Some(url) = database {
            // Writing to a string does not fail.
            let _ = writeln!(text, "database_url: \"{url}\"");
        }
        fs::create_dir_all(home.join("policies")).during("make a folder")?;
        fs::write(home.join("policies/all.yaml"), policies()).during("write policies")?;
        let file = home.join("config.yaml");
        fs::write(&file, text).during("write a configuration")?;
        let mut command = Command::new(program("toolgate-control-plane")?);
        command
            .args(["run", "--config"])
            .arg(&file)
            .env("TOOLGATE_LOG", "warn,sqlx=error");
        let mut process = Process::start(name, command, folder)?;
        process.ready(operator, "/readyz").await?;
        let rest = Rest {
            address: operator,
            token: token.to_owned(),
        };
        Ok(Self { process, rest, grpc })
    }
}

/// The policies of every run: one with 20 rules and conditions for the agent that calls, a guardrail, and 998 for others.
fn policies() -> String {
    let mut text = String::from("name: bench\nagent: bench\nrules:\n");
    for number in 0..18 {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  - {{tools: [\"other{number}.*\"], action: allow}}");
    }
    text.push_str(
        "  - {tools: [\"*.echo\"], action: deny, condition: {field: path, operator: starts_with, value: /etc}}\n  \
         - {tools: [\"*.echo\"], action: allow, condition: {field: path, operator: starts_with, value: /data}}\n---\n\
         name: guard\nagent: \"*\"\nkind: guardrail\nrules: [{tools: [\"bank.*\"], action: deny}]\n",
    );
    let _ = write!(
        text,
        "---\nname: programs\nagent: {PROGRAMS_AGENT}\nrules: [{{tools: [\"program.run\"], action: allow}}]\n"
    );
    for number in 0..997 {
        let _ = write!(
            text,
            "---\nname: team{number}\nagent: \"team{number}-*\"\nrules:\n  \
             - {{tools: [\"*.get_*\"], action: allow}}\n  - {{tools: [\"*\"], action: human_approval}}\n"
        );
    }
    text
}

/// The program that sidecars serve as the tool `program.run`.
pub const PROGRAM: &str = "/usr/bin/true";
/// The agent that may call it.
pub const PROGRAMS_AGENT: &str = "programs";

/// What a sidecar serves.
#[derive(Debug, Clone)]
pub struct Serves {
    /// Agents.
    pub agents: &'static str,
    /// The URL of an echo server, as the upstream `echo`.
    pub url: String,
    /// Whether an echo server over stdio is there too, as the upstream `pipe`, and the echo server's REST service as `rest`.
    pub others: bool,
    /// Whether [`PROGRAM`] is there too.
    pub program: bool,
}

/// A sidecar.
#[derive(Debug)]
pub struct Sidecar {
    /// The process.
    pub process: Process,
    /// Where it serves agents.
    pub address: SocketAddr,
    /// From before the start of the process to the first 200 from `/readyz`.
    pub ready: Duration,
}

/// The home of a sidecar: what a restart finds again.
#[derive(Debug)]
pub struct Home {
    name: String,
    folder: PathBuf,
    address: SocketAddr,
}

impl Home {
    /// Makes one: configuration and a join token.
    ///
    /// # Errors
    /// When the control plane gives no token, or files cannot be written.
    pub async fn make(folder: &Path, name: &str, plane: &ControlPlane, serves: &Serves) -> Result<Self> {
        let home = folder.join(name);
        fs::create_dir_all(&home).during("make a folder")?;
        let token = plane.rest.join_token(1).await?;
        fs::write(home.join("token"), token).during("write a join token")?;
        let address = free_address()?;
        let mut text = format!(
            "listen: {{agent: \"{address}\"}}\ndata_dir: {0}\ncontrol_plane: {{url: \"http://{1}\", token_file: {0}/token}}\n\
             sidecar: {{name: {name}, agents: [\"{2}\"]}}\nloop: {{max: 10000}}\nspool: {{max_bytes: 4GiB}}\n\
             mcp_servers:\n  - {{name: echo, transport: streamable-http, url: \"{3}\"}}\n",
            home.display(),
            plane.grpc,
            serves.agents,
            serves.url,
        );
        if serves.others {
            let echo = program("echo-mcp")?;
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "  - {{name: pipe, transport: stdio, command: {}, args: [stdio]}}\n\
                 openapi:\n  - {{name: rest, url: \"{}/openapi.json\"}}",
                echo.display(),
                serves.url.trim_end_matches("/mcp"),
            );
        }
        if serves.program {
            let _ = writeln!(
                text,
                "cli_tools: [{{name: program, bin: {PROGRAM}, default_action: allow, bare: {{}}}}]"
            );
        }
        fs::write(home.join("config.yaml"), text).during("write a configuration")?;
        Ok(Self {
            name: name.to_owned(),
            folder: home,
            address,
        })
    }

    /// Starts the sidecar and waits until it is ready.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(&self) -> Result<Sidecar> {
        let mut command = Command::new(program("toolgate-sidecar")?);
        command
            .args(["run", "--config"])
            .arg(self.folder.join("config.yaml"))
            .env("TOOLGATE_LOG", "warn,sqlx=error");
        let begun = Instant::now();
        let mut process = Process::start(&self.name, command, &self.folder)?;
        process.ready(self.address, "/readyz").await?;
        Ok(Sidecar {
            process,
            address: self.address,
            ready: begun.elapsed(),
        })
    }
}

/// A server's call of `tool`, opened as its era asks, once it answers with a result.
///
/// # Errors
/// When no result comes within half a minute.
pub async fn opened(address: SocketAddr, era: Era, tool: &str, result_bytes: Option<u64>) -> Result<Call> {
    let mut call = Call {
        address,
        era,
        tool: tool.to_owned(),
        result_bytes,
        session: None,
    };
    let mut connection = Connection::open(address).await.during("connect")?;
    if era == Era::Legacy {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}"#;
        let opening = call.other("initialize", params);
        let answer = connection.exchange(&opening).await.during("initialize")?;
        call.session = answer.header("mcp-session-id").map(str::to_owned);
        let told = call.notification("notifications/initialized");
        connection.exchange(&told).await.during("initialize")?;
    }
    let mut request = call.request();
    let begun = Instant::now();
    let mut number = 0;
    loop {
        let answer = connection
            .exchange(request.numbered(number))
            .await
            .during("call")?;
        if answer.is_tool_result() {
            return Ok(call);
        }
        if begun.elapsed() > PATIENCE {
            let said = String::from_utf8_lossy(&answer.body).into_owned();
            return Err(unexpected(format!(
                "{tool} at {address}: {} {said}",
                answer.status
            )));
        }
        number += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
