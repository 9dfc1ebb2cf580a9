//! `toolgate grant create | list | revoke`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, with_query};
use crate::client::segment;
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Debug, Subcommand)]
pub(crate) enum GrantCommand {
    /// Let an agent call tools without asking, for a time. Never lifts a deny.
    Create(CreateArgs),
    /// Grants that are live.
    List,
    /// End a grant now.
    Revoke {
        /// The grant's id, or the beginning of it where that is unique.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// The agent, or a glob over agents.
    #[arg(long)]
    agent: String,
    /// Tools, or globs over tools.
    #[arg(required = true)]
    tools: Vec<String>,
    /// How long: 30m, 4h.
    #[arg(long = "for", default_value = "30m", value_name = "DURATION")]
    duration: String,
    /// Why, for the record.
    #[arg(long)]
    reason: Option<String>,
    /// Only in this namespace.
    #[arg(long)]
    namespace: Option<String>,
}

const COLUMNS: [Column; 5] = [
    Column::new("ID", |row| field(row, "id").chars().take(12).collect()),
    Column::new("AGENT", |row| field(row, "agent")),
    Column::new("TOOLS", |row| field(row, "tools")),
    Column::new("REMAINING", |row| field(row, "remaining")),
    Column::new("GRANTED BY", |row| field(row, "granted_by")),
];

pub(crate) async fn run(context: &Context, command: GrantCommand) -> Result<(), CliError> {
    match command {
        GrantCommand::Create(args) => {
            let mut body = json!({"agent": args.agent, "tools": args.tools, "duration": args.duration});
            if let Some(fields) = body.as_object_mut() {
                fields.extend(args.reason.map(|reason| ("reason".to_owned(), json!(reason))));
                fields.extend(
                    args.namespace
                        .map(|namespace| ("namespace".to_owned(), json!(namespace))),
                );
            }
            let answer = context.client.post("/grants", &body).await?;
            context.printer.answer(&answer, |grant| {
                format!(
                    "granted {} to {} for {}: {}",
                    field(grant, "tools"),
                    field(grant, "agent"),
                    field(grant, "remaining"),
                    field(grant, "id")
                )
            })
        }
        GrantCommand::List => {
            let answer = context.client.get(&with_query("/grants", &[])).await?;
            context.printer.list(&answer, &COLUMNS, "no grant is live")
        }
        GrantCommand::Revoke { id } => {
            let answer = context
                .client
                .delete(&format!("/grants/{}", segment(&id)))
                .await?;
            context.printer.answer(&answer, |_| "revoked".to_owned())
        }
    }
}
