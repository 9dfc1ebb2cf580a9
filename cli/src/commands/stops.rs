//! `toolgate stop | resume`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use super::Context;
use crate::client::segment;
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Args, Debug)]
pub(crate) struct StopArgs {
    /// What to stop: `all`, `namespace:NAME`, `agent:GLOB`, `session:ID` or `upstream:NAME`. Without it: the stops that hold.
    scope: Option<String>,
    /// Why, for the record and for the agents.
    #[arg(long, short, requires = "scope")]
    reason: Option<String>,
    /// Of a session: whose, where the id alone could be several agents'.
    #[arg(long, requires = "scope")]
    agent: Option<String>,
    /// Only in this namespace.
    #[arg(long, requires = "scope")]
    namespace: Option<String>,
    /// Wait until connected sidecars have applied it.
    #[arg(long, requires = "scope")]
    wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ResumeArgs {
    /// The stop's id, or the beginning of it where that is unique.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    id: String,
}

const COLUMNS: [Column; 5] = [
    Column::new("ID", |row| field(row, "id").chars().take(12).collect()),
    Column::new("SCOPE", |row| field(row, "scope")),
    Column::new("REASON", |row| field(row, "reason")),
    Column::new("BY", |row| field(row, "by")),
    Column::new("SINCE", |row| field(row, "created_at")),
];

pub(crate) async fn stop(context: &Context, args: StopArgs) -> Result<(), CliError> {
    let Some(scope) = args.scope else {
        let answer = context.client.get("/stops").await?;
        return context.printer.list(&answer, &COLUMNS, "no stop holds");
    };
    let mut body = json!({"scope": scope, "reason": args.reason.unwrap_or_default()});
    if let Some(fields) = body.as_object_mut() {
        fields.extend(args.agent.map(|agent| ("agent".to_owned(), json!(agent))));
        fields.extend(
            args.namespace
                .map(|namespace| ("namespace".to_owned(), json!(namespace))),
        );
    }
    let path = if args.wait {
        "/stops?wait=applied"
    } else {
        "/stops"
    };
    let answer = context.client.post(path, &body).await?;
    context.printer.answer(&answer, |stop| {
        let mut text = format!("stopped {}: {}", field(stop, "scope"), field(stop, "id"));
        if stop.get("of").is_some() {
            text.push_str(&format!(
                "\napplied by {} of {} sidecars",
                field(stop, "applied"),
                field(stop, "of")
            ));
        }
        text.push_str(&format!(
            "\nlift it with: toolgate resume {}",
            field(stop, "id").chars().take(12).collect::<String>()
        ));
        text
    })
}

pub(crate) async fn resume(context: &Context, args: ResumeArgs) -> Result<(), CliError> {
    let answer = context
        .client
        .delete(&format!("/stops/{}", segment(&args.id)))
        .await?;
    context
        .printer
        .answer(&answer, |_| "the stop is lifted".to_owned())
}
