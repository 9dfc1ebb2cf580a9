//! `toolgate mcp`: an MCP server on stdio for a desktop agent, in front of a running `up`.
//!
//! Every line that the agent writes is one message of the protocol and becomes one POST; what comes back is written as lines.
//! The messages themselves pass through untouched.

mod bridge;
mod envelope;
mod events;
mod launch;

use std::path::Path;

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::args::{Global, McpArgs};
use crate::connection::{self, Target};
use crate::error::CliError;

use bridge::Bridge;
pub(crate) use launch::LAUNCH_KEY_FILE;

/// The longest line that is taken from the agent, as `limits.message_bytes` has it by default.
const LINE_BYTES: usize = 16 << 20;

/// Serves until the agent closes its end.
pub(crate) async fn run(global: &Global, args: McpArgs) -> Result<(), CliError> {
    let data_dir = connection::data_dir(global.data_dir.as_deref())?;
    let target = Target::resolve(global)?;
    let launch = launch::Launch::read(&data_dir, &args.agent)?;
    let bridge = Bridge::new(target, launch)?;
    bridge
        .probe()
        .await
        .map_err(|error| no_server(error, &data_dir))?;
    let mut input = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        if read_line(&mut input, &mut line).await? == 0 {
            break;
        }
        let message = line.trim_ascii();
        if !message.is_empty() {
            bridge.forward(message.to_vec()).await;
        }
    }
    bridge.finish().await;
    Ok(())
}

/// Reads one line of at most [`LINE_BYTES`]; 0 at the end of input.
async fn read_line(input: &mut BufReader<tokio::io::Stdin>, line: &mut Vec<u8>) -> Result<usize, CliError> {
    loop {
        let chunk = input.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(line.len());
        }
        let (taken, ended) = match chunk.iter().position(|byte| *byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (chunk.len(), false),
        };
        line.extend(chunk.iter().take(taken));
        input.consume(taken);
        if ended {
            return Ok(line.len());
        }
        if line.len() > LINE_BYTES {
            return Err(CliError::Failed(format!(
                "the agent sent a message of more than {LINE_BYTES} bytes"
            )));
        }
    }
}

fn no_server(error: CliError, data_dir: &Path) -> CliError {
    match error {
        CliError::Unreachable { url, cause, .. } => CliError::NotUp(format!(
            "no `toolgate up` answers at {url} ({cause}); start one with `toolgate up --config FILE` (its state is looked for in {})",
            data_dir.display()
        )),
        other => other,
    }
}
