//! `toolgate policy lint`

use std::path::PathBuf;

use clap::Args;
use policy::lint::Finding;
use serde_json::json;

use super::sources::{self, SourceArgs};
use crate::commands::Context;
use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct LintArgs {
    /// Policy files, folders of them, or a configuration with `policies:`.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    sources: SourceArgs,
}

/// Ends with exit code 1 when something was found.
pub(crate) async fn lint(context: &Context, args: LintArgs) -> Result<(), CliError> {
    let policies = sources::policies(&args.paths, &args.sources.lists()?)?;
    let catalogue = args.sources.catalogue_if_any(context).await?;
    let findings = policy::lint::lint(&policies, Some(&catalogue));
    let count = findings.len();
    let answer = json!({
        "policies": policies.len(),
        "tools": catalogue.tools().len(),
        "findings": findings,
    });
    context
        .printer
        .answer(&answer, |_| text(&findings, policies.len()))?;
    match count {
        0 => Ok(()),
        1 => Err(CliError::Negative("1 finding".to_owned())),
        count => Err(CliError::Negative(format!("{count} findings"))),
    }
}

fn text(findings: &[Finding], policies: usize) -> String {
    if findings.is_empty() {
        return format!("nothing to say about {policies} policies");
    }
    let mut lines = Vec::new();
    for finding in findings {
        lines.push(finding.to_string());
        if !finding.tools.is_empty() {
            let more = if finding.tools.len() == policy::lint::MAX_NAMED {
                ", …"
            } else {
                ""
            };
            lines.push(format!("    {}{more}", finding.tools.join(", ")));
        }
    }
    lines.join("\n")
}
