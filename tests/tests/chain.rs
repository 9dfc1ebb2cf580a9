//! The chain tells: an export is verified by the command line, offline, with public keys and checkpoints that somebody kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use chain::hash::Hash;
use chain::link::{ChainWriter, Head, link, split_header};
use reqwest::header::ACCEPT;
use serde_json::{Value, json};
use tests::fleet::{Fleet, SidecarOptions, TOKEN};
use tests::operator::Operator;
use tests::programs::built;
use tests::wait;

/// An export, and what somebody else keeps: public keys and checkpoints.
struct Kept {
    folder: tempfile::TempDir,
    lines: Vec<Value>,
}

impl Kept {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.path("tampered.jsonl"), text).unwrap();
    }

    /// `toolgate trace verify`, without a server to ask; the report and how the program ended.
    fn verify(&self, file: &str, keys: Option<&str>, has_checkpoints: bool) -> (Output, Value) {
        let mut command = toolgate();
        command
            .args(["trace", "verify", "--output", "json"])
            .arg(self.path(file));
        if let Some(keys) = keys {
            command.arg("--public-key").arg(self.path(keys));
        }
        if has_checkpoints {
            command.arg("--checkpoints").arg(self.path("checkpoints.jsonl"));
        }
        let output = command.output().unwrap();
        let report =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output, report)
    }

    /// Verifies tampered lines: they must fail at that record, with that kind of damage.
    fn fails(&self, lines: &[Value], seq: u64, kind: &str) {
        self.write(lines);
        let (output, report) = self.verify("tampered.jsonl", Some("keys"), true);
        assert_eq!(output.status.code(), Some(1), "{kind} at {seq}: {report}");
        let damage = &report["damage"];
        assert_eq!(
            (&damage["kind"], &damage["seq"]),
            (&json!(kind), &json!(seq)),
            "{report}"
        );
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(&format!("record 1/{seq} {kind}")), "{said}");
    }

    /// Where the record with that number stands.
    fn at(&self, seq: u64) -> usize {
        let is = |line: &Value| header(line).is_some_and(|header| header["seq"] == seq);
        self.lines.iter().position(is).unwrap()
    }

    /// Numbers of the records of a tool.
    fn of_tool(&self, tool: &str) -> Vec<u64> {
        let headers = self.lines.iter().filter_map(header);
        headers
            .filter(|header| header["tool"] == tool)
            .map(|header| header["seq"].as_u64().unwrap())
            .collect()
    }
}

fn header(line: &Value) -> Option<Value> {
    serde_json::from_str(line["header"].as_str()?).ok()
}

/// The command line, without a server, a token or a home to find one in.
fn toolgate() -> Command {
    let mut command = Command::new(built("toolgate"));
    command.env_clear();
    command
}

fn export(fleet: &Fleet, file: &Path) {
    let mut command = toolgate();
    let port = fleet.planes[0].operator_port;
    command
        .args(["trace", "export", "--file"])
        .arg(file)
        .args([
            "--url",
            &format!("https://localhost:{port}"),
            "--token",
            TOKEN,
            "--ca-cert",
        ])
        .arg(fleet.ca_file());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

async fn text(operator: &Operator, path: &str, kind: &str) -> String {
    let response = operator.request(reqwest::Method::GET, path).header(ACCEPT, kind);
    let response = response.send().await.unwrap().error_for_status().unwrap();
    response.text().await.unwrap()
}

/// Waits until a checkpoint covers the chain's head.
async fn covered(operator: &Operator) {
    wait::until("a checkpoint covers the head", || async {
        let head = operator.get("/traces?limit=1").await[0]["seq"].as_u64()?;
        let newest = operator.get("/traces/checkpoints?limit=1").await[0]["seq"].as_u64()?;
        (newest == head).then_some(())
    })
    .await;
}

/// Runs a fleet for some calls, keeps what it says of them, and ends it.
async fn recorded() -> Kept {
    let fleet = Fleet::on_sqlite("traces:\n  checkpoint_seconds: 1\n").await;
    let sidecar = fleet.sidecar(&SidecarOptions::named("one")).await;
    let operator = fleet.operator();
    let policy = "name: all\nagent: '*'\nrules: [{tools: ['*'], action: allow}]\n";
    let revision = operator.put_policy("all", policy).await;
    operator.applied(&revision, 1).await;
    let agent = sidecar.agent("a").await;
    for number in 0..12 {
        let called = agent
            .call("fixture.get_item", json!({"n": number, "word": "kept"}))
            .await;
        assert!(called.is_ok(), "{}", called.answer);
        if number == 5 {
            operator.records("tool=fixture.get_item", 6).await;
            covered(&operator).await;
        }
    }
    operator.records("tool=fixture.get_item", 12).await;
    covered(&operator).await;
    let folder = tempfile::tempdir().unwrap();
    let keys = text(&operator, "/traces/keys", "text/plain").await;
    std::fs::write(folder.path().join("keys"), keys).unwrap();
    let checkpoints = text(&operator, "/traces/checkpoints", "application/jsonl").await;
    std::fs::write(folder.path().join("checkpoints.jsonl"), checkpoints).unwrap();
    let file = folder.path().join("export.jsonl");
    export(&fleet, &file);
    let lines = std::fs::read_to_string(&file).unwrap();
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    Kept { folder, lines }
}

#[tokio::test]
async fn an_export_verifies_offline_and_every_tampering_is_found_at_its_record() {
    let kept = recorded().await;
    let (output, report) = kept.verify("export.jsonl", Some("keys"), true);
    assert!(output.status.success(), "{report}");
    assert_eq!(report["damage"], Value::Null);
    assert_eq!(report["signatures_unchecked"], 0, "{report}");
    assert!(report["checkpoints"].as_u64() >= Some(2), "{report}");
    let calls = kept.of_tool("fixture.get_item");
    assert_eq!(calls.len(), 12);
    assert_eq!(report["last"]["seq"], *calls.last().unwrap());
    let (output, _) = kept.verify("export.jsonl", None, false);
    assert!(output.status.success(), "without keys the links still hold");

    let victim = calls[3];
    changed(&kept, victim);
    removed(&kept, victim);
    swapped(&kept, victim);
    inserted(&kept, victim);
    truncated(&kept, &calls);
    rewritten(&kept, victim);
    signed_by_somebody_else(&kept);
}

fn replaced(kept: &Kept, seq: u64, field: &str, from: &str, to: &str) -> Vec<Value> {
    let mut lines = kept.lines.clone();
    let line = &mut lines[kept.at(seq)];
    let text = line[field].as_str().unwrap();
    assert!(text.contains(from), "{text}");
    line[field] = Value::String(text.replace(from, to));
    lines
}

fn changed(kept: &Kept, seq: u64) {
    kept.fails(
        &replaced(kept, seq, "header", r#""agent":"a""#, r#""agent":"b""#),
        seq,
        "changed",
    );
    kept.fails(&replaced(kept, seq, "payload", "kept", "lost"), seq, "changed");
    kept.fails(
        &replaced(kept, 1, "header", r#""kind":"act""#, r#""kind":"call""#),
        1,
        "changed",
    );
    // A payload may be erased; nothing else may.
    let mut erased = kept.lines.clone();
    erased[kept.at(seq)]["payload"] = Value::Null;
    kept.write(&erased);
    let (output, report) = kept.verify("tampered.jsonl", Some("keys"), true);
    assert!(output.status.success(), "{report}");
    assert_eq!(report["payloads_erased"], 1, "{report}");
}

fn removed(kept: &Kept, seq: u64) {
    let mut lines = kept.lines.clone();
    lines.remove(kept.at(seq));
    kept.fails(&lines, seq, "missing");
    // Without its beginning the rest is a part of the chain after a checkpoint, and verification says so.
    lines = kept.lines[kept.at(2)..].to_vec();
    kept.fails(&lines, 1, "missing");
    let checkpoint = kept.at(seq)
        + kept.lines[kept.at(seq)..]
            .iter()
            .position(|line| header(line).is_none())
            .unwrap();
    kept.write(&kept.lines[checkpoint..]);
    let (output, report) = kept.verify("tampered.jsonl", Some("keys"), true);
    assert!(output.status.success(), "{report}");
    assert!(report["start"]["seq"].as_u64() >= Some(seq), "{report}");
}

fn swapped(kept: &Kept, seq: u64) {
    let mut lines = kept.lines.clone();
    lines.swap(kept.at(seq), kept.at(seq + 1));
    kept.fails(&lines, seq, "reordered");
}

fn inserted(kept: &Kept, seq: u64) {
    let mut twice = kept.lines.clone();
    twice.insert(kept.at(seq) + 1, kept.lines[kept.at(seq)].clone());
    kept.fails(&twice, seq, "inserted");
    // A record that was made up, correctly linked to the one before.
    let before = hash(&kept.lines[kept.at(seq - 1)]);
    let mut forged = kept.lines[kept.at(seq)].clone();
    let text = forged["header"]
        .as_str()
        .unwrap()
        .replace(r#""agent":"a""#, r#""agent":"b""#);
    forged["hash"] = json!(link(&before, text.as_bytes()).to_string());
    forged["header"] = Value::String(text);
    let mut lines = kept.lines.clone();
    lines.insert(kept.at(seq), forged);
    kept.fails(&lines, seq, "inserted");
}

fn truncated(kept: &Kept, calls: &[u64]) {
    let last = *calls.last().unwrap();
    for seq in [calls[3], last] {
        kept.fails(&kept.lines[..kept.at(seq)], seq, "truncated");
    }
    kept.fails(&[], 1, "truncated");
    // Without what somebody kept, what was cut off cannot be known.
    kept.write(&kept.lines[..kept.at(last)]);
    let (output, _) = kept.verify("tampered.jsonl", Some("keys"), false);
    assert!(output.status.success());
}

fn hash(line: &Value) -> Hash {
    serde_json::from_value(line["hash"].clone()).unwrap()
}

/// Somebody who can write the whole history anew, each link and digest right, but not sign it.
fn rewritten(kept: &Kept, seq: u64) {
    let mut lines = replaced(kept, seq, "payload", "kept", "lost");
    let digest = |line: &Value| chain::payload::payload_digest(line["payload"].as_str().unwrap()).unwrap();
    let at = kept.at(seq);
    let mut altered = vec![(
        digest(&kept.lines[at]).to_string(),
        digest(&lines[at]).to_string(),
    )];
    lines.retain(|line| line["header"].is_string());
    let mut writer = ChainWriter::new(Head::GENESIS, None);
    for line in &mut lines {
        let (_, source) = split_header(line["header"].as_str().unwrap()).unwrap();
        let before = format!("{{{source}");
        let after = altered
            .iter()
            .fold(before.clone(), |text, (from, to)| text.replace(from, to));
        if after != before {
            // The next record of this source links to it.
            let hash = |text: &str| Hash::of(&[text.as_bytes()]).to_string();
            altered.push((hash(&before), hash(&after)));
        }
        let linked = writer.append(&after).unwrap();
        line["header"] = json!(linked.header);
        line["hash"] = json!(linked.hash.to_string());
    }
    kept.write(&lines);
    let (output, report) = kept.verify("tampered.jsonl", Some("keys"), false);
    assert!(
        output.status.success(),
        "a history without checkpoints is one history: {report}"
    );
    let is_after = |line: &&Value| line["seq"].as_u64() >= Some(seq);
    let text = std::fs::read_to_string(kept.path("checkpoints.jsonl")).unwrap();
    let checkpoints: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|signed| serde_json::from_str(signed["text"].as_str().unwrap()).unwrap())
        .collect();
    let first = checkpoints
        .iter()
        .filter(is_after)
        .map(|line| line["seq"].as_u64().unwrap())
        .min();
    kept.fails(&lines, first.unwrap(), "forked");
}

fn signed_by_somebody_else(kept: &Kept) {
    let other = chain::checkpoint::CheckpointSigner::from_seed(&[7; 32]);
    let hex: String = other
        .public_key()
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    std::fs::write(kept.path("other-keys"), hex + "\n").unwrap();
    let (output, report) = kept.verify("export.jsonl", Some("other-keys"), false);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report["damage"]["kind"], "wrong_key", "{report}");
}
