//! `toolgate policy diff`

use std::path::PathBuf;

use clap::Args;
use policy::diff::{Change, Direction, Subject};
use policy::{PolicySet, diff as changes};
use serde_json::json;

use super::sources::{self, SourceArgs};
use crate::commands::Context;
use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The policies before: a file, a folder, or a configuration with `policies:`.
    old: PathBuf,
    /// The policies after.
    new: PathBuf,
    /// Only for these agents [default: every agent and pattern that the policies name].
    #[arg(long)]
    agent: Vec<String>,
    /// In this namespace, with --agent.
    #[arg(long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    sources: SourceArgs,
}

pub(crate) async fn diff(context: &Context, args: DiffArgs) -> Result<(), CliError> {
    let lists = args.sources.lists()?;
    let old = PolicySet::compile(sources::policies(std::slice::from_ref(&args.old), &lists)?);
    let new = PolicySet::compile(sources::policies(std::slice::from_ref(&args.new), &lists)?);
    let subjects = if args.agent.is_empty() {
        changes::subjects(&old, &new)
    } else {
        given(&args)?
    };
    let catalogue = match args.sources.catalogue(context).await {
        Err(CliError::Unreachable { url, cause, .. }) => {
            return Err(CliError::Usage(format!(
                "a diff needs the tools: give --catalog FILE (no control plane answers at {url}: {cause})"
            )));
        }
        other => other?,
    };
    let found = changes::diff(&old, &new, &subjects, &catalogue);
    let answer = json!({
        "agents": subjects.iter().map(|subject| &subject.shown).collect::<Vec<_>>(),
        "tools": catalogue.tools().len(),
        "changes": found,
    });
    context
        .printer
        .answer(&answer, |_| text(&found, subjects.len(), catalogue.tools().len()))
}

fn given(args: &DiffArgs) -> Result<Vec<Subject>, CliError> {
    let wrong = |error: tools::id::IdError| CliError::Usage(error.to_string());
    args.agent
        .iter()
        .map(|agent| {
            Ok(Subject {
                shown: agent.clone(),
                agent: agent.as_str().try_into().map_err(wrong)?,
                namespace: args.namespace.as_str().try_into().map_err(wrong)?,
            })
        })
        .collect()
}

fn text(found: &[Change], agents: usize, tools: usize) -> String {
    if found.is_empty() {
        return format!("nothing is decided otherwise, of {tools} tools for {agents} agents and patterns");
    }
    let mut lines = Vec::new();
    let mut agent = "";
    for change in found {
        if change.agent != agent {
            agent = &change.agent;
            lines.push(format!("{agent} ({})", change.namespace));
        }
        let sign = match change.direction {
            Direction::Opens => "+",
            Direction::Closes => "-",
            Direction::Changes => "~",
        };
        let note = match (change.direction, change.plain_read) {
            (Direction::Opens, false) => "   not a plain read",
            _ => "",
        };
        lines.push(format!(
            "  {sign} {}  {} -> {}{note}",
            change.tool,
            shown(&change.old),
            shown(&change.new)
        ));
    }
    let opens = |plain: bool| {
        found
            .iter()
            .filter(|change| change.direction == Direction::Opens && change.plain_read == plain)
            .count()
    };
    lines.push(format!(
        "{} open, {} of them not plain reads; {} close; {} change",
        opens(true) + opens(false),
        opens(false),
        found
            .iter()
            .filter(|change| change.direction == Direction::Closes)
            .count(),
        found
            .iter()
            .filter(|change| change.direction == Direction::Changes)
            .count(),
    ));
    lines.join("\n")
}

fn shown(view: &changes::View) -> String {
    let conditional = if view.is_conditional {
        " (some calls otherwise)"
    } else {
        ""
    };
    format!("{}{conditional}", view.action.as_str())
}
