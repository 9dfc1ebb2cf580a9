//! One tool's action for one agent, over REST.

use std::os::unix::fs::PermissionsExt as _;

use http::header;
use serde_json::{Value, json};

use super::tools::{READ, publish};
use super::{Ask, Got, World};
use crate::Options;

const TODAY: &str = "# set from console, ";
const CLAUDE: &str = "# by hand\nname: claude\nagent: claude\nrules:\n  - tools: [\"notes.move_note\"]\n    action: human_approval\n\n  # the rest\n  - action: deny # all\n";

async fn set(world: &World, agent: &str, tool: &str, action: &str) -> Got {
    let body = json!({"action": action, "by": "dana"}).to_string();
    let path = format!("/policies/{agent}/tools/{tool}");
    Ask::new("PUT", &path).operator().body(body).send(world).await
}

async fn decision(world: &World, agent: &str, tool: &str) -> Value {
    let all = world
        .get(&format!("/tools/decisions?agent={agent}"))
        .await
        .expect(200);
    let found = all.as_array().unwrap().iter().find(|entry| entry["name"] == tool);
    found.unwrap_or_else(|| panic!("no {tool} in {all}")).clone()
}

async fn text(world: &World, policy: &str) -> String {
    let read = world.get(&format!("/policies/{policy}")).await.expect(200);
    read["text"].as_str().unwrap().to_owned()
}

async fn catalogue(world: &World) {
    let tools = [
        READ,
        ("move_note", "Moves a note"),
        ("delete_note", "Deletes a note"),
    ];
    publish(world, "default", &tools).await;
}

/// Lines of one text that the other does not have, in order.
fn added(before: &str, after: &str) -> Vec<String> {
    let mut before = before.split_inclusive('\n').peekable();
    let mut added = Vec::new();
    for line in after.split_inclusive('\n') {
        if before.peek() == Some(&line) {
            before.next();
        } else {
            added.push(line.trim_end().to_owned());
        }
    }
    assert_eq!(before.next(), None, "a line is gone or changed");
    added
}

#[tokio::test]
async fn a_tool_is_set_changed_and_inherits_again_with_every_other_byte_kept() {
    let world = World::new().await;
    catalogue(&world).await;
    world.put("/policies/claude", CLAUDE).await.expect(201);
    let done = set(&world, "claude", "notes.read_note", "allow").await;
    assert_eq!(done.header(header::ETAG), "\"2\"");
    let done = done.expect(200);
    assert_eq!(
        (
            &done["action"],
            &done["action_before"],
            &done["changed"],
            &done["policy"],
            &done["rule_index"]
        ),
        (
            &json!("allow"),
            &json!("deny"),
            &json!(true),
            &json!("claude"),
            &json!(1)
        )
    );
    let lines = added(CLAUDE, &text(&world, "claude").await);
    assert!(
        lines[0].starts_with(&format!("  {TODAY}20")) && lines[0].ends_with(" by dana"),
        "{lines:?}"
    );
    assert_eq!(
        lines[1..],
        ["  - tools: [\"notes.read_note\"]", "    action: allow"]
    );
    let shown = decision(&world, "claude", "notes.read_note").await;
    assert_eq!(
        (&shown["action"], &shown["rule_index"]),
        (&json!("allow"), &json!(1))
    );

    let again = set(&world, "claude", "notes.read_note", "allow")
        .await
        .expect(200);
    assert_eq!((&again["changed"], &again["version"]), (&json!(false), &json!(2)));
    let done = set(&world, "claude", "notes.read_note", "human_approval")
        .await
        .expect(200);
    assert_eq!(
        (&done["action_before"], &done["version"]),
        (&json!("allow"), &json!(3))
    );
    let done = set(&world, "claude", "notes.read_note", "inherit")
        .await
        .expect(200);
    assert_eq!(
        (&done["action"], &done["changed"]),
        (&json!("deny"), &json!(true))
    );
    assert_eq!(text(&world, "claude").await, CLAUDE);
    let none = set(&world, "claude", "notes.read_note", "inherit")
        .await
        .expect(200);
    assert_eq!(none["changed"], false);
    let history = world.get("/policies/claude/versions").await.expect(200);
    assert_eq!(history.as_array().unwrap().len(), 4);
    let edits = world
        .acts()
        .await
        .into_iter()
        .filter(|act| *act == ("mesh.policy_edit".to_owned(), "dana".to_owned()));
    assert_eq!(edits.count(), 3);
}

#[tokio::test]
async fn an_edit_is_recorded_with_the_action_before_and_after() {
    let world = World::new().await;
    catalogue(&world).await;
    world.put("/policies/claude", CLAUDE).await.expect(201);
    set(&world, "claude", "notes.read_note", "human_approval")
        .await
        .expect(200);
    let records = world
        .get("/traces?tool=mesh.policy_edit&limit=1")
        .await
        .expect(200);
    let record = &records[0];
    let params = &record["params"];
    assert_eq!(
        (
            &params["action_before"],
            &params["action_after"],
            &params["tool"],
            &params["agent"]
        ),
        (
            &json!("deny"),
            &json!("human_approval"),
            &json!("notes.read_note"),
            &json!("claude")
        )
    );
    assert_eq!(
        (&params["before"], &record["user_id"]),
        (&json!(CLAUDE), &json!("dana"))
    );
}

#[tokio::test]
async fn a_rule_written_by_hand_is_rewritten_but_not_removed() {
    let world = World::new().await;
    catalogue(&world).await;
    world.put("/policies/claude", CLAUDE).await.expect(201);
    set(&world, "claude", "notes.move_note", "allow")
        .await
        .expect(200);
    assert_eq!(
        text(&world, "claude").await,
        CLAUDE.replace("human_approval", "allow")
    );
    let refused = set(&world, "claude", "notes.move_note", "inherit")
        .await
        .problem(409);
    assert!(refused.contains("written by hand"), "{refused}");
}

#[tokio::test]
async fn an_agent_without_a_policy_of_its_own_gets_one_and_loses_it_again() {
    let world = World::new().await;
    catalogue(&world).await;
    let shared = "name: o'neil\nagent: \"*\"\nrules:\n  - action: deny\n";
    world.put("/policies/o'neil", shared).await.expect(201);
    let made = set(&world, "o'neil", "notes.read_note", "allow")
        .await
        .expect(201);
    assert_eq!(
        (&made["policy"], &made["version"]),
        (&json!("o'neil-2"), &json!(1))
    );
    assert_eq!(
        decision(&world, "o'neil", "notes.read_note").await["action"],
        "allow"
    );
    assert_eq!(
        decision(&world, "o'neil", "notes.move_note").await["action"],
        "deny"
    );
    assert_eq!(
        decision(&world, "other", "notes.read_note").await["action"],
        "deny"
    );
    let gone = set(&world, "o'neil", "notes.read_note", "inherit")
        .await
        .expect(200);
    assert_eq!(
        (&gone["action"], &gone["version"]),
        (&json!("deny"), &Value::Null)
    );
    world.get("/policies/o'neil-2").await.problem(404);
}

#[tokio::test]
async fn what_would_not_be_decided_so_changes_nothing_and_says_why() {
    let world = World::new().await;
    catalogue(&world).await;
    let hidden = "name: claude\nagent: claude\nrules:\n  - tools: [\"notes.*\"]\n    action: deny\n  - tools: [\"notes.read_note\"]\n    action: deny\n";
    world.put("/policies/claude", hidden).await.expect(201);
    let refused = set(&world, "claude", "notes.read_note", "allow")
        .await
        .problem(409);
    assert!(
        refused.contains("rule 0 of policy \"claude\" decides before"),
        "{refused}"
    );
    let flow = "name: flow\nagent: flow\nrules: [{action: deny}]\n";
    world.put("/policies/flow", flow).await.expect(201);
    let refused = set(&world, "flow", "notes.read_note", "allow").await.problem(409);
    assert!(
        refused.contains("flow.yaml:3 the rules are written in brackets"),
        "{refused}"
    );
    for (agent, tool) in [("claude", "notes.*"), ("cl*", "notes.read_note")] {
        set(&world, agent, tool, "allow").await.problem(409);
    }
    assert_eq!(
        (text(&world, "claude").await, text(&world, "flow").await),
        (hidden.to_owned(), flow.to_owned())
    );
    let edits = world
        .acts()
        .await
        .into_iter()
        .filter(|(act, by)| act == "mesh.policy_edit" && by == "dana");
    assert_eq!(edits.count(), 0);
}

#[tokio::test]
async fn guardrails_and_pins_do_not_stand_in_the_way_of_what_is_said_before_them() {
    let world = World::of(|options| options.settings.pin_tools = true).await;
    catalogue(&world).await;
    world.put("/policies/claude", CLAUDE).await.expect(201);
    let guard = "name: guard\nagent: \"*\"\nkind: guardrail\nrules:\n  - action: human_approval\n";
    world.put("/policies/guard", guard).await.expect(201);
    let done = set(&world, "claude", "notes.read_note", "allow")
        .await
        .expect(200);
    assert_eq!(done["action"], "allow");
    assert_eq!(
        decision(&world, "claude", "notes.read_note").await["action"],
        "human_approval"
    );
}

#[tokio::test]
async fn conditional_rules_above_keep_their_say() {
    let world = World::new().await;
    catalogue(&world).await;
    let own = "name: claude\nagent: claude\nrules:\n  - tools: [\"notes.*\"]\n    action: human_approval\n    condition: {field: to, operator: \"==\", value: all}\n  - action: deny\n";
    world.put("/policies/claude", own).await.expect(201);
    let done = set(&world, "claude", "notes.move_note", "allow")
        .await
        .expect(200);
    assert_eq!(done["rule_index"], 1);
    let shown = decision(&world, "claude", "notes.move_note").await;
    assert_eq!(
        (&shown["action"], &shown["conditional"][0]["field"]),
        (&json!("allow"), &json!("to"))
    );
}

#[tokio::test]
async fn a_lost_update_of_the_own_policy_is_refused() {
    let world = World::new().await;
    catalogue(&world).await;
    world.put("/policies/claude", CLAUDE).await.expect(201);
    let with = |version: &str| {
        Ask::new("PUT", "/policies/claude/tools/notes.read_note")
            .operator()
            .with("if-match", version)
            .body(json!({"action": "allow"}).to_string())
    };
    with("\"7\"").send(&world).await.problem(412);
    with("\"1\"").send(&world).await.expect(200);
    let none = Ask::new("PUT", "/policies/nobody/tools/notes.read_note")
        .operator()
        .with("if-match", "\"1\"")
        .body(json!({"action": "allow"}).to_string());
    none.send(&world).await.problem(412);
}

#[tokio::test]
async fn edits_at_the_same_time_all_hold() {
    let world = World::new().await;
    catalogue(&world).await;
    world.put("/policies/claude", CLAUDE).await.expect(201);
    let (one, other) = tokio::join!(
        set(&world, "claude", "notes.read_note", "allow"),
        set(&world, "claude", "notes.delete_note", "human_approval"),
    );
    one.expect(200);
    other.expect(200);
    assert_eq!(
        decision(&world, "claude", "notes.read_note").await["action"],
        "allow"
    );
    assert_eq!(
        decision(&world, "claude", "notes.delete_note").await["action"],
        "human_approval"
    );
    assert_eq!(added(CLAUDE, &text(&world, "claude").await).len(), 6);
}

#[tokio::test]
async fn nonsense_is_refused() {
    let world = World::new().await;
    let put =
        |path: &'static str, body: &'static str| Ask::new("PUT", path).operator().body(body).send(&world);
    let path = "/policies/claude/tools/notes.read_note";
    for body in [
        "{}",
        "{\"action\": \"perhaps\"}",
        "{\"action\": \"allow\", \"x\": 1}",
        "[]",
        "",
        "{\"action\": \"allow\", \"by\": \"a\\nb\"}",
    ] {
        put(path, body).await.problem(400);
    }
    put("/policies/a%00b/tools/x", "{\"action\": \"allow\"}")
        .await
        .problem(400);
    put("/policies/a/tools/x%0Ay", "{\"action\": \"allow\"}")
        .await
        .problem(400);
    put("/policies/a/tools/%FF", "{\"action\": \"allow\"}")
        .await
        .problem(400);
    put("/policies/a/tools/x?namspace=y", "{\"action\": \"allow\"}")
        .await
        .problem(400);
    let agent = Ask::new("PUT", path)
        .bearer("agent:claude")
        .body("{\"action\": \"allow\"}");
    agent.send(&world).await.problem(403);
}

#[tokio::test]
async fn a_tool_that_nobody_declares_can_be_set_too() {
    let world = World::new().await;
    let made = set(&world, "claude", "Bash", "human_approval").await.expect(201);
    assert_eq!(
        (&made["action"], &made["action_before"]),
        (&json!("human_approval"), &json!("deny"))
    );
}

/// With a policy directory that holds one file.
async fn with_file(name: &str, text: &str) -> (World, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), text).unwrap();
    let path = folder.path().to_owned();
    let world = World::of(|options: &mut Options| options.policy_dir = Some(path)).await;
    catalogue(&world).await;
    (world, folder)
}

#[tokio::test]
async fn a_file_is_written_with_its_mode_and_the_text_before_is_kept() {
    let written = format!("# a\r\n{}", CLAUDE.replace('\n', "\r\n").trim_end());
    let (world, folder) = with_file("claude.yaml", &written).await;
    let path = folder.path().join("claude.yaml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let done = set(&world, "claude", "notes.read_note", "allow")
        .await
        .expect(200);
    assert_eq!(
        (&done["source_file"], &done["action"]),
        (&json!("claude.yaml"), &json!("allow"))
    );
    assert_eq!(
        decision(&world, "claude", "notes.read_note").await["action"],
        "allow"
    );
    let after = std::fs::read_to_string(&path).unwrap();
    assert_eq!(added(&written, &after).len(), 3);
    assert!(after.contains("by dana\r\n  - tools: [\"notes.read_note\"]\r\n    action: allow\r\n"));
    let kept = std::fs::read_to_string(folder.path().join("claude.yaml.bak")).unwrap();
    assert_eq!(kept, written);
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
        0o640
    );
    assert!(world.did("mesh.policy_edit", "dana").await);

    set(&world, "claude", "notes.read_note", "inherit")
        .await
        .expect(200);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    assert_eq!(
        decision(&world, "claude", "notes.read_note").await["action"],
        "deny"
    );
}

#[tokio::test]
async fn beside_a_directory_a_new_policy_is_a_file_with_a_safe_name() {
    let (world, folder) = with_file("claude.yaml", CLAUDE).await;
    let agent = "..%2Fevil agent".replace(' ', "%20");
    let made = set(&world, &agent, "notes.read_note", "allow").await.expect(201);
    assert_eq!(made["source_file"], "_evil_agent.yaml");
    assert_eq!(
        (&made["policy"], &made["version"]),
        (&json!("../evil agent"), &json!(1))
    );
    assert!(folder.path().join("_evil_agent.yaml").exists());
    set(&world, &agent, "notes.read_note", "inherit")
        .await
        .expect(200);
    assert!(!folder.path().join("_evil_agent.yaml").exists());
    assert_eq!(
        decision(&world, "..%2Fevil%20agent", "notes.read_note").await["action"],
        "deny"
    );
}

#[tokio::test]
async fn a_file_that_is_not_ours_to_write_stays_as_it_is() {
    let (world, folder) = with_file("claude.yaml", CLAUDE).await;
    let path = folder.path().join("claude.yaml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let refused = set(&world, "claude", "notes.read_note", "allow")
        .await
        .problem(409);
    assert!(refused.contains("read-only"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), CLAUDE);
    assert_eq!(
        decision(&world, "claude", "notes.read_note").await["action"],
        "deny"
    );
}

#[tokio::test]
async fn two_edits_of_one_file_both_hold_and_other_documents_of_it_stay() {
    let other = "--- # two\nname: b\nagent: b\nrules: [{action: allow}]\n";
    let whole = format!("{CLAUDE}{other}");
    let (world, folder) = with_file("all.yml", &whole).await;
    let (one, two) = tokio::join!(
        set(&world, "claude", "notes.read_note", "allow"),
        set(&world, "claude", "notes.delete_note", "human_approval"),
    );
    one.expect(200);
    two.expect(200);
    let after = std::fs::read_to_string(folder.path().join("all.yml")).unwrap();
    assert_eq!(added(&whole, &after).len(), 6);
    assert!(after.ends_with(other));
    assert_eq!(decision(&world, "b", "notes.read_note").await["action"], "allow");
    set(&world, "b", "notes.read_note", "deny").await.problem(409);
}
