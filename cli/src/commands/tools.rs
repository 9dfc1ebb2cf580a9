//! `toolgate tools list | show | correct | extractor`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Context, with_query};
use crate::client::segment;
use crate::error::CliError;
use crate::output::{Column, field};

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Tools that sidecars serve, with what they are judged to do.
    List(ListArgs),
    /// One tool whole: its declaration, classification, corrections and the policies that can reach it.
    Show(OneArgs),
    /// Correct what is known of a tool.
    Correct(CorrectArgs),
    /// How the resources and columns of a tool's calls are read.
    #[command(subcommand)]
    Extractor(ExtractorCommand),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only of this namespace.
    #[arg(long)]
    namespace: Option<String>,
    /// Only of this upstream.
    #[arg(long)]
    upstream: Option<String>,
    /// mcp, openapi, cli or host.
    #[arg(long)]
    kind: Option<String>,
    /// named or generic.
    #[arg(long)]
    family: Option<String>,
    /// read, write or unknown.
    #[arg(long)]
    access: Option<String>,
    /// read, write, delete or admin.
    #[arg(long)]
    side_effect: Option<String>,
    /// A risk class, such as DELETE.
    #[arg(long)]
    risk: Option<String>,
    /// Only with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// draft, active, deprecated or archived.
    #[arg(long)]
    lifecycle: Option<String>,
    /// pinned, new or changed.
    #[arg(long)]
    pin: Option<String>,
    /// Only where name or description holds this text.
    text: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct OneArgs {
    /// The tool's full name.
    tool: String,
    /// Its namespace, where it is in several.
    #[arg(long)]
    namespace: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct CorrectArgs {
    #[command(flatten)]
    tool: OneArgs,
    /// read, write, delete or admin.
    #[arg(long)]
    side_effect: Option<String>,
    /// What it does, as JSON: `{"capability": "file.read", "risks": ["READ"]}`.
    #[arg(long, value_name = "JSON")]
    mapping: Option<String>,
    /// A tag for policies to select on; replaces the earlier ones.
    #[arg(long = "risk-tag", value_name = "TAG")]
    risk_tags: Vec<String>,
    /// A tag for policies to select on; replaces the earlier ones.
    #[arg(long = "compliance-tag", value_name = "TAG")]
    compliance_tags: Vec<String>,
    /// draft, active, deprecated or archived.
    #[arg(long)]
    lifecycle: Option<String>,
    /// Takes a correction away: side_effect, mapping, risk_tags, compliance_tags, lifecycle_state.
    #[arg(long, value_name = "FIELD")]
    clear: Vec<String>,
    /// Who corrects, for the record.
    #[arg(long)]
    by: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExtractorCommand {
    /// Give a tool an extractor.
    Set {
        #[command(flatten)]
        tool: OneArgs,
        /// The extractor as JSON, such as `{"mode": "sql", "argument": "query", "dialect": "postgres"}`.
        extractor: String,
    },
    /// Take a tool's extractor away.
    Remove {
        #[command(flatten)]
        tool: OneArgs,
    },
    /// See what an extractor reads from some arguments; nothing is stored.
    Test {
        #[command(flatten)]
        tool: OneArgs,
        /// A call's arguments as JSON.
        arguments: String,
        /// The extractor as JSON [default: the tool's own].
        #[arg(long, value_name = "JSON")]
        extractor: Option<String>,
    },
}

const COLUMNS: [Column; 6] = [
    Column::new("TOOL", |row| field(row, "name")),
    Column::new("NAMESPACE", |row| field(row, "namespace")),
    Column::new("RISK", |row| of_classification(row, "risk")),
    Column::new("ACCESS", |row| of_classification(row, "access")),
    Column::new("FAMILY", |row| of_classification(row, "family")),
    Column::new("CORRECTED", |row| match row.get("correction") {
        Some(correction) if correction.get("stale") == Some(&Value::Bool(true)) => {
            format!("{}, of an earlier version", field(correction, "updated_by"))
        }
        Some(correction) => field(correction, "updated_by"),
        None => String::new(),
    }),
];

fn of_classification(row: &Value, name: &str) -> String {
    row.get("classification")
        .map(|judged| field(judged, name))
        .unwrap_or_default()
}

pub(crate) async fn run(context: &Context, command: ToolsCommand) -> Result<(), CliError> {
    match command {
        ToolsCommand::List(args) => list(context, args).await,
        ToolsCommand::Show(args) => {
            let tool = context.client.get(&path(&args, "")).await?;
            context.printer.answer(&tool, shown)
        }
        ToolsCommand::Correct(args) => correct(context, args).await,
        ToolsCommand::Extractor(command) => extractor(context, command).await,
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<(), CliError> {
    let path = with_query(
        "/tools",
        &[
            ("namespace", args.namespace),
            ("upstream", args.upstream),
            ("kind", args.kind),
            ("family", args.family),
            ("access", args.access),
            ("side_effect", args.side_effect),
            ("risk", args.risk),
            ("tag", args.tag),
            ("lifecycle", args.lifecycle),
            ("pin", args.pin),
            ("text", args.text),
        ],
    );
    let tools = context.client.get(&path).await?;
    context.printer.list(&tools, &COLUMNS, "no tool is like that")
}

fn path(tool: &OneArgs, rest: &str) -> String {
    with_query(
        &format!("/tools/{}{rest}", segment(&tool.tool)),
        &[("namespace", tool.namespace.clone())],
    )
}

async fn correct(context: &Context, args: CorrectArgs) -> Result<(), CliError> {
    let mut changes = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            changes.insert(name.to_owned(), value);
        }
    };
    set("side_effect", args.side_effect.map(Value::String));
    set(
        "mapping",
        args.mapping
            .as_deref()
            .map(|text| parsed("--mapping", text))
            .transpose()?,
    );
    let tags = |tags: Vec<String>| (!tags.is_empty()).then(|| json!(tags));
    set("risk_tags", tags(args.risk_tags));
    set("compliance_tags", tags(args.compliance_tags));
    set("lifecycle_state", args.lifecycle.map(Value::String));
    for name in args.clear {
        set(&name, Some(Value::Null));
    }
    set("by", args.by.map(Value::String));
    let request = context.client.request(Method::PATCH, &path(&args.tool, ""));
    let tool = context.client.json(request.json(&changes)).await?;
    context.printer.answer(&tool, shown)
}

async fn extractor(context: &Context, command: ExtractorCommand) -> Result<(), CliError> {
    let client = &context.client;
    match command {
        ExtractorCommand::Set { tool, extractor } => {
            let extractor = parsed("the extractor", &extractor)?;
            let request = client.request(Method::PUT, &path(&tool, "/extractor"));
            let tool = client.json(request.json(&extractor)).await?;
            context.printer.answer(&tool, shown)
        }
        ExtractorCommand::Remove { tool } => {
            let tool = client.delete(&path(&tool, "/extractor")).await?;
            context.printer.answer(&tool, shown)
        }
        ExtractorCommand::Test {
            tool,
            arguments,
            extractor,
        } => {
            let mut body = json!({"arguments": parsed("the arguments", &arguments)?});
            if let (Some(text), Some(fields)) = (extractor, body.as_object_mut()) {
                fields.insert("extractor".to_owned(), parsed("--extractor", &text)?);
            }
            let tried = client.post(&path(&tool, "/extractor/test"), &body).await?;
            context.printer.answer(&tried, read)
        }
    }
}

fn parsed(what: &str, text: &str) -> Result<Value, CliError> {
    serde_json::from_str(text).map_err(|error| CliError::Usage(format!("{what} is no JSON: {error}")))
}

/// One `name: value` a line, those that are there.
fn lines(pairs: &[(&str, String)]) -> String {
    pairs
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}: {value}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn shown(tool: &Value) -> String {
    let part = |of: &str, name: &str| tool.get(of).map(|part| field(part, name)).unwrap_or_default();
    let policies = tool
        .pointer("/coverage/policies")
        .and_then(Value::as_array)
        .map(|policies| {
            policies
                .iter()
                .map(|policy| format!("{} ({})", field(policy, "name"), field(policy, "actions")))
                .collect::<Vec<_>>()
                .join(", ")
        })
        .unwrap_or_default();
    let stale = match part("correction", "stale").as_str() {
        "true" => {
            "the tool has changed since: what makes it milder no longer holds; correct it again".to_owned()
        }
        _ => String::new(),
    };
    lines(&[
        ("tool", field(tool, "name")),
        ("namespace", field(tool, "namespace")),
        ("description", field(tool, "description")),
        ("risk", part("classification", "risk")),
        ("possible risks", part("classification", "possible_risks")),
        ("access", part("classification", "access")),
        ("family", part("classification", "family")),
        ("side effect", field(tool, "side_effect_type")),
        ("tags", part("classification", "tags")),
        ("because", part("classification", "reasons")),
        ("lifecycle", field(tool, "lifecycle_state")),
        ("pin", field(tool, "pin")),
        ("extractor", field(tool, "target_extractor")),
        ("corrected by", part("correction", "updated_by")),
        ("corrected at", part("correction", "updated_at")),
        ("correction", stale),
        ("policies that reach it", policies),
        ("one of them denies it", part("coverage", "denies")),
        ("fingerprint", field(tool, "version_hash")),
    ])
}

fn read(tried: &Value) -> String {
    let set = |name: &str| match tried.get(name) {
        Some(Value::Array(members)) if members.is_empty() => "none".to_owned(),
        Some(Value::Array(_)) => field(tried, name),
        _ => "unknown".to_owned(),
    };
    lines(&[
        ("resources", set("resources")),
        ("columns", set("columns")),
        ("risks", field(tried, "risks")),
        ("because", field(tried, "reasons")),
    ])
}
