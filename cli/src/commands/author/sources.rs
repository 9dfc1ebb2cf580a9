//! Policies from files, and known tools from files or the control plane.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use policy::Floor;
use policy::catalogue::{Catalogue, KnownTool};
use policy::document::{Lists, Policy, Source, duplicate_names};
use policy::yaml::{self, Problems, Value as Yaml};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tools::classify::{Classification, Correction};
use tools::extract::Extractor;
use tools::id::UpstreamName;
use tools::model::{Tool, ToolKind};

use crate::commands::Context;
use crate::error::CliError;
use crate::output::note;

/// The largest catalogue file, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Where lists and tools come from.
#[derive(Args, Debug)]
pub(crate) struct SourceArgs {
    /// Known tools: a `tools/list` answer, `{server, tools}`, or what GET /tools answered; a file or a folder of them
    /// [default: the control plane's catalogue].
    #[arg(long, value_name = "PATH")]
    catalog: Vec<PathBuf>,
    /// The configuration whose `lists:` policies name as @name.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl SourceArgs {
    pub(crate) fn lists(&self) -> Result<Lists, CliError> {
        let Some(path) = &self.config else {
            return Ok(Lists::none());
        };
        let environment = std::env::vars().collect();
        let config =
            config::Config::load_without_upstreams(path, &environment).map_err(CliError::Problems)?;
        Ok(config.lists)
    }

    /// The tools of the files; without any, those of the control plane.
    pub(crate) async fn catalogue(&self, context: &Context) -> Result<Catalogue, CliError> {
        if self.catalog.is_empty() {
            return from_control_plane(context).await;
        }
        from_files(&self.catalog)
    }

    /// As [`Self::catalogue`], but no tools when nobody can be asked.
    pub(crate) async fn catalogue_if_any(&self, context: &Context) -> Result<Catalogue, CliError> {
        match self.catalogue(context).await {
            Err(CliError::Unreachable { .. } | CliError::Refused { .. }) => {
                note(
                    "no control plane was asked and no --catalog is given: what depends on known tools is not looked at",
                );
                Ok(Catalogue::default())
            }
            other => other,
        }
    }

    pub(crate) fn names_files(&self) -> bool {
        !self.catalog.is_empty()
    }
}

/// The policies of files and folders (a folder: as `policy_dir` reads it); also of a configuration's `policies:`.
pub(crate) fn policies(paths: &[PathBuf], lists: &Lists) -> Result<Vec<Arc<Policy>>, CliError> {
    let mut found: Vec<Policy> = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        let is_folder = path.is_dir();
        let files = if is_folder {
            files_in(path, is_policy)?
        } else {
            vec![path.clone()]
        };
        for file in files {
            match read(&file, lists) {
                Ok(policies) => found.extend(policies),
                Err(more) => problems.extend(more),
            }
        }
    }
    if problems.is_empty() {
        problems = duplicate_names(&found);
    }
    if problems.is_empty() {
        Ok(found.into_iter().map(Arc::new).collect())
    } else {
        Err(CliError::Problems(problems))
    }
}

fn read(path: &Path, lists: &Lists) -> Result<Vec<Policy>, Vec<yaml::Problem>> {
    let name = path.display().to_string();
    let text = text_of(path).map_err(|message| {
        let problems = Problems::new(&name);
        problems.add(yaml::Mark::default(), "", message, None);
        problems.into_vec()
    })?;
    let documents = yaml::load(&name, &text)?;
    let inline = documents
        .first()
        .and_then(|document| document.get("policies"))
        .and_then(Yaml::as_seq);
    match inline {
        Some(values) => {
            let problems = Problems::new(&name);
            let values: Vec<&Yaml> = values.iter().collect();
            let policies = Policy::read_values(&values, &Source::Inline, lists, &problems);
            problems.into_result(Some(policies))
        }
        None => Policy::parse_all(&name, &text, &Source::Directory, lists),
    }
}

pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path)
        .map_err(|error| format!("cannot be read: {error}"))?
        .len();
    if size > MAX_FILE {
        return Err(format!(
            "has {size} bytes, which is more than the {MAX_FILE} that are read"
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned())
}

pub(crate) fn is_policy(name: &str) -> bool {
    (name.ends_with(".yaml") || name.ends_with(".yml")) && !is_test(name) && !name.starts_with('.')
}

pub(crate) fn is_test(name: &str) -> bool {
    name.ends_with(".test.yaml") || name.ends_with(".test.yml")
}

/// The files of a folder whose names are wanted, sorted.
pub(crate) fn files_in(folder: &Path, wanted: fn(&str) -> bool) -> Result<Vec<PathBuf>, CliError> {
    let unreadable = |error: std::io::Error| CliError::Usage(format!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_name().to_str().is_some_and(wanted) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The tools of catalogue files and folders of them.
pub(crate) fn from_files(paths: &[PathBuf]) -> Result<Catalogue, CliError> {
    let mut tools = Vec::new();
    for path in paths {
        let files = if path.is_dir() {
            files_in(path, |name| name.ends_with(".json"))?
        } else {
            vec![path.clone()]
        };
        for file in files {
            let wrong = |message: String| CliError::Usage(format!("{}: {message}", file.display()));
            let text = text_of(&file).map_err(wrong)?;
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("tools");
            tools.extend(from_text(stem, &text).map_err(wrong)?);
        }
    }
    Ok(tools.into_iter().collect())
}

/// `{server?, tools}`, or the same as a JSON-RPC result.
#[derive(Deserialize)]
struct Listed {
    server: Option<String>,
    tools: Option<Vec<Box<RawValue>>>,
    result: Option<Box<RawValue>>,
}

fn from_text(stem: &str, text: &str) -> Result<Vec<KnownTool>, String> {
    let unreadable = |error: serde_json::Error| format!("is no catalogue: {error}");
    if text.trim_start().starts_with('[') {
        let rows: Vec<Row> = serde_json::from_str(text).map_err(unreadable)?;
        return Ok(rows.iter().filter_map(Row::known).collect());
    }
    let listed: Listed = serde_json::from_str(text).map_err(unreadable)?;
    if let Some(result) = listed.result {
        return from_text(stem, result.get());
    }
    let server = listed.server.unwrap_or_else(|| stem.to_owned());
    let upstream = upstream(&server);
    let tools = listed.tools.ok_or("is no catalogue: it has no list \"tools\"")?;
    let known = tools.into_iter().map(|raw| {
        Tool::mcp(&upstream, Arc::from(raw))
            .map(KnownTool::of)
            .map_err(|error| error.to_string())
    });
    known.collect()
}

/// The server's name as an upstream can have it.
fn upstream(server: &str) -> UpstreamName {
    let safe: String = server
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || letter == '_' {
                letter
            } else {
                '-'
            }
        })
        .collect();
    UpstreamName::try_from(safe.as_str())
        .or_else(|_| UpstreamName::try_from(format!("server-{safe}").as_str()))
        .or_else(|_| UpstreamName::try_from("server"))
        .unwrap_or_else(|error| unreachable!("\"server\" is a name: {error}"))
}

/// A tool as GET /tools shows it.
#[derive(Deserialize)]
struct Row {
    name: String,
    upstream: Option<String>,
    kind: Option<String>,
    description: Option<String>,
    params: Option<Box<RawValue>>,
    classification: Option<Classification>,
    pin: Option<String>,
    target_extractor: Option<Value>,
}

impl Row {
    fn known(&self) -> Option<KnownTool> {
        let upstream = self
            .upstream
            .as_deref()
            .and_then(|name| UpstreamName::try_from(name).ok());
        let own = |upstream: &UpstreamName| self.name.strip_prefix(upstream.as_str())?.strip_prefix('.');
        let prefixed = upstream.as_ref().and_then(own);
        if upstream.is_some() && prefixed.is_none() && self.name.contains('.') {
            return None;
        }
        let local = prefixed.unwrap_or(&self.name);
        let schema = self
            .params
            .as_deref()
            .filter(|schema| schema.get().starts_with('{'))
            .map_or("{}", RawValue::get);
        let declared = format!(
            r#"{{"name":{},"description":{},"inputSchema":{schema}}}"#,
            json!(local),
            json!(self.description.as_deref().unwrap_or_default())
        );
        let kind = match self.kind.as_deref() {
            Some("openapi") => ToolKind::OpenApi,
            Some("cli") => ToolKind::Cli,
            Some("host") => ToolKind::Host,
            _ => ToolKind::Mcp,
        };
        let raw = RawValue::from_string(declared).ok()?;
        let mut tool = match &upstream {
            Some(upstream) => Tool::declared_by(upstream, kind, prefixed.is_some(), Arc::from(raw)),
            None => Tool::from_declaration(kind, None, None, Arc::from(raw)),
        }
        .ok()?;
        let extractor: Option<Extractor> = self
            .target_extractor
            .as_ref()
            .and_then(|extractor| serde_json::from_value(extractor.clone()).ok());
        tool.correct(Some(&Correction {
            extractor,
            ..Correction::default()
        }));
        if let Some(classification) = &self.classification {
            tool.classification = classification.clone();
        }
        Some(KnownTool {
            has_extractor: self.target_extractor.as_ref().is_some_and(|one| !one.is_null()),
            floors: match self.pin.as_deref() {
                Some("new") => vec![Floor::PIN_NEW],
                Some("changed") => vec![Floor::PIN_CHANGED],
                _ => Vec::new(),
            },
            ..KnownTool::of(tool)
        })
    }
}

async fn from_control_plane(context: &Context) -> Result<Catalogue, CliError> {
    let request = context.client.request(reqwest::Method::GET, "/tools");
    let response = context.client.send(request).await?;
    let text = response
        .text()
        .await
        .map_err(|error| CliError::Failed(error.to_string()))?;
    let known = from_text("tools", &text).map_err(CliError::Failed)?;
    Ok(known.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalogue_is_read_in_each_form() {
        let listed = r#"{"tools":[{"name":"run","inputSchema":{"type":"object"}}]}"#;
        for text in [
            listed.to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{listed}}}"#),
        ] {
            let known = from_text("my server", &text).unwrap();
            assert_eq!(known[0].name().as_str(), "my-server.run");
        }
        let rows = r#"[{"name":"x.run","upstream":"x","kind":"cli","params":{"properties":{"a":{}}},"pin":"new","target_extractor":{"mode":"sql"}}]"#;
        let known = from_text("tools", rows).unwrap();
        assert_eq!(known[0].floors, [Floor::PIN_NEW]);
        assert!(known[0].has_extractor);
        assert!(from_text("x", "{}").is_err());
    }
}
