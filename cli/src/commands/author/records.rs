//! `toolgate policy replay | why`, and which records are meant.

use std::path::PathBuf;

use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::sources;
use crate::client::segment;
use crate::commands::{Context, with_query};
use crate::error::CliError;
use crate::output::field;

/// Which records.
#[derive(Args, Debug)]
pub(crate) struct Range {
    /// From this time on: an age such as 7d or 12h, or a time (RFC 3339).
    #[arg(long)]
    since: Option<String>,
    /// Until then.
    #[arg(long)]
    until: Option<String>,
    /// Only this agent's.
    #[arg(long)]
    agent: Option<String>,
    /// Only tools that this glob matches.
    #[arg(long, value_name = "GLOB")]
    tool: Option<String>,
    /// Only this namespace's.
    #[arg(long)]
    namespace: Option<String>,
    /// The most records that are read, newest first.
    #[arg(long)]
    limit: Option<u32>,
}

impl Range {
    /// The path with the range as its query.
    pub(crate) fn path(&self, path: &str) -> Result<String, CliError> {
        Ok(with_query(
            path,
            &[
                ("since", time(self.since.as_deref())?),
                ("until", time(self.until.as_deref())?),
                ("agent", self.agent.clone()),
                ("tool", self.tool.clone()),
                ("namespace", self.namespace.clone()),
                ("limit", self.limit.map(|limit| limit.to_string())),
            ],
        ))
    }

    fn body(&self) -> Result<Value, CliError> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        put("since", time(self.since.as_deref())?.map(Value::from));
        put("until", time(self.until.as_deref())?.map(Value::from));
        put("agent", self.agent.clone().map(Value::from));
        put("tool", self.tool.clone().map(Value::from));
        put("namespace", self.namespace.clone().map(Value::from));
        put("limit", self.limit.map(Value::from));
        Ok(Value::Object(fields))
    }
}

/// An age becomes a time; a time stays one.
fn time(text: Option<&str>) -> Result<Option<String>, CliError> {
    let Some(text) = text else { return Ok(None) };
    if text.contains('T') || text.contains(':') {
        return Ok(Some(text.to_owned()));
    }
    let age = net::duration::parse(text).map_err(|error| CliError::Usage(error.to_string()))?;
    let now = net::clock::Clock::machine().wall_micros();
    Ok(Some(net::clock::rfc3339(
        now.saturating_sub(net::clock::micros(age)),
    )))
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// Policy files or folders. A document stands in place of the one in force with its name.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// These are all the policies: what else is in force is left out.
    #[arg(long)]
    only: bool,
    #[command(flatten)]
    range: Range,
}

/// Decides recorded calls again.
pub(crate) async fn replay(context: &Context, args: ReplayArgs) -> Result<(), CliError> {
    let mut documents = Vec::new();
    for path in &args.paths {
        let files = if path.is_dir() {
            sources::files_in(path, sources::is_policy)?
        } else {
            vec![path.clone()]
        };
        for file in files {
            let text = sources::text_of(&file)
                .map_err(|message| CliError::Usage(format!("{}: {message}", file.display())))?;
            documents.push(text);
        }
    }
    let body = json!({
        "documents": documents.join("\n---\n"),
        "only": args.only,
        "records": args.range.body()?,
    });
    let answer = context.client.post("/traces/replay", &body).await?;
    context.printer.answer(&answer, replayed)
}

fn rows<'v>(answer: &'v Value, name: &str) -> &'v [Value] {
    answer
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn replayed(answer: &Value) -> String {
    let mut lines = Vec::new();
    for group in rows(answer, "changes") {
        lines.push(format!(
            "{}  {}  {} -> {}  {} times  {}",
            field(group, "agent"),
            field(group, "tool"),
            field(group, "from"),
            field(group, "to"),
            field(group, "count"),
            field(group, "rule"),
        ));
        lines.push(format!("    records {}", field(group, "records")));
    }
    let left_out = rows(answer, "not_replayed");
    for one in left_out.iter().take(20) {
        lines.push(format!(
            "not replayed: {} ({}): {}",
            field(one, "record"),
            field(one, "tool"),
            field(one, "reason")
        ));
    }
    if left_out.len() > 20 {
        lines.push(format!(
            "and {} more that could not be replayed",
            left_out.len() - 20
        ));
    }
    let more = if answer.get("cut") == Some(&Value::Bool(true)) {
        "; more records are in the range, raise --limit"
    } else {
        ""
    };
    lines.push(format!(
        "{} replayed, {} as before, {} could not be replayed{more}",
        field(answer, "replayed"),
        field(answer, "same"),
        left_out.len()
    ));
    lines.join("\n")
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The record: its id or trace id, or the beginning of the id where that is unique.
    record: String,
}

/// The path to a decision, by the policies that are in force now, and the smallest change that flips it.
pub(crate) async fn why(context: &Context, args: WhyArgs) -> Result<(), CliError> {
    let path = format!("/traces/{}/why", segment(&args.record));
    let request = context.client.request(Method::GET, &path);
    let answer = context.client.json(request).await?;
    context.printer.answer(&answer, path_to)
}

fn path_to(answer: &Value) -> String {
    let decided_as = match answer.get("decided_as").and_then(Value::as_str) {
        Some(name) => format!(" as {name}"),
        None => String::new(),
    };
    let mut lines = vec![format!(
        "{} calls {}{decided_as}: {} ({}){}",
        field(answer, "agent"),
        field(answer, "tool"),
        field(answer, "action"),
        field(answer, "reason"),
        rule(answer)
    )];
    if field(answer, "action_then") != field(answer, "action") {
        lines.push(format!(
            "then it was {}: policies have changed since",
            field(answer, "action_then")
        ));
    }
    if answer.get("params_kept") == Some(&Value::Bool(false)) {
        lines.push("its arguments were not kept: this is the answer to a call without any".to_owned());
    }
    for step in rows(answer, "path") {
        let reference = step.get("rule").unwrap_or(&Value::Null);
        lines.push(format!(
            "  {} {}#{} {}",
            field(step, "truth"),
            field(reference, "policy"),
            field(reference, "index"),
            field(step, "action")
        ));
        for part in rows(step, "parts") {
            lines.push(format!("      {} {}", field(part, "truth"), field(part, "what")));
        }
    }
    for floor in rows(answer, "floors") {
        lines.push(format!("  floor {}", floor_text(floor)));
    }
    for change in rows(answer, "rule_changes") {
        lines.push(format!(
            "{} with {}",
            field(change, "action"),
            field(change, "change")
        ));
    }
    for change in rows(answer, "argument_changes") {
        let value = match change.get("value").and_then(Value::as_str) {
            Some(value) => format!("= {value}"),
            None => "left out".to_owned(),
        };
        lines.push(format!(
            "{} with {} {value}",
            field(change, "action"),
            field(change, "field")
        ));
    }
    lines.join("\n")
}

fn rule(answer: &Value) -> String {
    let rule = field(answer, "rule");
    if rule.is_empty() {
        rule
    } else {
        format!(" by {rule}")
    }
}

fn floor_text(floor: &Value) -> String {
    let parts: Vec<&str> = floor
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    parts.join(" -> ")
}
