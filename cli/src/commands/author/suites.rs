//! `toolgate policy test`

use std::path::{Path, PathBuf};

use clap::Args;
use policy::PolicySet;
use policy::catalogue::Catalogue;
use policy::document::Lists;
use policy::suite::{Outcome, Suite};
use reqwest::Method;
use serde_json::{Value, json};

use super::records::Range;
use super::sources::{self, SourceArgs};
use crate::commands::Context;
use crate::error::CliError;
use crate::output::{line, note};

#[derive(Args, Debug)]
pub(crate) struct TestArgs {
    /// Folders with policies and `*.test.yaml`, or single test files (their policies are those of their folder).
    #[arg(required_unless_present = "from_records")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceArgs,
    /// Write tests from what happened instead of running any: asks the control plane, prints YAML.
    #[arg(long, conflicts_with_all = ["paths", "catalog", "config"])]
    from_records: bool,
    #[command(flatten)]
    range: Range,
}

/// Ends with exit code 1 when a test failed.
pub(crate) async fn test(context: &Context, args: TestArgs) -> Result<(), CliError> {
    if args.from_records {
        return from_records(context, &args.range).await;
    }
    let lists = args.sources.lists()?;
    let files = test_files(&args.paths)?;
    let given = if args.sources.names_files() {
        Some(args.sources.catalogue(context).await?)
    } else {
        None
    };
    let mut outcomes = Vec::new();
    let mut problems = Vec::new();
    for file in &files {
        match run(file, &lists, given.as_ref()) {
            Ok(found) => outcomes.extend(found),
            Err(CliError::Problems(found)) => problems.extend(found),
            Err(other) => return Err(other),
        }
    }
    if !problems.is_empty() {
        return Err(CliError::Problems(problems));
    }
    report(context, &outcomes, files.len())
}

fn test_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let found = sources::files_in(path, sources::is_test)?;
        if found.is_empty() {
            return Err(CliError::Usage(format!(
                "{} has no file *.test.yaml",
                path.display()
            )));
        }
        files.extend(found);
    }
    Ok(files)
}

fn run(file: &Path, lists: &Lists, given: Option<&Catalogue>) -> Result<Vec<Outcome>, CliError> {
    let name = file.display().to_string();
    let text = sources::text_of(file).map_err(|message| CliError::Usage(format!("{name}: {message}")))?;
    let suite = Suite::parse(&name, &text).map_err(CliError::Problems)?;
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let beside = |names: &[String]| -> Vec<PathBuf> { names.iter().map(|name| folder.join(name)).collect() };
    let policies = if suite.policies.is_empty() {
        sources::policies(&[folder.to_owned()], lists)?
    } else {
        sources::policies(&beside(&suite.policies), lists)?
    };
    let own;
    let catalogue = match given {
        Some(given) if suite.catalogues.is_empty() => given,
        _ => {
            own = sources::from_files(&beside(&suite.catalogues))?;
            &own
        }
    };
    Ok(suite.run(&PolicySet::compile(policies), catalogue))
}

fn report(context: &Context, outcomes: &[Outcome], files: usize) -> Result<(), CliError> {
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| !outcome.passed).collect();
    let answer = json!({
        "passed": outcomes.len() - failed.len(),
        "failed": failed.len(),
        "outcomes": outcomes,
    });
    context.printer.answer(&answer, |_| {
        let mut lines: Vec<String> = failed.iter().map(|outcome| sentence(outcome)).collect();
        lines.push(format!(
            "{} passed, {} failed, in {files} files",
            outcomes.len() - failed.len(),
            failed.len()
        ));
        lines.join("\n")
    })?;
    match failed.len() {
        0 => Ok(()),
        count => Err(CliError::Negative(format!(
            "{count} of {} cases are decided otherwise than the tests say",
            outcomes.len()
        ))),
    }
}

fn sentence(outcome: &Outcome) -> String {
    let action = outcome.action.map_or("nothing", policy::Action::as_str);
    let by = outcome
        .rule
        .as_deref()
        .map(|rule| format!(" by {rule}"))
        .unwrap_or_default();
    let name = outcome
        .name
        .as_deref()
        .map(|name| format!(" \"{name}\""))
        .unwrap_or_default();
    format!(
        "{}:{}{name} {} calls {} with {}: expected {}, is {action}{by} ({})",
        outcome.file,
        outcome.line,
        outcome.agent,
        outcome.tool,
        outcome.params,
        outcome.expected,
        outcome.reason
    )
}

async fn from_records(context: &Context, range: &Range) -> Result<(), CliError> {
    let path = range.path("/traces/tests")?;
    let request = context.client.request(Method::GET, &path);
    let response = context.client.send(request).await?;
    let text = response
        .text()
        .await
        .map_err(|error| CliError::Failed(error.to_string()))?;
    if context.printer.is_json() {
        return line(&Value::String(text).to_string());
    }
    line(text.trim_end())?;
    note("calls whose arguments were redacted or not kept are left out");
    Ok(())
}
