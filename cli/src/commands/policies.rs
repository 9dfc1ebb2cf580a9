//! `toolgate policy list | push | pull | set | history | rollback | delete`, and the author's commands.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Context, author};
use crate::client::{problem_line, segment};
use crate::error::CliError;
use crate::output::{Column, field, line};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Every policy, the most specific first.
    List,
    /// Check the documents of files and put them in force; nothing changes when one is wrong.
    Push(PushArgs),
    /// Print a policy's document, or write it to a file.
    Pull {
        /// The policy's name.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// Where to write it.
        #[arg(long, short)]
        file: Option<PathBuf>,
    },
    /// Set what one tool's calls by one agent come to, in the agent's own policy; every other line of it stays.
    Set(SetArgs),
    /// The versions of a policy, newest first.
    History {
        /// The policy's name.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
    /// Put an earlier version in force again, as a new version.
    Rollback {
        /// The policy's name.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
        /// The version, as `history` shows it.
        #[arg(id = "earlier", value_name = "VERSION")]
        version: u64,
    },
    /// Remove a policy. Its versions stay.
    Delete {
        /// The policy's name.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        name: String,
    },
    /// Say what a policy's author most likely did not mean. Needs no server.
    Lint(author::LintArgs),
    /// Run `*.test.yaml`: calls and what they are to be answered. Needs no server.
    Test(author::TestArgs),
    /// Show which tools open or close for whom between two states of policies. Needs no server.
    Diff(author::DiffArgs),
    /// Decide recorded calls again, by other policies.
    Replay(author::ReplayArgs),
    /// Show the path to a recorded decision, and the smallest change that flips it.
    Why(author::WhyArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// The agent.
    agent: String,
    /// The tool, by its full name: `server.tool`.
    tool: String,
    /// What its calls come to; `inherit` removes a rule that was set this way.
    #[arg(value_enum)]
    action: SetAction,
    /// Who sets it, for the record and the comment above the rule.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// As the tool is in this namespace, when it differs between them.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only when the present version of the agent's own policy is this one.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
}

/// What can be set for a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum SetAction {
    /// Its calls are forwarded.
    Allow,
    /// Its calls are refused.
    Deny,
    /// Its calls wait for a person.
    HumanApproval,
    /// Whatever the other rules say.
    Inherit,
}

#[derive(Args, Debug)]
pub(crate) struct PushArgs {
    /// YAML files, each with one or more documents.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Only when the present version is this one.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
}

const COLUMNS: [Column; 6] = [
    Column::new("NAME", |row| field(row, "name")),
    Column::new("AGENT", |row| field(row, "agent")),
    Column::new("KIND", |row| field(row, "kind")),
    Column::new("MODE", |row| field(row, "mode")),
    Column::new("ORIGIN", |row| field(row, "origin")),
    Column::new("REVISION", |row| field(row, "revision")),
];

const VERSION_COLUMNS: [Column; 4] = [
    Column::new("VERSION", |row| field(row, "version")),
    Column::new("REVISION", |row| field(row, "revision")),
    Column::new("AT", |row| field(row, "at")),
    Column::new("BY", |row| field(row, "by")),
];

pub(crate) async fn run(context: &Context, command: PolicyCommand) -> Result<(), CliError> {
    let client = &context.client;
    match command {
        PolicyCommand::List => context.printer.list(
            &client.get("/policies").await?,
            &COLUMNS,
            "no policy is in force: every call is denied",
        ),
        PolicyCommand::Push(args) => push(context, args).await,
        PolicyCommand::Lint(args) => author::lint(context, args).await,
        PolicyCommand::Test(args) => author::test(context, args).await,
        PolicyCommand::Diff(args) => author::diff(context, args).await,
        PolicyCommand::Replay(args) => author::replay(context, args).await,
        PolicyCommand::Why(args) => author::why(context, args).await,
        PolicyCommand::Pull { name, file } => {
            let answer = client.get(&format!("/policies/{}", segment(&name))).await?;
            if file.is_some() || !context.printer.is_json() {
                written_here(&answer)?;
            }
            let text = answer.get("text").and_then(Value::as_str).unwrap_or_default();
            match file {
                Some(file) => Ok(std::fs::write(&file, text)?),
                None => context.printer.answer(&answer, |_| text.to_owned()),
            }
        }
        PolicyCommand::Set(args) => set(context, args).await,
        PolicyCommand::History { name } => {
            let answer = client
                .get(&format!("/policies/{}/versions", segment(&name)))
                .await?;
            context
                .printer
                .list(&answer, &VERSION_COLUMNS, "no version is kept")
        }
        PolicyCommand::Rollback { name, version } => {
            let path = format!("/policies/{}/rollback", segment(&name));
            let answer = client.post(&path, &json!({"version": version})).await?;
            context.printer.answer(&answer, in_force)
        }
        PolicyCommand::Delete { name } => {
            let answer = client.delete(&format!("/policies/{}", segment(&name))).await?;
            context.printer.answer(&answer, |answer| {
                format!(
                    "{} is gone since revision {}",
                    field(answer, "name"),
                    field(answer, "revision")
                )
            })
        }
    }
}

async fn set(context: &Context, args: SetArgs) -> Result<(), CliError> {
    let namespace = args
        .namespace
        .map(|namespace| format!("?namespace={}", segment(&namespace)));
    let path = format!(
        "/policies/{}/tools/{}{}",
        segment(&args.agent),
        segment(&args.tool),
        namespace.unwrap_or_default()
    );
    let action = args.action.to_possible_value();
    let action = action.as_ref().map_or("", |action| action.get_name());
    let mut body = json!({"action": action});
    if let (Some(by), Some(fields)) = (args.by, body.as_object_mut()) {
        fields.insert("by".to_owned(), json!(by));
    }
    let mut request = context.client.request(Method::PUT, &path).json(&body);
    if let Some(version) = args.if_version {
        request = request.header("If-Match", format!("\"{version}\""));
    }
    let answer = context.client.json(request).await?;
    context.printer.answer(&answer, |answer| {
        let says = format!(
            "{} is {} for {}",
            field(answer, "tool"),
            field(answer, "action"),
            field(answer, "agent")
        );
        if answer.get("changed") != Some(&Value::Bool(true)) {
            return format!("nothing to change: {says}");
        }
        let before = field(answer, "action_before");
        format!(
            "{says} (was {before}) from revision {}, in policy {}",
            field(answer, "revision"),
            field(answer, "policy")
        )
    })
}

/// Only what came by the API has a document of its own.
fn written_here(policy: &Value) -> Result<(), CliError> {
    let (name, origin) = (field(policy, "name"), field(policy, "origin"));
    if origin == "api" {
        return Ok(());
    }
    let owner = match field(policy, "source_file") {
        file if file.is_empty() => "the `policies` of the control plane's configuration".to_owned(),
        file => format!("the policy directory's {file}"),
    };
    Err(CliError::Usage(format!(
        "policy `{name}` is written in {owner}: read it there, or see its rules with --output json"
    )))
}

/// A document on its way to the control plane.
struct Document {
    name: String,
    text: String,
}

/// Has every document of every file checked before the first is put in force.
async fn push(context: &Context, args: PushArgs) -> Result<(), CliError> {
    let mut documents = Vec::new();
    let mut problems = Vec::new();
    for file in &args.files {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file)
            .map_err(|error| CliError::Usage(format!("{name} cannot be read: {error}")))?;
        match named_documents(&name, &text) {
            Ok(found) => {
                problems.extend(check(context, &name, &text).await?);
                documents.extend(found);
            }
            Err(found) => problems.extend(found.iter().map(ToString::to_string)),
        }
    }
    if !problems.is_empty() {
        return Err(CliError::Usage(problems.join("\n")));
    }
    if args.if_version.is_some() && documents.len() != 1 {
        return Err(CliError::Usage(
            "--if-version needs exactly one document".to_owned(),
        ));
    }
    for document in documents {
        let mut request = context
            .client
            .request(Method::PUT, &format!("/policies/{}", segment(&document.name)));
        if let Some(version) = args.if_version {
            request = request.header("If-Match", format!("\"{version}\""));
        }
        let request = request
            .header("Content-Type", "application/yaml")
            .body(document.text);
        let answer = context.client.json(request).await?;
        context.printer.answer(&answer, in_force)?;
    }
    if !context.printer.is_json() {
        line("see it arrive with: toolgate rollout status --wait")?;
    }
    Ok(())
}

/// What the control plane, which knows the lists, finds wrong with a file.
async fn check(context: &Context, file: &str, text: &str) -> Result<Vec<String>, CliError> {
    let request = context.client.request(Method::POST, "/policies/validate");
    let request = request
        .header("Content-Type", "application/yaml")
        .body(text.to_owned());
    let answer = context.client.json(request).await?;
    let problems = answer
        .get("problems")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    Ok(problems
        .iter()
        .map(|problem| problem_line(file, problem))
        .collect())
}

fn in_force(answer: &Value) -> String {
    format!(
        "{} version {} is in force from revision {}",
        field(answer, "name"),
        field(answer, "version"),
        field(answer, "revision")
    )
}

/// The documents of a file, each with its name and its own text.
fn named_documents(file: &str, text: &str) -> Result<Vec<Document>, Vec<policy::yaml::Problem>> {
    let mut documents = Vec::new();
    for part in control_plane::documents::split_documents(text) {
        let values = policy::yaml::load(file, part)?;
        let name = values.iter().find_map(|value| value.get("name")?.as_str());
        // A document without a name is refused by the check.
        documents.extend(name.map(|name| Document {
            name: name.to_owned(),
            text: part.to_owned(),
        }));
    }
    Ok(documents)
}
