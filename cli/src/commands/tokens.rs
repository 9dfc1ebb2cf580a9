//! `toolgate token create | list | revoke`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::Context;
use crate::client::segment;
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token for a person or a pipeline. It is shown once.
    Create(CreateArgs),
    /// Tokens that still open something.
    List,
    /// Make a token useless at once.
    Revoke {
        /// The token's id (not the token).
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Reads.
    Viewer,
    /// Also answers approvals, gives grants, presses stops.
    Approver,
    /// Also changes policies, pins and tools, and sets limits back.
    Editor,
    /// Also changes guardrails and settings, lifts stops, enrols sidecars, gives tokens.
    Admin,
}

#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// Whose it is: what it does is kept under this name.
    #[arg(long)]
    name: String,
    /// What it may do.
    #[arg(long, value_enum)]
    role: RoleName,
    /// Where it may do it; repeat for several. Default: everywhere.
    #[arg(long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// How long it opens anything.
    #[arg(long, default_value = "90d", value_name = "DURATION")]
    ttl: String,
}

const COLUMNS: [Column; 6] = [
    Column::new("ID", |row| field(row, "id").chars().take(12).collect()),
    Column::new("NAME", |row| field(row, "name")),
    Column::new("ROLE", |row| field(row, "role")),
    Column::new("NAMESPACES", |row| match field(row, "namespaces") {
        all if all.is_empty() => "all".to_owned(),
        some => some,
    }),
    Column::new("EXPIRES", |row| field(row, "expires_at")),
    Column::new("MADE BY", |row| field(row, "created_by")),
];

pub(crate) async fn run(context: &Context, command: TokenCommand) -> Result<(), CliError> {
    match command {
        TokenCommand::Create(args) => {
            let role = args.role.to_possible_value();
            let role = role.as_ref().map(clap::builder::PossibleValue::get_name);
            let body =
                json!({"name": args.name, "role": role, "namespaces": args.namespaces, "ttl": args.ttl});
            let answer = context.client.post("/tokens", &body).await?;
            // The bare token, so that it can be piped into a file.
            context.printer.answer(&answer, |token| field(token, "token"))
        }
        TokenCommand::List => {
            let answer = context.client.get("/tokens").await?;
            context.printer.list(&answer, &COLUMNS, "no token opens anything")
        }
        TokenCommand::Revoke { id } => {
            let answer = context
                .client
                .delete(&format!("/tokens/{}", segment(&id)))
                .await?;
            context.printer.answer(&answer, |_| "revoked".to_owned())
        }
    }
}
