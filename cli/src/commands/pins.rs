//! `toolgate pins list | accept`.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::{Context, with_query};
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Debug, Subcommand)]
pub(crate) enum PinsCommand {
    /// Tools that are held back because they appeared or changed.
    List {
        /// Pinned tools as well.
        #[arg(long)]
        all: bool,
    },
    /// Accept tools as they are now.
    Accept(AcceptArgs),
}

#[derive(Args, Debug)]
pub(crate) struct AcceptArgs {
    /// Tools to accept.
    #[arg(required_unless_present = "server", conflicts_with = "server")]
    tools: Vec<String>,
    /// Accept everything that is held back of this upstream.
    #[arg(long)]
    server: Option<String>,
    /// Namespace of the tools.
    #[arg(long)]
    namespace: Option<String>,
    /// Who accepts, for the record.
    #[arg(long)]
    by: Option<String>,
}

const COLUMNS: [Column; 5] = [
    Column::new("TOOL", |row| field(row, "tool")),
    Column::new("STATUS", |row| field(row, "status")),
    Column::new("NAMESPACE", |row| field(row, "namespace")),
    Column::new("PINNED", |row| {
        row.get("pinned")
            .map(|pinned| field(pinned, "description"))
            .unwrap_or_default()
    }),
    Column::new("NOW", |row| {
        row.get("current")
            .map(|current| field(current, "description"))
            .unwrap_or_default()
    }),
];

pub(crate) async fn run(context: &Context, command: PinsCommand) -> Result<(), CliError> {
    match command {
        PinsCommand::List { all } => {
            let path = with_query("/tools/pins", &[("all", all.then(|| "true".to_owned()))]);
            context.printer.list(
                &context.client.get(&path).await?,
                &COLUMNS,
                "no tool is held back",
            )
        }
        PinsCommand::Accept(args) => accept(context, args).await,
    }
}

/// Accepts exactly the fingerprints that are shown now; a change in between is refused by the server.
async fn accept(context: &Context, args: AcceptArgs) -> Result<(), CliError> {
    let held = context.client.get("/tools/pins").await?;
    let mut fingerprints = Map::new();
    for pin in held.as_array().into_iter().flatten() {
        let tool = field(pin, "tool");
        let in_server = args
            .server
            .as_ref()
            .is_some_and(|server| field(pin, "upstream") == *server);
        let in_namespace = args
            .namespace
            .as_ref()
            .is_none_or(|namespace| field(pin, "namespace") == *namespace);
        if in_namespace && (in_server || args.tools.contains(&tool)) {
            let current = pin
                .get("current")
                .map(|current| field(current, "fingerprint"))
                .unwrap_or_default();
            fingerprints.insert(tool, Value::String(current));
        }
    }
    if fingerprints.is_empty() {
        return Err(CliError::Usage(
            "none of these is held back; see `toolgate pins list`".to_owned(),
        ));
    }
    let tools: Vec<&String> = fingerprints.keys().collect();
    let mut body = json!({"tools": tools, "fingerprints": fingerprints});
    if let Some(map) = body.as_object_mut() {
        map.extend(
            args.namespace
                .map(|namespace| ("namespace".to_owned(), json!(namespace))),
        );
        map.extend(args.by.map(|by| ("by".to_owned(), json!(by))));
    }
    let answer = context.client.post("/tools/pins/accept", &body).await?;
    context.printer.answer(&answer, |answer| {
        format!(
            "accepted {} at revision {}",
            field(answer, "accepted"),
            field(answer, "revision")
        )
    })
}
