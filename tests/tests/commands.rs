//! Every operator command against a running `toolgate up`.

use std::process::Command;

use serde_json::{Value, json};
use tests::process::Process;
use tests::up::{Up, toolgate};
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

#[tokio::test(flavor = "multi_thread")]
async fn people_answer_grant_stop_and_read_the_chain_by_commands() {
    let up = Up::start(POLICY).await;
    let agent = up.agent("worker").await;
    answers(&up, &agent).await;
    grants_and_stops(&up, &agent).await;
    records(&up).await;
}

async fn answers(up: &Up, agent: &tests::agent::Agent) {
    assert_eq!(up.json(&["pending"]).await, json!([]));
    let waiting = async |id: u64| {
        let (status, body) = agent.rest("fixture.write_item", json!({"id": id})).await;
        assert_eq!(status, 202, "{body}");
        body["approval_id"].as_str().unwrap().to_owned()
    };
    let first = waiting(1).await;
    let pending = up.json(&["pending", "--agent", "worker"]).await;
    assert_eq!(pending[0]["id"], json!(first));
    assert!(
        up.toolgate(&["pending"])
            .await
            .stdout
            .contains("fixture.write_item")
    );
    let approved = up
        .json(&["approve", &first, "--reason", "fine", "--by", "pat"])
        .await;
    assert_eq!(
        (approved["status"].as_str(), approved["reasoning"].as_str()),
        (Some("approved"), Some("fine"))
    );
    wait::until("the approved call runs", || async {
        up.ran()
            .iter()
            .any(|line| line == r#"done write_item"#)
            .then_some(())
    })
    .await;
    let again = up.toolgate(&["approve", &first]).await;
    assert_eq!(again.code, 5, "{again:?}");

    let second = waiting(2).await;
    let denied = up.json(&["deny", second.get(..12).unwrap()]).await;
    assert_eq!(denied["status"], "denied");
    let unknown = up.toolgate(&["approve", "ffffffffffff"]).await;
    assert_eq!(unknown.code, 5, "{unknown:?}");

    let third = waiting(3).await;
    let mut watch = toolgate(&["watch", "--output", "json"]);
    watch.arg("--data-dir").arg(up.state());
    ends_on_interrupt(up, watch, "watch", &third).await;
    up.json(&["deny", &third]).await;
    assert_eq!(up.json(&["pending", "--all"]).await.as_array().unwrap().len(), 3);
}

/// A command that follows, until what it is to show is there; then an interrupt ends it well.
async fn ends_on_interrupt(up: &Up, command: Command, name: &str, shown: &str) {
    let mut following = Process::spawn(command, &up.folder.path().join(name));
    wait::until(&format!("{name} shows {shown}"), || async {
        following.log().contains(shown).then_some(())
    })
    .await;
    following.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(following.wait().code(), Some(0), "{}", following.log());
}

async fn grants_and_stops(up: &Up, agent: &tests::agent::Agent) {
    let decide = async || {
        let ran = up
            .toolgate(&[
                "decide",
                "fixture.write_item",
                "{}",
                "--agent",
                "worker",
                "-o",
                "json",
            ])
            .await;
        (ran.code, ran.json()["action"].as_str().unwrap().to_owned())
    };
    assert_eq!(decide().await, (0, "human_approval".to_owned()));
    let grant = up
        .json(&[
            "grant",
            "create",
            "--agent",
            "worker",
            "fixture.write_*",
            "--for",
            "10m",
            "--reason",
            "a trip",
        ])
        .await;
    wait::until_equal("the grant arrives", (0, "allow".to_owned()), decide).await;
    assert!(agent.call("fixture.write_item", json!({"id": 4})).await.is_ok());
    up.json(&["grant", "revoke", grant["id"].as_str().unwrap()]).await;
    assert_eq!(up.json(&["grant", "list"]).await, json!([]));
    wait::until_equal("the grant ends", (0, "human_approval".to_owned()), decide).await;

    let stop = up
        .json(&["stop", "agent:worker", "--reason", "odd calls", "--wait"])
        .await;
    assert_eq!(
        (stop["applied"].as_u64(), stop["of"].as_u64()),
        (Some(1), Some(1)),
        "{stop}"
    );
    assert_eq!(decide().await, (1, "deny".to_owned()));
    let called = agent.call("fixture.get_item", json!({"id": 4})).await;
    assert!(
        !called.is_ok() && called.decision()["reason"] == "stopped",
        "{called:?}"
    );
    up.json(&["resume", stop["id"].as_str().unwrap()]).await;
    assert_eq!(up.json(&["stop"]).await, json!([]));
    allowed(up, "worker").await;
    assert!(agent.call("fixture.get_item", json!({"id": 5})).await.is_ok());
}

async fn records(up: &Up) {
    let ok = up.operator().records("tool=fixture.get_item&outcome=ok", 1).await;
    let id = ok[0]["id"].as_str().unwrap();
    let listed = up
        .json(&["trace", "list", "--tool", "fixture.get_*", "--outcome", "ok"])
        .await;
    assert_eq!(listed[0]["id"].as_str(), Some(id));
    assert_eq!(up.json(&["trace", "show", id]).await["tool"], "fixture.get_item");
    let mut tail = toolgate(&["trace", "tail", "--output", "json"]);
    tail.arg("--data-dir").arg(up.state());
    ends_on_interrupt(up, tail, "tail", id).await;

    assert_eq!(up.json(&["trace", "verify"]).await["valid"], true);
    let file = up.folder.path().join("export.jsonl").display().to_string();
    let exported = up.toolgate(&["trace", "export", "--file", &file]).await;
    assert_eq!(exported.code, 0, "{exported:?}");
    let verified = up.toolgate(&["trace", "verify", &file]).await;
    assert!(
        verified.code == 0 && verified.stdout.contains("chain verified"),
        "{verified:?}"
    );
    let keys = up.folder.path().join("keys").display().to_string();
    let printed = up.toolgate(&["trace", "keys"]).await;
    std::fs::write(&keys, &printed.stdout).unwrap();
    let signed = up.json(&["trace", "verify", &file, "--public-key", &keys]).await;
    assert_eq!(signed["signatures_unchecked"], 0, "{printed:?}: {signed}");
    assert!(signed["signatures"].as_u64() > Some(0), "{signed}");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("worker", "w0rker", 1)).unwrap();
    let damaged = up.toolgate(&["trace", "verify", &file]).await;
    assert_eq!(damaged.code, 1, "{damaged:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_change_policies_and_see_them_arrive_by_commands() {
    let up = Up::start(POLICY).await;
    let file = up.folder.path().join("night.yaml");
    let path = file.display().to_string();
    let write = |action: &str| {
        let text =
            format!("name: night\nagent: night\nrules:\n  - tools: [\"fixture.*\"]\n    action: {action}\n");
        std::fs::write(&file, text).unwrap();
    };
    write("allow");
    assert_eq!(up.json(&["policy", "push", &path]).await["version"], 1);
    let rolled_out = up.json(&["rollout", "status", "--wait"]).await;
    assert_eq!(
        (rolled_out["applied"].as_u64(), rolled_out["complete"].as_bool()),
        (Some(1), Some(true))
    );
    let decide = async || {
        up.toolgate(&["decide", "fixture.delete_item", "--agent", "night"])
            .await
            .code
    };
    assert_eq!(decide().await, 0);

    write("deny");
    let lost = up.toolgate(&["policy", "push", &path, "--if-version", "7"]).await;
    assert_eq!(lost.code, 5, "{lost:?}");
    let pushed = up.json(&["policy", "push", &path, "--if-version", "1"]).await;
    assert_eq!(pushed["version"], 2);
    up.json(&[
        "rollout",
        "status",
        "--wait",
        pushed["revision"].as_str().unwrap(),
    ])
    .await;
    assert_eq!(decide().await, 1);

    let pulled = up.toolgate(&["policy", "pull", "night"]).await;
    assert_eq!(
        pulled.stdout.trim(),
        std::fs::read_to_string(&file).unwrap().trim()
    );
    let copy = up.folder.path().join("copy.yaml");
    let copied = up
        .toolgate(&["policy", "pull", "night", "--file", copy.to_str().unwrap()])
        .await;
    assert_eq!(copied.code, 0, "{copied:?}");
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&file).unwrap());
    let versions = up.json(&["policy", "history", "night"]).await;
    assert_eq!(versions.as_array().unwrap().len(), 2, "{versions}");
    let rolled_back = up.json(&["policy", "rollback", "night", "1"]).await;
    assert_eq!(rolled_back["version"], 3);
    up.json(&["rollout", "status", "--wait"]).await;
    assert_eq!(decide().await, 0);

    let names = |list: &Value| -> Vec<String> {
        let all = list.as_array().unwrap();
        all.iter()
            .map(|policy| policy["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&up.json(&["policy", "list"]).await), ["night", "people"]);
    assert_eq!(up.toolgate(&["policy", "delete", "people"]).await.code, 5);
    up.json(&["policy", "delete", "night"]).await;
    up.json(&["rollout", "status", "--wait"]).await;
    assert_eq!(decide().await, 1);
    assert_eq!(up.toolgate(&["policy", "pull", "night"]).await.code, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_see_sidecars_make_join_tokens_and_check_configurations_by_commands() {
    let up = Up::start(POLICY).await;
    let sidecars = up.json(&["sidecars", "list"]).await;
    let id = sidecars[0]["id"].as_str().unwrap();
    assert_eq!(sidecars[0]["connected"], true);
    assert_eq!(up.json(&["sidecars", "show", id]).await["id"].as_str(), Some(id));
    let token = up
        .json(&[
            "sidecars",
            "tokens",
            "create",
            "--namespace",
            "team",
            "--agent",
            "a*",
            "--ttl",
            "5m",
            "--uses",
            "2",
        ])
        .await;
    let listed = up.json(&["sidecars", "tokens", "list"]).await;
    let listed = listed.as_array().unwrap();
    let mine = listed.iter().find(|row| row["id"] == token["id"]).unwrap();
    assert_eq!(
        (mine["namespace"].as_str(), mine["agents"].clone()),
        (Some("team"), json!(["a*"]))
    );
    assert!(mine.get("token").is_none(), "{mine}");
    up.json(&["sidecars", "tokens", "revoke", token["id"].as_str().unwrap()])
        .await;
    let listed = up.json(&["sidecars", "tokens", "list"]).await;
    assert!(
        !listed
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["id"] == token["id"]),
        "{listed}"
    );

    let explained = up
        .json(&[
            "decide",
            "fixture.get_item",
            r#"{"id":1}"#,
            "--agent",
            "x",
            "--explain",
        ])
        .await;
    assert_eq!(
        (explained["action"].as_str(), explained["rule"].as_str()),
        (Some("allow"), Some("people")),
        "{explained}"
    );
    let file = up.folder.path().join("toolgate.yaml");
    let checked = up.json(&["config", "check", file.to_str().unwrap()]).await;
    assert_eq!(checked["valid"], true);
    let schema = up.toolgate(&["config", "schema"]).await.json();
    assert!(schema["properties"]["mcp_servers"].is_object());
    let metrics = up.operator().get("/metrics").await;
    assert!(metrics.as_str().unwrap().contains("toolgate_"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_says_by_its_exit_code_what_went_wrong() {
    let up = Up::start(POLICY).await;
    let nobody = format!("http://127.0.0.1:{}", tests::fleet::free_port());
    let commands: [&[&str]; 10] = [
        &["pending"],
        &["approve", "x"],
        &["grant", "list"],
        &["stop"],
        &["trace", "list"],
        &["trace", "verify"],
        &["policy", "list"],
        &["pins", "list"],
        &["sidecars", "list"],
        &["rollout", "status"],
    ];
    for command in commands {
        let unreachable = up.toolgate(&[command, &["--url", &nobody]].concat()).await;
        assert_eq!(unreachable.code, 3, "{command:?}: {unreachable:?}");
        assert!(unreachable.stderr.contains(&nobody), "{unreachable:?}");
        let refused = up.toolgate(&[command, &["--token", "wrong"]].concat()).await;
        assert_eq!(refused.code, 4, "{command:?}: {refused:?}");
        assert_eq!(refused.stderr.trim().lines().count(), 1, "{refused:?}");
    }
    for wrong in [
        &["policy", "push", "/nowhere.yaml"][..],
        &["decide", "a.b", "{", "--agent", "x"],
        &["unheard-of"],
        &["stop", "--reason", "no scope"],
        &["trace", "verify", "/nowhere.jsonl"],
        &["config", "check", "/nowhere.yaml"],
    ] {
        let ran = up.toolgate(wrong).await;
        assert_eq!(ran.code, 2, "{wrong:?}: {ran:?}");
    }
    let unscoped = up.toolgate(&["stop", "everything"]).await;
    assert_eq!(unscoped.code, 2, "{unscoped:?}");
    let empty = up.folder.path().join("empty.jsonl").display().to_string();
    std::fs::write(&empty, "").unwrap();
    let listed = up.folder.path().join("listed.yaml").display().to_string();
    std::fs::write(&listed, "- name: a\n").unwrap();
    for (wrong, code, says) in [
        (&["policy", "push", listed.as_str()][..], 2, "`---`"),
        (&["approve", ""], 2, "<ID>"),
        (&["trace", "verify", empty.as_str()], 2, "holds no record"),
        (&["trace", "list", "--outcome", "fine"], 2, "interrupted"),
        (
            &["grant", "create", "--agent", "x", "--for", "3x", "a.b"],
            2,
            "3x",
        ),
        (&["pending", "--url", "nonsense"], 2, "http://127.0.0.1:9095"),
        (&["policy", "pull", "people"], 2, "configuration"),
        (&["policy", "rollback", "people", "1"], 5, "configuration"),
    ] {
        let ran = up.toolgate(wrong).await;
        assert_eq!(ran.code, code, "{wrong:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{wrong:?}: {ran:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_up_on_the_same_data_directory_changes_nothing_there() {
    let up = Up::start(POLICY).await;
    let other = up.folder.path().join("other.yaml");
    std::fs::write(&other, format!("port: {}\n", tests::fleet::free_port())).unwrap();
    let policies = up.json(&["policy", "list"]).await;
    let second = up.toolgate(&["up", "--config", other.to_str().unwrap()]).await;
    assert_eq!(second.code, 5, "{second:?}");
    assert!(second.stderr.contains(&up.url), "{second:?}");
    assert_eq!(up.json(&["policy", "list"]).await, policies);
}
