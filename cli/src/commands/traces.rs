//! `toolgate trace list | tail | show | export | keys | verify`.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use futures_util::StreamExt;
use reqwest::Method;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::sidecars::fields;
use super::{Context, with_query};
use crate::args::Global;
use crate::client::segment;
use crate::error::CliError;
use crate::output::{self, Column, field, line};

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// The newest records.
    List(Filter),
    /// Follow records as they come.
    Tail(Filter),
    /// One record, by its id or its trace id.
    Show {
        /// The id, or the beginning of it where that is unique.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Write the chain as JSON lines, with its checkpoints, for keeping elsewhere and for `verify`.
    Export(ExportArgs),
    /// Print the public keys that sign checkpoints, one a line, for `verify --public-key`.
    Keys,
    /// Verify the chain: of an export without any server, or of the control plane itself.
    Verify(super::verify::VerifyArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Filter {
    /// How many records at most; `tail` begins with as many.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only this agent's.
    #[arg(long)]
    agent: Option<String>,
    /// Only tools that this glob matches.
    #[arg(long, value_name = "GLOB")]
    tool: Option<String>,
    /// Only this outcome.
    #[arg(long, value_parser = ["ok", "error", "denied", "timeout", "cancelled", "interrupted", "decided"])]
    outcome: Option<String>,
    /// Only this session.
    #[arg(long)]
    session: Option<String>,
    /// Only from this time on (RFC 3339).
    #[arg(long)]
    since: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// Where to write it [default: standard output].
    #[arg(long, short)]
    file: Option<PathBuf>,
    /// First record.
    #[arg(long)]
    from: Option<u64>,
    /// Last record.
    #[arg(long)]
    until: Option<u64>,
}

const COLUMNS: [Column; 7] = [
    Column::new("TIME", |row| field(row, "timestamp")),
    Column::new("AGENT", |row| field(row, "agent_id")),
    Column::new("TOOL", |row| field(row, "tool")),
    Column::new("DECIDED", |row| field(row, "policy")),
    Column::new("OUTCOME", |row| field(row, "outcome")),
    Column::new("RULE", |row| field(row, "policy_rule")),
    Column::new("MS", |row| field(row, "latency_ms")),
];

pub(crate) async fn run(global: &Global, command: TraceCommand) -> Result<(), CliError> {
    match command {
        TraceCommand::List(filter) => {
            let context = Context::new(global)?;
            let answer = context.client.get(&path(&filter)).await?;
            context.printer.list(&answer, &COLUMNS, "no record matches")
        }
        TraceCommand::Tail(filter) => super::until_interrupted(follow(&Context::new(global)?, &filter)).await,
        TraceCommand::Show { id } => {
            let context = Context::new(global)?;
            let answer = context.client.get(&format!("/traces/{}", segment(&id))).await?;
            context.printer.answer(&answer, fields)
        }
        TraceCommand::Export(args) => export(&Context::new(global)?, args).await,
        TraceCommand::Keys => keys(&Context::new(global)?).await,
        TraceCommand::Verify(args) => super::verify::run(global, args).await,
    }
}

fn path(filter: &Filter) -> String {
    with_query(
        "/traces",
        &[
            ("limit", Some(filter.limit.to_string())),
            ("agent", filter.agent.clone()),
            ("tool", filter.tool.clone()),
            ("outcome", filter.outcome.clone()),
            ("session", filter.session.clone()),
            ("since", filter.since.clone()),
        ],
    )
}

/// The keys of checkpoints only: other keys of the installation sign nothing that is in an export.
async fn keys(context: &Context) -> Result<(), CliError> {
    let request = context.client.request(Method::GET, "/traces/keys");
    if context.printer.is_json() {
        return line(&context.client.json(request).await?.to_string());
    }
    let response = context
        .client
        .send(request.header("Accept", "text/plain"))
        .await?;
    let text = response
        .text()
        .await
        .map_err(|error| CliError::Failed(format!("the answer with the public keys broke off: {error}")))?;
    line(text.trim_end())
}

/// As many records as one answer holds.
const MOST: u32 = 1_000;

/// Polls; records come in the chain's order. More than an answer holds between two looks is said, not left out silently.
async fn follow(context: &Context, filter: &Filter) -> Result<(), CliError> {
    let mut path = path(filter);
    let following = self::path(&Filter {
        limit: MOST,
        ..filter.clone()
    });
    let mut seen: HashSet<String> = HashSet::new();
    loop {
        let answer = context.client.get(&path).await?;
        let rows: Vec<&Value> = answer.as_array().into_iter().flatten().collect();
        let present: HashSet<String> = rows.iter().map(|row| field(row, "id")).collect();
        if !seen.is_empty() && present.len() >= MOST as usize && seen.is_disjoint(&present) {
            output::note("more records came than could be followed; see them by `toolgate trace export`");
        }
        for row in rows.iter().rev().filter(|row| !seen.contains(&field(row, "id"))) {
            if context.printer.is_json() {
                line(&row.to_string())?;
            } else {
                line(&sentence(row))?;
            }
        }
        if path != following {
            // What the short first answer left out was there before, and is not shown.
            let answer = context.client.get(&following).await?;
            let older = answer
                .as_array()
                .into_iter()
                .flatten()
                .map(|row| field(row, "id"));
            let newest = present.iter().cloned();
            seen = newest
                .chain(older.skip_while(|id| !present.contains(id)))
                .collect();
            path.clone_from(&following);
            continue;
        }
        seen = present;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn sentence(row: &Value) -> String {
    let mut text = format!(
        "{}  {:<10} {:<14} {} {}",
        field(row, "timestamp"),
        field(row, "outcome"),
        field(row, "policy"),
        field(row, "agent_id"),
        field(row, "tool"),
    );
    let error = field(row, "error");
    if !error.is_empty() {
        text.push_str(&format!("  ({error})"));
    }
    text
}

async fn export(context: &Context, args: ExportArgs) -> Result<(), CliError> {
    let path = with_query(
        "/traces/export",
        &[
            ("from", args.from.map(|seq| seq.to_string())),
            ("until", args.until.map(|seq| seq.to_string())),
        ],
    );
    let response = context
        .client
        .send(context.client.request(Method::GET, &path))
        .await?;
    let mut chunks = response.bytes_stream();
    let mut sink: Box<dyn tokio::io::AsyncWrite + Unpin> = match &args.file {
        Some(file) => Box::new(tokio::io::BufWriter::new(tokio::fs::File::create(file).await?)),
        None => Box::new(tokio::io::stdout()),
    };
    let mut bytes: u64 = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| {
            CliError::Failed(format!("the export broke off after {bytes} bytes: {error}"))
        })?;
        sink.write_all(&chunk).await?;
        bytes += chunk.len() as u64;
    }
    sink.flush().await?;
    if let Some(file) = args.file {
        output::note(&format!(
            "wrote {bytes} bytes to {}; check it with: toolgate trace verify {}",
            file.display(),
            file.display()
        ));
    }
    Ok(())
}
