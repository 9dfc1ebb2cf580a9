//! The story that the demo tells.

use std::io::BufRead;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::agent::{Agent, Answer, NAME};
use crate::client::{Client, segment};
use crate::error::CliError;
use crate::output::{Column, Printer, field, line};

/// The demo's policy, indented as an element of `policies:`.
pub(super) const POLICY: &str = r#"  - name: demo
    agent: "scripted-agent"
    rules:
      - tools: ["notes.list", "notes.read"]
        action: allow
      - tools: ["notes.write"]
        action: human_approval
        message: "Writing a note needs a person."
      - tools: ["*"]
        action: deny
"#;

const RECORD_COLUMNS: [Column; 5] = [
    Column::new("TOOL", |row| field(row, "tool")),
    Column::new("DECIDED", |row| field(row, "policy")),
    Column::new("BY RULE", |row| match field(row, "policy_rule").as_str() {
        "" => String::new(),
        rule => format!("{rule}[{}]", field(row, "rule_index")),
    }),
    Column::new("OUTCOME", |row| field(row, "outcome")),
    Column::new("APPROVED BY", |row| field(row, "approved_by")),
];

pub(super) async fn play(
    client: &Client,
    url: &str,
    notes: &Path,
    yes: bool,
    printer: Printer,
) -> Result<(), CliError> {
    let silent = printer.is_json();
    let say = |text: &str| if silent { Ok(()) } else { line(text) };
    say(
        "Toolgate runs on this machine now: a control plane, a sidecar, and an MCP server that keeps notes.",
    )?;
    say(&format!("The policy of the agent {NAME}:\n\n{POLICY}"))?;

    let mut agent = connected(url).await?;
    say(&format!(
        "1. The agent asks what it may use: {}",
        agent.tools().await?.join(", ")
    ))?;

    let listed = agent.call("notes.list", json!({})).await?;
    expect(!listed.is_error, "notes.list is allowed", &listed)?;
    say(&format!(
        "2. It calls notes.list. The policy allows it:\n{}",
        indented(&listed.text)
    ))?;

    let denied = agent.call("notes.delete", json!({"name": "ideas.md"})).await?;
    expect(
        denied.is_error && notes.join("ideas.md").exists(),
        "notes.delete is denied",
        &denied,
    )?;
    say(&format!(
        "3. It calls notes.delete. The policy denies it; this is what the model reads:\n{}",
        indented(&denied.text)
    ))?;

    let arguments = json!({"name": "today.md", "text": "Ask before you write."});
    let waiting = agent.call("notes.write", arguments.clone()).await?;
    expect(
        waiting.is_error && !notes.join("today.md").exists(),
        "notes.write waits",
        &waiting,
    )?;
    say(&format!(
        "4. It calls notes.write. The policy wants a person; the model reads:\n{}",
        indented(&waiting.text)
    ))?;

    let approval = pending(client).await?;
    say(&format!(
        "   You are that person. {} asks to call {} with\n{}",
        field(&approval, "agent_id"),
        field(&approval, "tool"),
        indented(&field(&approval, "params"))
    ))?;
    let approved = answer(yes, silent).await?;
    let verb = if approved { "approve" } else { "deny" };
    let body = json!({"resolved_by": "you", "reasoning": "the demo's reader said so"});
    client
        .post(
            &format!("/approvals/{}/{verb}", segment(&field(&approval, "id"))),
            &body,
        )
        .await?;
    let again = agent.call("notes.write", arguments).await?;
    if approved {
        expect(
            !again.is_error && notes.join("today.md").exists(),
            "the approved call runs",
            &again,
        )?;
        say(&format!(
            "5. Approved. The agent asks again, and this one call runs: {}\n",
            again.text
        ))?;
    } else {
        expect(
            !notes.join("today.md").exists(),
            "the refused call does not run",
            &again,
        )?;
        say("5. Refused. Nothing was written.\n")?;
    }
    conclude(client, printer).await
}

/// The records, the verdict on the chain, and where to go from here.
async fn conclude(client: &Client, printer: Printer) -> Result<(), CliError> {
    let records = recorded(client).await?;
    let verdict = client.get("/traces/verify").await?;
    if verdict.get("valid").and_then(Value::as_bool) != Some(true) {
        return Err(CliError::Negative(format!(
            "the chain does not verify: {verdict}"
        )));
    }
    if printer.is_json() {
        return printer.answer(&json!({"records": records, "verification": verdict}), |_| {
            String::new()
        });
    }
    line("6. Everything that happened is in the chain:\n")?;
    printer.list(&records, &RECORD_COLUMNS, "nothing was recorded")?;
    line(&format!(
        "\nchain verified: {} records, each linked to the one before it\n",
        field(&verdict, "checked")
    ))?;
    line("Next: write a configuration for your own agent (docs/getting-started.md), then")?;
    line("  toolgate up --config toolgate.yaml     run both planes for your agents")?;
    line("  toolgate watch                         answer what waits for you")?;
    line("  toolgate trace tail                    follow what agents do")
}

/// A session, once the sidecar has read its upstream's catalogue.
async fn connected(url: &str) -> Result<Agent, CliError> {
    let mut agent = Agent::connect(url).await?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while agent.tools().await?.is_empty() {
        if tokio::time::Instant::now() > deadline {
            return Err(CliError::Failed(
                "the demo's MCP server did not start within 10 s".to_owned(),
            ));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(agent)
}

async fn pending(client: &Client) -> Result<Value, CliError> {
    let answer = client.get("/approvals?status=pending").await?;
    answer
        .get(0)
        .cloned()
        .ok_or_else(|| CliError::Failed("no approval is pending".to_owned()))
}

/// The agent's records, oldest first, once all of its calls are in the chain.
async fn recorded(client: &Client) -> Result<Value, CliError> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    loop {
        let answer = client
            .get(&format!("/traces?agent={}&limit=50", segment(NAME)))
            .await?;
        let mut records: Vec<Value> = answer.as_array().cloned().unwrap_or_default();
        records.retain(|record| {
            field(record, "tool").starts_with("notes.") && field(record, "outcome") != "pending"
        });
        if records.len() >= 4 {
            records.reverse();
            return Ok(Value::Array(records));
        }
        if tokio::time::Instant::now() > deadline {
            return Err(CliError::Failed(
                "the records did not reach the chain within 10 s".to_owned(),
            ));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn answer(yes: bool, silent: bool) -> Result<bool, CliError> {
    if yes {
        if !silent {
            line("   Approve? [y/n] y (because of --yes)")?;
        }
        return Ok(true);
    }
    line("   Approve? [y/n]")?;
    let text = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        std::io::stdin().lock().read_line(&mut text).map(|_| text)
    })
    .await
    .map_err(|error| CliError::Failed(error.to_string()))??;
    Ok(matches!(text.trim(), "y" | "Y" | "yes"))
}

fn expect(holds: bool, what: &str, answer: &Answer) -> Result<(), CliError> {
    if holds {
        Ok(())
    } else {
        Err(CliError::Failed(format!(
            "the demo expected that {what}, but: {}",
            answer.text
        )))
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("     {line}\n")).collect()
}
