//! `toolgate sidecars list | show | revoke | tokens`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::Context;
use crate::client::segment;
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Debug, Subcommand)]
pub(crate) enum SidecarsCommand {
    /// Every sidecar that enrolled, with what it holds.
    List,
    /// One sidecar.
    Show {
        /// Its id, or the beginning of it where that is unique.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// End a sidecar's rights at once. It cannot come back under this id.
    Revoke {
        /// Its id.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Join tokens, by which sidecars enrol.
    #[command(subcommand, visible_alias = "token")]
    Tokens(TokensCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Make a join token. It is shown once.
    Create(CreateTokenArgs),
    /// Join tokens that can still be used.
    List,
    /// Make a join token useless.
    Revoke {
        /// The token's id (not the token).
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct CreateTokenArgs {
    /// Namespace that the sidecars will belong to.
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Agents (globs) that they may speak for; repeat for several. Default: all.
    #[arg(long = "agent", value_name = "GLOB")]
    agents: Vec<String>,
    /// Upstreams (globs) that they may publish; repeat for several. Default: all.
    #[arg(long = "upstream", value_name = "GLOB")]
    upstreams: Vec<String>,
    /// How long the token can be used.
    #[arg(long, default_value = "1h", value_name = "DURATION")]
    ttl: String,
    /// How many sidecars may use it.
    #[arg(long, default_value_t = 1)]
    uses: u32,
}

const COLUMNS: [Column; 8] = [
    Column::new("ID", |row| field(row, "id").chars().take(12).collect()),
    Column::new("NAME", |row| field(row, "name")),
    Column::new("NAMESPACE", |row| field(row, "namespace")),
    Column::new("CONNECTED", |row| field(row, "connected")),
    Column::new("EPOCH", |row| field(row, "epoch")),
    Column::new("APPLIED", |row| field(row, "applied")),
    Column::new("LEASE AGE MS", |row| field(row, "lease_age_ms")),
    Column::new("VERSION", |row| field(row, "version")),
];

const TOKEN_COLUMNS: [Column; 6] = [
    Column::new("ID", |row| field(row, "id")),
    Column::new("NAMESPACE", |row| field(row, "namespace")),
    Column::new("AGENTS", |row| field(row, "agents")),
    Column::new("UPSTREAMS", |row| field(row, "upstreams")),
    Column::new("USES", |row| field(row, "uses")),
    Column::new("EXPIRES", |row| field(row, "expires_at")),
];

pub(crate) async fn run(context: &Context, command: SidecarsCommand) -> Result<(), CliError> {
    let client = &context.client;
    match command {
        SidecarsCommand::List => context.printer.list(
            &client.get("/sidecars").await?,
            &COLUMNS,
            "no sidecar has enrolled",
        ),
        SidecarsCommand::Show { id } => {
            let answer = client.get(&format!("/sidecars/{}", segment(&id))).await?;
            context.printer.answer(&answer, fields)
        }
        SidecarsCommand::Revoke { id } => {
            let answer = client.delete(&format!("/sidecars/{}", segment(&id))).await?;
            context
                .printer
                .answer(&answer, |_| "revoked: its streams end now".to_owned())
        }
        SidecarsCommand::Tokens(command) => tokens(context, command).await,
    }
}

async fn tokens(context: &Context, command: TokensCommand) -> Result<(), CliError> {
    match command {
        TokensCommand::Create(args) => {
            let mut body = json!({"namespace": args.namespace, "ttl": args.ttl, "uses": args.uses});
            if let Some(map) = body.as_object_mut() {
                if !args.agents.is_empty() {
                    map.insert("agents".to_owned(), json!(args.agents));
                }
                if !args.upstreams.is_empty() {
                    map.insert("upstreams".to_owned(), json!(args.upstreams));
                }
            }
            let answer = context.client.post("/sidecars/tokens", &body).await?;
            // The bare token, so that it can be piped into a file.
            context.printer.answer(&answer, |token| field(token, "token"))
        }
        TokensCommand::List => {
            let answer = context.client.get("/sidecars/tokens").await?;
            context
                .printer
                .list(&answer, &TOKEN_COLUMNS, "no join token can be used")
        }
        TokensCommand::Revoke { id } => {
            let answer = context
                .client
                .delete(&format!("/sidecars/tokens/{}", segment(&id)))
                .await?;
            context
                .printer
                .answer(&answer, |_| "the join token is useless now".to_owned())
        }
    }
}

/// An object as `name  value` lines.
pub(crate) fn fields(value: &Value) -> String {
    let Some(map) = value.as_object() else {
        return value.to_string();
    };
    let width = map.keys().map(String::len).max().unwrap_or(0);
    map.keys()
        .map(|name| format!("{name:width$}  {}", field(value, name)))
        .collect::<Vec<_>>()
        .join("\n")
}
