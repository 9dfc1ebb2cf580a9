//! `toolgate demo`: the first thing a newcomer runs.
//!
//! Both planes, a real MCP server with notes in a temporary folder, and an agent that speaks MCP over HTTP: one call is allowed, one
//! denied, one waits for the reader, and the chain that recorded them is verified.

mod agent;
pub(crate) mod notes;
mod script;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::args::{DemoArgs, OutputFormat};
use crate::client::Client;
use crate::connection::{TOKEN_FILE, Target};
use crate::error::CliError;
use crate::output::Printer;
use crate::up::Up;

/// Starts everything in a temporary folder, plays the script, and leaves nothing behind.
pub(crate) async fn run(args: DemoArgs, format: OutputFormat) -> Result<(), CliError> {
    let folder = tempfile::Builder::new().prefix("toolgate-demo-").tempdir()?;
    let notes = folder.path().join("notes");
    std::fs::create_dir(&notes)?;
    std::fs::write(notes.join("shopping.md"), "- bread\n- coffee\n")?;
    std::fs::write(notes.join("ideas.md"), "Teach the plants to water themselves.\n")?;
    let config = folder.path().join("toolgate.yaml");
    std::fs::write(&config, configuration(&std::env::current_exe()?, &notes)?)?;

    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let up = Up::start(&config, Some(&folder.path().join("state")), Some(address)).await?;
    let token = net::files::read_secret(&folder.path().join("state").join(TOKEN_FILE))
        .map_err(|error| CliError::Failed(error.to_string()))?;
    let client = Client::new(Target {
        url: up.url(),
        token: Some(token),
        ca_cert: None,
    })?;
    let outcome = script::play(&client, &up.url(), &notes, args.yes, Printer::new(format)).await;
    up.shutdown().await;
    outcome
}

/// The configuration that the reader could have written.
fn configuration(program: &Path, notes: &Path) -> Result<String, CliError> {
    let quoted = |path: &Path| {
        serde_json::to_string(&path.display().to_string())
            .map_err(|error| CliError::Failed(error.to_string()))
    };
    Ok(format!(
        r#"mcp_servers:
  - name: notes
    transport: stdio
    command: {program}
    args: ["demo-notes", {notes}]
policies:
{policy}
"#,
        program = quoted(program)?,
        notes = quoted(notes)?,
        policy = script::POLICY.trim_end(),
    ))
}
