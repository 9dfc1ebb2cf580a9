//! `toolgate demo`, and the life of a `toolgate up`.

use serde_json::{Value, json};
use tests::up::{Ran, Up, children, folder, is_alive, output, toolgate};
use tests::wait;

const POLICY: &str = r#"
approval:
  rest_hold_seconds: 0
policies:
  - name: people
    agent: "*"
    rules:
      - tools: ["fixture.get_item", "fixture.slow"]
        action: allow
      - tools: ["fixture.write_item"]
        action: human_approval
      - tools: ["*"]
        action: deny
"#;

/// The demo with its temporary files in a folder of its own, and what it left of both.
async fn demo(arguments: &[&str], input: &str) -> Ran {
    let temporary = folder();
    let mut command = toolgate(&["demo"]);
    command.args(arguments).env("TMPDIR", temporary.path());
    let ran = output(command, input).await;
    let place = temporary.path().display().to_string();
    wait::until("nothing of the demo runs any more", || async {
        commands().iter().all(|line| !line.contains(&place)).then_some(())
    })
    .await;
    assert_eq!(
        std::fs::read_dir(temporary.path()).unwrap().count(),
        0,
        "the demo leaves files behind"
    );
    ran
}

/// The command lines of all processes.
fn commands() -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_with_a_verified_chain_and_leaves_nothing_behind() {
    let ran = demo(&["--yes"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("chain verified"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("Approved. The agent asks again"),
        "{}",
        ran.stdout
    );

    let ran = demo(&["--yes", "--output", "json"], "").await;
    let answer = ran.json();
    assert_eq!(answer["verification"]["valid"], true, "{ran:?}");
    let outcomes: Vec<&Value> = answer["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| &record["outcome"])
        .collect();
    assert!(
        outcomes.contains(&&json!("ok")) && outcomes.contains(&&json!("denied")),
        "{outcomes:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_writes_nothing_when_its_reader_says_no() {
    for input in ["n\n", ""] {
        let ran = demo(&[], input).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            ran.stdout.contains("Refused. Nothing was written."),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains("chain verified"), "{}", ran.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn up_ends_on_sigterm_with_its_children_and_goes_on_where_it_was() {
    let mut up = Up::start(&format!("pin_tools: true\n{POLICY}")).await;
    let (token, agent) = (up.token(), up.agent("lasting").await);
    allowed(&up, "lasting").await;
    assert!(agent.call("fixture.get_item", json!({"id": 1})).await.is_ok());
    assert_eq!(agent.rest("fixture.write_item", json!({"id": 2})).await.0, 202);
    let grant = up
        .json(&[
            "grant",
            "create",
            "--agent",
            "lasting",
            "fixture.slow",
            "--for",
            "1h",
        ])
        .await;
    let stop = up.json(&["stop", "agent:elsewhere", "--reason", "kept"]).await;
    let before = up.operator().records("agent=lasting&outcome=ok", 1).await;

    let upstreams = children(up.process.id());
    assert_eq!(upstreams.len(), 1, "{upstreams:?}");
    let status = up.process.terminate();
    assert_eq!(status.code(), Some(0), "{}", up.process.log());
    for child in upstreams {
        wait::until("the upstream's process ends", || async {
            (!is_alive(child)).then_some(())
        })
        .await;
    }
    assert!(!up.state().join("up.json").exists());
    let nobody = up.toolgate(&["pending"]).await;
    assert_eq!(nobody.code, 3, "{nobody:?}");

    // Meanwhile the upstream changed: one tool is new, another says something else of itself.
    let tools = json!([
        {"name": "get_item", "description": "Gets an item, and more.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        {"name": "slow", "description": "Takes `ms` milliseconds.", "inputSchema": {"type": "object"}},
        {"name": "fresh", "description": "New.", "inputSchema": {"type": "object"}},
    ]);
    std::fs::write(up.folder.path().join("ran.tools"), tools.to_string()).unwrap();
    up.restart().await;

    assert_eq!(up.token(), token);
    assert_eq!(up.json(&["grant", "list"]).await[0]["id"], grant["id"]);
    assert_eq!(up.json(&["stop"]).await[0]["id"], stop["id"]);
    let after = up.operator().records("agent=lasting&outcome=ok", 1).await;
    assert!(
        after.iter().any(|record| record["id"] == before[0]["id"]),
        "{after:?}"
    );
    pins_hold_back_what_changed(&up).await;
    assert_eq!(up.json(&["trace", "verify"]).await["valid"], true);
    let sidecars = up.json(&["sidecars", "list"]).await;
    assert_eq!(sidecars.as_array().unwrap().len(), 1, "{sidecars}");
}

/// Waits until an agent may call the plain read; asking does not count as calling.
async fn allowed(up: &Up, agent: &str) {
    wait::until("the plain read is allowed", || async {
        let asked = up
            .toolgate(&["decide", "fixture.get_item", "--agent", agent])
            .await;
        (asked.code == 0 && asked.stdout.starts_with("allow")).then_some(())
    })
    .await;
}

async fn pins_hold_back_what_changed(up: &Up) {
    let held = wait::until("both tools are held back", || async {
        let held = up.json(&["pins", "list"]).await;
        (held.as_array().unwrap().len() == 2).then_some(held)
    })
    .await;
    let status = |tool: &str| {
        let all = held.as_array().unwrap();
        all.iter().find(|pin| pin["tool"] == tool).unwrap()["status"].clone()
    };
    assert_eq!(
        (status("fixture.get_item"), status("fixture.fresh")),
        (json!("changed"), json!("new"))
    );
    let agent = up.agent("lasting").await;
    assert!(!agent.call("fixture.get_item", json!({"id": 1})).await.is_ok());
    let accepted = up.json(&["pins", "accept", "fixture.get_item"]).await;
    assert_eq!(accepted["accepted"], json!(["fixture.get_item"]));
    allowed(up, "lasting").await;
    assert!(agent.call("fixture.get_item", json!({"id": 1})).await.is_ok());
    up.json(&["pins", "accept", "--server", "fixture"]).await;
    assert_eq!(up.json(&["pins", "list"]).await, json!([]));
    assert_eq!(up.toolgate(&["pins", "accept", "fixture.fresh"]).await.code, 2);
}
