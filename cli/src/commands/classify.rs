//! `toolgate classify`: what a tool, or one call of it, is judged to do. Works on this machine alone.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tools::classify::{Report, classify_call};
use tools::id::UpstreamName;
use tools::json::{Document, Kind, Limits};
use tools::model::{Tool, ToolKind};

use crate::error::CliError;
use crate::output::{Column, Printer, field};

#[derive(Args, Debug)]
pub(crate) struct ClassifyArgs {
    /// The tool's name: `<upstream>.<tool>`, or a host's own such as `Bash`.
    #[arg(required_unless_present = "catalog")]
    tool: Option<String>,
    /// The arguments of one call, a JSON object.
    arguments: Option<String>,
    /// Tools as their server declared them: a `tools/list` answer, or `{"server": …, "tools": […]}`. Without TOOL, all
    /// of them are shown.
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

pub(crate) fn run(printer: Printer, args: &ClassifyArgs) -> Result<(), CliError> {
    let declared = args.catalog.as_deref().map(catalogue).transpose()?;
    match (&args.tool, declared) {
        (None, declared) => all(printer, &declared.unwrap_or_default()),
        (Some(name), None) => {
            let tool = Tool::named(name).map_err(|error| CliError::Usage(error.to_string()))?;
            one(printer, &tool, args.arguments.as_deref())
        }
        (Some(name), Some(declared)) => {
            let found = declared
                .iter()
                .find(|tool| tool.name.as_str() == name || tool.local_name() == name);
            let tool = found.ok_or_else(|| CliError::Usage(format!("the catalogue has no tool {name:?}")))?;
            one(printer, tool, args.arguments.as_deref())
        }
    }
}

/// A table of what tools are judged to do.
pub(crate) fn all(printer: Printer, tools: &[Tool]) -> Result<(), CliError> {
    let reports: Vec<Report<'_>> = tools.iter().map(Report::of_tool).collect();
    let columns = [
        Column::new("TOOL", |row| field(row, "name")),
        Column::new("RISK", |row| field(row, "risks")),
        Column::new("ACCESS", |row| {
            let plain = if row.get("plain_read") == Some(&Value::Bool(true)) {
                ", plain"
            } else {
                ""
            };
            format!("{}{plain}", field(row, "access"))
        }),
        Column::new("FAMILY", |row| field(row, "family")),
        Column::new("CAPABILITY", |row| field(row, "capability")),
        Column::new("WHY", |row| field(row, "reasons")),
    ];
    printer.list(&json!(reports), &columns, "the catalogue has no tools")
}

fn one(printer: Printer, tool: &Tool, arguments: Option<&str>) -> Result<(), CliError> {
    let report = match arguments {
        None => json!(Report::of_tool(tool)),
        Some(text) => {
            let not_an_object =
                |detail: &str| CliError::Usage(format!("the arguments are no JSON object: {detail}"));
            let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS)
                .map_err(|error| not_an_object(&error.to_string()))?;
            if document.root().kind() != Kind::Object {
                return Err(not_an_object("write such as {\"path\": \"/tmp/x\"}"));
            }
            json!(Report::of_call(&classify_call(tool, Some(document.root()))))
        }
    };
    printer.answer(&report, text)
}

fn text(report: &Value) -> String {
    let mut lines = vec![format!("{}  {}", field(report, "name"), field(report, "risk"))];
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {name:<12} {value}"));
        }
    };
    row("capability", field(report, "capability"));
    row("risks", field(report, "risks"));
    if report.get("possible_risks") != report.get("risks") {
        row("possible", field(report, "possible_risks"));
    }
    row("source", field(report, "source"));
    row(
        "access",
        format!("{}, {}", field(report, "access"), field(report, "family")),
    );
    let effect = report.get("side_effect").unwrap_or(&Value::Null);
    row(
        "side effect",
        format!("{} (from {})", field(effect, "kind"), field(effect, "source")),
    );
    row("plain read", field(report, "plain_read"));
    for name in ["resources", "columns", "hosts", "paths", "recipients"] {
        let known = report.get("targets").and_then(|targets| targets.get(name));
        row(
            name,
            known.filter(|set| !set.is_null()).map_or(String::new(), |_| {
                field(report.get("targets").unwrap_or(&Value::Null), name)
            }),
        );
    }
    row("why", field(report, "reasons"));
    lines.join("\n")
}

fn catalogue(file: &Path) -> Result<Vec<Tool>, CliError> {
    let wrong = |problem: String| CliError::Usage(format!("{}: {problem}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let (server, tools) = declared(&bytes).map_err(wrong)?;
    let upstream = server
        .map(|name| UpstreamName::try_from(name.as_str()))
        .transpose()
        .map_err(|error| wrong(error.to_string()))?;
    tools
        .into_iter()
        .map(|raw| Tool::from_declaration(ToolKind::Mcp, upstream.as_ref(), None, raw.into()))
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(error.to_string()))
}

/// The server's name, where it is there, and its tools.
fn declared(bytes: &[u8]) -> Result<(Option<String>, Vec<Box<RawValue>>), String> {
    #[derive(Deserialize)]
    struct File<'a> {
        #[serde(default)]
        server: Option<String>,
        #[serde(borrow, default)]
        tools: Option<Vec<&'a RawValue>>,
        #[serde(borrow, default)]
        result: Option<Inner<'a>>,
    }
    #[derive(Deserialize)]
    struct Inner<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    let file: File<'_> =
        serde_json::from_slice(bytes).map_err(|error| format!("this is no tools/list answer: {error}"))?;
    let tools = file
        .tools
        .or(file.result.map(|result| result.tools))
        .ok_or("there are no \"tools\": give a tools/list answer, or {\"server\": …, \"tools\": […]}")?;
    Ok((file.server, tools.into_iter().map(ToOwned::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_a_list_answer_or_a_server_with_tools() {
        let tool = r#"{"name": "get_x"}"#;
        for (text, server) in [
            (format!(r#"{{"tools": [{tool}]}}"#), None),
            (
                format!(r#"{{"jsonrpc": "2.0", "id": 1, "result": {{"tools": [{tool}]}}}}"#),
                None,
            ),
            (
                format!(r#"{{"server": "s", "serverInfo": {{}}, "tools": [{tool}]}}"#),
                Some("s"),
            ),
        ] {
            let (found, tools) = declared(text.as_bytes()).unwrap();
            assert_eq!(found.as_deref(), server);
            assert_eq!(tools.len(), 1);
        }
        assert!(declared(b"{}").unwrap_err().contains("tools/list"));
        assert!(declared(b"[]").is_err());
    }

    #[test]
    fn a_classification_reads_as_a_few_lines() {
        let tool = Tool::named("mail.send_email").unwrap();
        let document = Document::parse(br#"{"to": "Bob <bob@example.com>"}"#, Limits::ARGUMENTS).unwrap();
        let assessment = classify_call(&tool, Some(document.root()));
        let text = text(&json!(Report::of_call(&assessment)));
        assert!(text.starts_with("mail.send_email  COMMUNICATION\n"), "{text}");
        assert!(text.contains("recipients   bob@example.com"), "{text}");
        assert!(text.contains("email.send"), "{text}");
    }
}
