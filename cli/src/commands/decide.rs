//! `toolgate decide`: asks a sidecar, without making the call.

use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};

use super::Context;
use crate::args::Global;
use crate::client::Client;
use crate::connection::Target;
use crate::error::CliError;
use crate::output::field;

#[derive(Args, Debug)]
pub(crate) struct DecideArgs {
    /// The tool's full name.
    tool: String,
    /// Its arguments, a JSON object.
    #[arg(default_value = "{}")]
    arguments: String,
    /// The agent that would call.
    #[arg(long)]
    agent: String,
    /// Each rule that was considered, and why it did or did not match.
    #[arg(long)]
    explain: bool,
    /// The sidecar to ask [default: the same address as the control plane's, as with `up`].
    #[arg(long, env = "TOOLGATE_URL", value_name = "URL")]
    sidecar: Option<String>,
}

/// Ends with exit code 1 when the call would be denied.
pub(crate) async fn run(context: &Context, global: &Global, args: DecideArgs) -> Result<(), CliError> {
    let arguments: Box<serde_json::value::RawValue> = serde_json::from_str(&args.arguments)
        .map_err(|error| CliError::Usage(format!("the arguments are not JSON: {error}")))?;
    let mut target = Target::resolve(global)?;
    if let Some(url) = args.sidecar {
        target.url = url.trim_end_matches('/').to_owned();
    }
    target.token = Some(format!("agent:{}", args.agent));
    let client = Client::new(target)?;
    // Built as text: the arguments go out byte for byte as they were given.
    let mut body = format!(r#"{{"tool":{},"arguments":{arguments}"#, json!(args.tool));
    body.push_str(if args.explain { r#","explain":true}"# } else { "}" });
    let request = client
        .request(Method::POST, "/decide")
        .header("Content-Type", "application/json")
        .body(body);
    let response = request.send().await.map_err(|error| CliError::Unreachable {
        what: "the sidecar",
        url: client.url().to_owned(),
        cause: error.to_string(),
    })?;
    let status = response.status();
    let answer: Value = response.json().await.unwrap_or_default();
    if answer.get("action").is_none() {
        return Err(CliError::Problem {
            status: status.as_u16(),
            detail: field(&answer, "detail"),
        });
    }
    context.printer.answer(&answer, |answer| {
        let mut text = format!("{}  {}", field(answer, "action"), field(answer, "reason"));
        if let Some(rule) = answer.get("rule").filter(|rule| !rule.is_null()) {
            text.push_str(&format!(
                "\nrule {} of {}",
                field(answer, "rule_index"),
                rule.as_str().unwrap_or_default()
            ));
        }
        for step in answer
            .get("explain")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            text.push_str(&format!(
                "\n  {}",
                step.as_str().map_or_else(|| step.to_string(), str::to_owned)
            ));
        }
        text
    })?;
    if field(&answer, "action") == "deny" {
        return Err(CliError::Negative("the call would be denied".to_owned()));
    }
    Ok(())
}
