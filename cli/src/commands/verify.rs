//! `toolgate trace verify`: of an export, offline; of the control plane itself without a file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use chain::checkpoint::{Checkpoint, PublicKeys, SignedCheckpoint};
use chain::link::MacKey;
use chain::verify::{Options, Report, Verifier, verify_lines};
use clap::Args;
use serde_json::{Value, json};

use super::Context;
use crate::args::Global;
use crate::error::CliError;
use crate::output::{self, Printer, field};

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// An export (`toolgate trace export`). Without it the control plane verifies what it holds.
    file: Option<PathBuf>,
    /// Checkpoints that were kept elsewhere, one JSON document a line: they show truncation and rewriting.
    #[arg(long, value_name = "FILE", requires = "public_key")]
    checkpoints: Option<PathBuf>,
    /// Public keys that sign checkpoints, as `toolgate trace keys` gives them: one key a line.
    #[arg(long, value_name = "FILE", requires = "file")]
    public_key: Option<PathBuf>,
    /// Key of the records' MACs.
    #[arg(long, env = "TOOLGATE_TRACE_KEY", value_name = "KEY", hide_env_values = true)]
    trace_key: Option<String>,
}

/// Ends with exit code 1 when the chain is damaged.
pub(crate) async fn run(global: &Global, args: VerifyArgs) -> Result<(), CliError> {
    let printer = Printer::new(global.output);
    let Some(file) = args.file.clone() else {
        return of_control_plane(&Context::new(global)?).await;
    };
    let begun = Instant::now();
    let shown = file.display().to_string();
    let report = tokio::task::spawn_blocking(move || of_export(&file, &args))
        .await
        .map_err(|error| CliError::Failed(error.to_string()))??;
    // Nothing is what the most thorough truncation leaves.
    if report.damage.is_none() && report.records == 0 && report.checkpoints == 0 {
        return Err(CliError::Usage(format!(
            "{shown} holds no record, so nothing was verified; `toolgate trace export --file FILE` writes an export"
        )));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let document = serde_json::to_value(&report).map_err(|error| CliError::Failed(error.to_string()))?;
    printer.answer(&document, |_| sentence(&report, seconds))?;
    match &report.damage {
        Some(damage) => Err(CliError::Negative(format!("{shown}: {damage}"))),
        None => Ok(()),
    }
}

async fn of_control_plane(context: &Context) -> Result<(), CliError> {
    let answer = context.client.get("/traces/verify").await?;
    let valid = answer.get("valid").and_then(Value::as_bool) == Some(true);
    context.printer.answer(&answer, |answer| match valid {
        true => format!(
            "chain verified: {} records, {} checkpoints",
            field(answer, "checked"),
            field(answer, "checkpoints")
        ),
        false => format!("checked {} records", field(answer, "checked")),
    })?;
    if valid {
        return Ok(());
    }
    let bad = answer.get("first_bad").cloned().unwrap_or_else(|| json!({}));
    Err(CliError::Negative(format!(
        "the chain is damaged: record {}/{} {}: {}",
        field(&bad, "generation"),
        field(&bad, "seq"),
        field(&bad, "damage"),
        field(&bad, "detail"),
    )))
}

fn of_export(file: &Path, args: &VerifyArgs) -> Result<Report, CliError> {
    let public_keys = match &args.public_key {
        Some(path) => PublicKeys::from_text(&read(path)?).map_err(|error| wrong(path, &error))?,
        None => PublicKeys::default(),
    };
    let checkpoints = match &args.checkpoints {
        Some(path) => kept_checkpoints(path, &public_keys)?,
        None => Vec::new(),
    };
    let keys = args
        .trace_key
        .iter()
        .filter_map(|key| MacKey::from_text(key))
        .collect();
    let options = Options {
        checkpoints,
        public_keys,
        keys,
        ..Options::default()
    };
    let reader = BufReader::with_capacity(1 << 20, File::open(file).map_err(|error| wrong(file, &error))?);
    let mut told = Instant::now();
    verify_lines(reader, Verifier::new(options), |items| {
        if output::is_terminal() && told.elapsed().as_secs() >= 1 {
            output::note(&format!("{items} lines"));
            told = Instant::now();
        }
    })
    .map_err(|error| wrong(file, &error))
}

/// Checkpoints whose signature holds; one that does not is an error of the file, not of the chain.
fn kept_checkpoints(path: &Path, keys: &PublicKeys) -> Result<Vec<Checkpoint>, CliError> {
    let mut checkpoints = Vec::new();
    let reader = BufReader::new(File::open(path).map_err(|error| wrong(path, &error))?);
    for (index, line) in reader.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let at = |error: &dyn std::fmt::Display| {
            CliError::Usage(format!("{}:{}: {error}", path.display(), index + 1))
        };
        let signed: SignedCheckpoint = serde_json::from_str(&line).map_err(|error| at(&error))?;
        checkpoints.push(keys.verify(&signed).map_err(|error| at(&error))?);
    }
    Ok(checkpoints)
}

fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> CliError {
    CliError::Usage(format!("{} cannot be read: {error}", path.display()))
}

fn sentence(report: &Report, seconds: f64) -> String {
    let verdict = if report.is_intact() {
        "chain verified"
    } else {
        "chain damaged"
    };
    let mut text = format!(
        "{verdict}: {} records, {} checkpoints, {} signatures, {} sources, {seconds:.1} s",
        report.records, report.checkpoints, report.signatures, report.sources
    );
    if let Some(start) = report.start {
        text.push_str(&format!(
            "\nthis export begins after record {start}: what was up to there was not verified"
        ));
    }
    if report.signatures_unchecked > 0 {
        text.push_str(&format!(
            "\n{} signatures were not checked: give --public-key FILE (`toolgate trace keys > FILE` asks the control plane)",
            report.signatures_unchecked
        ));
    }
    if report.macs_unchecked > 0 {
        text.push_str(&format!(
            "\n{} MACs were not checked: give --trace-key KEY, or TOOLGATE_TRACE_KEY",
            report.macs_unchecked
        ));
    }
    if report.checkpoints_unchecked > 0 {
        text.push_str(&format!(
            "\n{} checkpoints speak of records before this export",
            report.checkpoints_unchecked
        ));
    }
    text
}
