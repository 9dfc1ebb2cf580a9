//! `toolgate decide`: asks a sidecar, without making the call.

use clap::Args;
use reqwest::{Method, StatusCode};
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
    let is_named = args.sidecar.is_some();
    if let Some(url) = args.sidecar {
        target.url = url.trim_end_matches('/').to_owned();
    }
    // Built as text: the arguments go out byte for byte as they were given.
    let mut body = format!(r#"{{"tool":{},"arguments":{arguments}"#, json!(args.tool));
    if args.explain {
        body.push_str(r#","explain":true"#);
    }
    if is_named || target.token.is_none() {
        // A sidecar by itself knows no operators, and is not to see their tokens.
        target.token = Some(format!("agent:{}", args.agent));
    } else {
        body.push_str(&format!(r#","agent":{}"#, json!(args.agent)));
    }
    body.push('}');
    let client = Client::new(target)?;
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
        let mut detail = match field(&answer, "detail") {
            said if said.is_empty() => status.canonical_reason().unwrap_or("error").to_owned(),
            said => said,
        };
        if !is_named {
            let url = client.url();
            detail.push_str(&format!(
                " (asked {url}: where sidecars are processes of their own, name one by --sidecar or TOOLGATE_URL)"
            ));
        }
        return Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => CliError::Refused {
                url: client.url().to_owned(),
                detail,
            },
            status => CliError::Problem {
                status: status.as_u16(),
                detail,
            },
        });
    }
    context.printer.answer(&answer, |answer| {
        let mut text = format!("{}  {}", field(answer, "action"), field(answer, "reason"));
        let steps = answer.get("explain").and_then(Value::as_array);
        for step in steps.into_iter().flatten() {
            text.push_str("\n  ");
            text.push_str(&considered(step));
        }
        text
    })?;
    if field(&answer, "action") == "deny" {
        return Err(CliError::Negative("the call would be denied".to_owned()));
    }
    Ok(())
}

/// A rule that was considered, in one line: where it is written, what it says, and which of its parts held.
fn considered(step: &Value) -> String {
    let Some(rule) = step.get("rule") else {
        return step.as_str().map_or_else(|| step.to_string(), str::to_owned);
    };
    let mut text = format!(
        "policy \"{}\", rule {}",
        field(rule, "policy"),
        field(rule, "index")
    );
    let (file, line) = (field(step, "source_file"), field(step, "line"));
    if !file.is_empty() {
        text.push_str(&format!(" ({file}:{line})"));
    }
    if field(step, "mode") == "shadow" {
        text.push_str(", shadow");
    }
    let verdict = match field(step, "truth").as_str() {
        "true" => "matches",
        "false" => "does not match",
        _ => "is undecided",
    };
    text.push_str(&format!(": {} {verdict}", field(step, "action")));
    let parts = step.get("parts").and_then(Value::as_array);
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .map(|part| format!("{} {}", field(part, "what"), field(part, "truth")))
        .collect();
    if !parts.is_empty() {
        text.push_str(&format!(" ({})", parts.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_was_considered_is_one_line_for_people() {
        let step = json!({
            "action": "allow", "kind": "standard", "line": 10, "mode": "enforce", "truth": "false",
            "parts": [{"truth": "false", "what": "tools"}, {"truth": "unknown", "what": "condition"}],
            "rule": {"index": 0, "policy": "coder"}, "source_file": "toolgate.yaml",
        });
        assert_eq!(
            considered(&step),
            "policy \"coder\", rule 0 (toolgate.yaml:10): allow does not match (tools false, condition unknown)"
        );
    }
}
