//! `toolgate rollout status`.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::Context;
use crate::client::segment;
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Which connected sidecars applied a revision, which did not, and why.
    Status(StatusArgs),
}

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The revision, as `generation.number`.
    #[arg(default_value = "latest")]
    revision: String,
    /// Wait until every connected sidecar has applied or rejected it.
    #[arg(long)]
    wait: bool,
    /// How long to wait at most, in seconds.
    #[arg(long, default_value_t = 60, requires = "wait")]
    timeout: u64,
}

const COLUMNS: [Column; 5] = [
    Column::new("SIDECAR", |row| field(row, "sidecar").chars().take(12).collect()),
    Column::new("NAME", |row| field(row, "name")),
    Column::new("STATE", |row| field(row, "state")),
    Column::new("LATENCY MS", |row| field(row, "latency_ms")),
    Column::new("REASONS", |row| field(row, "reasons")),
];

pub(crate) async fn run(context: &Context, command: RolloutCommand) -> Result<(), CliError> {
    let RolloutCommand::Status(args) = command;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(args.timeout);
    let mut revision = args.revision;
    let answer = loop {
        let answer = context
            .client
            .get(&format!("/rollouts/{}", segment(&revision)))
            .await?;
        let done = answer.get("complete").and_then(Value::as_bool) == Some(true);
        if !args.wait || done || tokio::time::Instant::now() >= deadline {
            break answer;
        }
        // What was latest at the first look is what is waited for.
        revision = field(&answer, "revision");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let sidecars = answer.get("sidecars").cloned().unwrap_or_default();
    if context.printer.is_json() {
        context.printer.answer(&answer, |_| String::new())?;
    } else {
        crate::output::line(&format!(
            "revision {}: applied by {} of {}, rejected by {}, pending at {}",
            field(&answer, "revision"),
            field(&answer, "applied"),
            field(&answer, "of"),
            field(&answer, "rejected"),
            field(&answer, "pending"),
        ))?;
        context
            .printer
            .list(&sidecars, &COLUMNS, "no sidecar is connected")?;
    }
    let number = |name| answer.get(name).and_then(Value::as_u64).unwrap_or_default();
    if args.wait && number("pending") > 0 {
        return Err(CliError::Negative(format!(
            "{} sidecars have not answered",
            number("pending")
        )));
    }
    if number("rejected") > 0 {
        return Err(CliError::Negative(format!(
            "{} sidecars rejected the revision",
            number("rejected")
        )));
    }
    Ok(())
}
