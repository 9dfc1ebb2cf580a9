//! What operators say of a tool reaches the calls: extractors for `columns`, and corrections.

use serde_json::{Value, json};
use tests::agent::Agent;
use tests::up::Up;
use tests::wait;

const POLICY: &str = r#"
policies:
  - name: analysts
    agent: "*"
    rules:
      - tools: ["fixture.query"]
        columns: ["users.name", "users.id"]
        risk: [READ]
        action: allow
      - tools: ["fixture.get_item"]
        side_effect: [read]
        action: allow
      - tools: ["*"]
        action: deny
"#;

fn tools(description: &str) -> Value {
    let query = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    json!([
        {"name": "query", "description": description, "inputSchema": query},
        {"name": "get_item", "description": "Gets an item.", "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}},
    ])
}

#[test]
fn the_policy_of_the_document_loads() {
    let page = std::fs::read_to_string(tests::programs::checkout().join("docs/extractors.md")).unwrap();
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let source = policy::document::Source::Api;
    let loaded = policy::Policy::parse_all("extractors.md", text, &source, &policy::document::Lists::none());
    assert!(loaded.is_ok(), "{:?}", loaded.err());
}

/// The status of a call of the SQL tool.
async fn status(agent: &Agent, text: &str) -> u16 {
    let (status, _) = agent.rest("fixture.query", json!({"query": text})).await;
    status
}

async fn corrected(up: &Up, arguments: &[&str]) -> Value {
    let tool = up.json(&[&["tools"], arguments].concat()).await;
    let revision = tool["correction"]["revision"].as_str().unwrap().to_owned();
    up.operator().applied(&revision, 1).await;
    tool
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_and_corrections_decide_real_calls() {
    let mut up = Up::serving(&tools("Runs SQL."), POLICY).await;
    let agent = up.agent("ada").await;
    wait::until("the plain read is allowed", || async {
        let (status, _) = agent.rest("fixture.get_item", json!({})).await;
        (status == 200).then_some(())
    })
    .await;
    assert_eq!(
        status(&agent, "SELECT name FROM users").await,
        403,
        "no extractor yet"
    );

    tests::wait::until("the control plane knows the tool", || async {
        let tools = up.operator().get("/tools/decisions?agent=ada").await;
        tools.to_string().contains("fixture.query").then_some(())
    })
    .await;
    extractor_is_given(&up).await;
    assert_eq!(status(&agent, "SELECT name FROM users WHERE id = 3").await, 200);
    for refused in [
        "SELECT ssn FROM users",
        "SELECT * FROM users",
        "SELECT name FROM users WHERE ssn = 'x'",
        "SELECT name FROM users; DELETE FROM users",
        "SELECT u FROM users u",
        "SELECT query_to_xml('select ssn from users', true, true, '') FROM users",
        "SELEC name FROM users",
        "",
    ] {
        assert_eq!(status(&agent, refused).await, 403, "{refused}");
    }
    let ran: Vec<String> = up
        .ran()
        .into_iter()
        .filter(|line| line.starts_with("ran query"))
        .collect();
    assert_eq!(ran.len(), 1, "{ran:?}");
    records_show_what_was_reached(&up).await;

    correction_flips_a_decision(&up, &agent).await;
    correction_is_flagged_when_the_tool_changes(&mut up).await;
}

async fn extractor_is_given(up: &Up) {
    let extractor =
        json!({"mode": "sql", "argument": "query", "dialect": "postgres", "schema": "public"}).to_string();
    let tried = up
        .json(&[
            "tools",
            "extractor",
            "test",
            "fixture.query",
            r#"{"query": "SELECT u.name FROM users u"}"#,
            "--extractor",
            &extractor,
        ])
        .await;
    assert_eq!(tried["resources"], json!(["table://public.users"]));
    assert_eq!(
        (&tried["columns"], &tried["risks"]),
        (&json!(["users.name"]), &json!(["READ"]))
    );
    let tool = corrected(up, &["extractor", "set", "fixture.query", &extractor]).await;
    assert_eq!(tool["target_extractor"]["mode"], "sql");
}

async fn records_show_what_was_reached(up: &Up) {
    let records = up.operator().records("tool=fixture.query&action=allow", 1).await;
    assert_eq!(records[0]["columns"], json!(["users.id", "users.name"]));
    assert_eq!(records[0]["resources"], json!(["table://public.users"]));
    assert_eq!(records[0]["risk"], "READ");
}

async fn correction_flips_a_decision(up: &Up, agent: &Agent) {
    let tool = corrected(
        up,
        &[
            "correct",
            "fixture.get_item",
            "--side-effect",
            "delete",
            "--risk-tag",
            "pii",
            "--by",
            "dana",
        ],
    )
    .await;
    assert_eq!(tool["side_effect_type"], "delete");
    assert_eq!(tool["correction"]["updated_by"], "dana");
    let (status, body) = agent.rest("fixture.get_item", json!({})).await;
    assert_eq!(status, 403, "{body}");
    let tagged = up.json(&["tools", "list", "--tag", "pii"]).await;
    assert_eq!(tagged[0]["name"], "fixture.get_item");
    let acts = up.operator().get("/traces?kind=act&limit=100").await;
    assert!(
        acts.as_array()
            .unwrap()
            .iter()
            .any(|act| act["tool"] == "mesh.tool_correct" && act["user_id"] == "dana"),
        "{acts}"
    );
    let cleared = up
        .json(&[
            "tools",
            "correct",
            "fixture.get_item",
            "--clear",
            "side_effect",
            "--by",
            "dana",
        ])
        .await;
    up.operator()
        .applied(cleared["correction"]["revision"].as_str().unwrap(), 1)
        .await;
    let (status, body) = agent.rest("fixture.get_item", json!({"again": 1})).await;
    assert_eq!(status, 200, "{body}");
}

async fn correction_is_flagged_when_the_tool_changes(up: &mut Up) {
    let changed = tools("Runs SQL on any database.").to_string();
    std::fs::write(up.folder.path().join("ran.tools"), changed).unwrap();
    up.restart().await;
    let agent = up.agent("ada").await;
    let tool = wait::until("the changed tool is known", || async {
        let tool = up.operator().get("/tools/fixture.query").await;
        (tool["correction"]["stale"] == true).then_some(tool)
    })
    .await;
    assert_eq!(tool["coverage"]["denies"], true);
    assert_eq!(
        status(&agent, "SELECT name FROM users WHERE id = 4").await,
        403,
        "an extractor is for the version that it was given for"
    );
    let extractor = json!({"mode": "sql", "argument": "query", "dialect": "postgres"}).to_string();
    let tool = corrected(up, &["extractor", "set", "fixture.query", &extractor]).await;
    assert_eq!(tool["correction"]["stale"], false);
    assert_eq!(status(&agent, "SELECT name FROM users WHERE id = 5").await, 200);
}
