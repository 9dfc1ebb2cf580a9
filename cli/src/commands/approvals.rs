//! `toolgate pending | approve | deny | watch`.

use std::collections::HashSet;
use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};

use super::{Context, with_query};
use crate::client::segment;
use crate::error::CliError;
use crate::output::{Column, field, line};

#[derive(Args, Debug)]
pub(crate) struct PendingArgs {
    /// Only tools that this glob matches.
    #[arg(long, value_name = "GLOB")]
    tool: Option<String>,
    /// Only this agent's.
    #[arg(long)]
    agent: Option<String>,
    /// Every status, not only what waits.
    #[arg(long)]
    all: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ResolveArgs {
    /// The approval's id, or the beginning of it where that is unique.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    id: String,
    /// Why, for the record.
    #[arg(long, short)]
    reason: Option<String>,
    /// Who answers, for the record; the credential's identity wins where it names a person.
    #[arg(long)]
    by: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Only tools that this glob matches.
    #[arg(long, value_name = "GLOB")]
    tool: Option<String>,
    /// Only show; do not ask for answers.
    #[arg(long)]
    show_only: bool,
}

const COLUMNS: [Column; 6] = [
    Column::new("ID", |row| field(row, "id").chars().take(12).collect()),
    Column::new("STATUS", |row| field(row, "status")),
    Column::new("AGENT", |row| field(row, "agent_id")),
    Column::new("TOOL", |row| field(row, "tool")),
    Column::new("REMAINING", |row| field(row, "remaining")),
    Column::new("ARGUMENTS", |row| field(row, "params")),
];

pub(crate) async fn pending(context: &Context, args: PendingArgs) -> Result<(), CliError> {
    let status = (!args.all).then(|| "pending".to_owned());
    let path = with_query(
        "/approvals",
        &[("status", status), ("tool", args.tool), ("agent", args.agent)],
    );
    let answer = context.client.get(&path).await?;
    context
        .printer
        .list(&answer, &COLUMNS, "nothing waits for a person")
}

pub(crate) async fn resolve(context: &Context, args: ResolveArgs, verb: &str) -> Result<(), CliError> {
    let answer = send_resolution(context, &args.id, verb, args.reason, args.by).await?;
    context.printer.answer(&answer, |approval| {
        format!(
            "{} {} for {}",
            field(approval, "status"),
            field(approval, "tool"),
            field(approval, "agent_id")
        )
    })
}

async fn send_resolution(
    context: &Context,
    id: &str,
    verb: &str,
    reason: Option<String>,
    by: Option<String>,
) -> Result<Value, CliError> {
    let mut body = serde_json::Map::new();
    if let Some(reason) = reason {
        body.insert("reasoning".to_owned(), json!(reason));
    }
    if let Some(by) = by {
        body.insert("resolved_by".to_owned(), json!(by));
    }
    context
        .client
        .post(
            &format!("/approvals/{}/{verb}", segment(id)),
            &Value::Object(body),
        )
        .await
}

/// Polls each second; an answer is one key and Enter.
pub(crate) async fn watch(context: &Context, args: WatchArgs) -> Result<(), CliError> {
    super::until_interrupted(show(context, args)).await
}

async fn show(context: &Context, args: WatchArgs) -> Result<(), CliError> {
    let path = with_query(
        "/approvals",
        &[("status", Some("pending".to_owned())), ("tool", args.tool)],
    );
    let asks = !args.show_only && !context.printer.is_json() && std::io::stdin().is_terminal();
    let mut seen = HashSet::new();
    loop {
        let answer = context.client.get(&path).await?;
        for approval in answer.as_array().into_iter().flatten() {
            if !seen.insert(field(approval, "id")) {
                continue;
            }
            if context.printer.is_json() {
                line(&approval.to_string())?;
                continue;
            }
            line(&describe(approval))?;
            if asks {
                answer_one(context, approval).await?;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The whole question: an approver never sees a cut excerpt.
fn describe(approval: &Value) -> String {
    let mut text = format!(
        "\n{}  {} asks to call {}\n  arguments  {}\n  rule       {}",
        field(approval, "id").chars().take(12).collect::<String>(),
        field(approval, "agent_id"),
        field(approval, "tool"),
        field(approval, "params"),
        field(approval, "policy_rule"),
    );
    let message = field(approval, "message");
    if !message.is_empty() {
        text.push_str(&format!("\n  message    {message}"));
    }
    if approval.get("injection_risk").and_then(Value::as_bool) == Some(true) {
        text.push_str("\n  WARNING    the arguments contain phrases that try to steer a reviewer");
    }
    text
}

async fn answer_one(context: &Context, approval: &Value) -> Result<(), CliError> {
    line("  approve? [y/n, anything else leaves it waiting]")?;
    let answer = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        std::io::stdin().lock().read_line(&mut text).map(|_| text)
    })
    .await
    .map_err(|error| CliError::Failed(error.to_string()))??;
    let verb = match answer.trim() {
        "y" | "yes" => "approve",
        "n" | "no" => "deny",
        _ => return Ok(()),
    };
    match send_resolution(context, &field(approval, "id"), verb, None, None).await {
        Ok(resolved) => line(&format!("  {}", field(&resolved, "status"))),
        Err(CliError::Problem { status: 409, detail }) => line(&format!("  {detail}")),
        Err(error) => Err(error),
    }
}
