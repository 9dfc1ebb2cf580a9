//! What the author of a policy asks, as commands: of files alone, and of what happened under a running `toolgate up`.

use serde_json::json;
use tests::up::Up;
use tests::wait;

const POLICY: &str = r#"
policies:
  - name: people
    agent: "*"
    rules:
      - tools: ["fixture.get_item"]
        action: allow
      - tools: ["fixture.write_item"]
        action: allow
        condition: {field: id, operator: "<", value: 10}
      - tools: ["*"]
        action: deny
"#;

const NEW: &str = r#"
name: people
agent: "*"
rules:
  - {tools: ["fixture.get_item"], action: human_approval}
  - tools: ["fixture.write_item"]
    condition: {all: [{field: token, operator: exists}, {field: token, operator: starts_with, value: x}]}
    action: deny
  - {tools: ["*"], action: allow}
"#;

async fn asked(up: &Up, tool: &str, arguments: &str) {
    up.toolgate(&["decide", tool, arguments, "--agent", "bob"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_calls_are_decided_again_explained_and_made_into_tests() {
    let up = Up::start(POLICY).await;
    asked(&up, "fixture.get_item", r#"{"id":1}"#).await;
    asked(&up, "fixture.write_item", r#"{"id":90}"#).await;
    asked(&up, "fixture.write_item", r#"{"id":3,"token":"a secret"}"#).await;
    let records = wait::until("the questions are recorded", || async {
        let records = up.json(&["trace", "list"]).await;
        let of_bob = records.as_array().unwrap().iter();
        let of_bob: Vec<_> = of_bob.filter(|row| row["agent_id"] == "bob").cloned().collect();
        (of_bob.len() == 3).then_some(of_bob)
    })
    .await;

    let new = up.folder.path().join("new.yaml");
    std::fs::write(&new, NEW).unwrap();
    let replayed = up
        .json(&["policy", "replay", "--since", "1h", new.to_str().unwrap()])
        .await;
    assert_eq!(
        (&replayed["replayed"], &replayed["same"]),
        (&json!(2), &json!(0)),
        "{replayed}"
    );
    assert_eq!(replayed["not_replayed"][0]["reason"], "\"token\" was redacted");
    let changes = replayed["changes"].as_array().unwrap();
    assert!(
        changes
            .iter()
            .any(|change| change["from"] == "allow" && change["to"] == "human_approval")
    );
    assert!(
        changes
            .iter()
            .any(|change| change["from"] == "deny" && change["to"] == "allow")
    );

    let denied = records.iter().find(|row| row["policy"] == "deny").unwrap();
    let why = up.json(&["policy", "why", denied["id"].as_str().unwrap()]).await;
    assert_eq!(
        (&why["action"], &why["rule"]),
        (&json!("deny"), &json!("people#2"))
    );
    assert_eq!(
        why["argument_changes"][0],
        json!({"field": "id", "value": "9", "action": "allow"})
    );

    let tests = up.toolgate(&["policy", "test", "--from-records"]).await;
    assert!(tests.stdout.contains("tool: \"fixture.write_item\""), "{tests:?}");
    assert!(!tests.stdout.contains("secret"), "{tests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lint_tests_and_diff_need_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "old.yaml",
        "name: p\nagent: bob\nrules:\n  - {tools: [x.list_*], action: allow}\n",
    );
    write(
        "tools.json",
        r#"{"server":"x","tools":[{"name":"list_items","annotations":{"readOnlyHint":true}},{"name":"send_item"}]}"#,
    );
    write(
        "p.test.yaml",
        "policies: [old.yaml]\ncatalog: [tools.json]\ntests:\n  - {agent: bob, tool: [x.list_items, x.list_all], action: allow}\n  - {agent: bob, tool: x.send_item, action: deny}\n",
    );
    let run = async |arguments: &[&str]| {
        let mut command = tests::up::toolgate(arguments);
        command.arg("--data-dir").arg(folder.path());
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        (
            ran.status.code(),
            String::from_utf8(ran.stdout).unwrap() + &String::from_utf8(ran.stderr).unwrap(),
        )
    };
    let (code, said) = run(&["policy", "test", &path("p.test.yaml")]).await;
    assert_eq!(
        (code, said.contains("3 passed, 0 failed")),
        (Some(0), true),
        "{said}"
    );

    write(
        "new.yaml",
        "name: p\nagent: bob\nrules:\n  - {tools: [x.*], action: allow}\n  - {tools: [x.list_items], action: deny}\n",
    );
    let catalog = path("tools.json");
    let (code, said) = run(&[
        "policy",
        "diff",
        &path("old.yaml"),
        &path("new.yaml"),
        "--catalog",
        &catalog,
    ])
    .await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("+ x.send_item") && said.contains("1 open, 1 of them not plain reads"),
        "{said}"
    );

    let (code, said) = run(&["policy", "lint", &path("new.yaml"), "--catalog", &catalog]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("x.send_item") && said.contains("rule 1 can never match"),
        "{said}"
    );

    write(
        "p.test.yaml",
        "policies: [new.yaml]\ntests:\n  - {agent: bob, tool: x.send_item, action: deny}\n",
    );
    let (code, said) = run(&["policy", "test", &path("p.test.yaml")]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("expected deny, is allow by p#0"), "{said}");
}
