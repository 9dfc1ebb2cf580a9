//! The catalogue's single tools, corrections and extractors over REST.

use serde_json::{Value, json};

use super::tools::publish;
use super::{Ask, Got, World};

const QUERY: (&str, &str) = ("run_query", "Runs SQL");
const READ: (&str, &str) = ("read_note", "Reads a note");

async fn send(world: &World, method: &str, path: &str, body: Value) -> Got {
    Ask::new(method, path)
        .operator()
        .body(body.to_string())
        .send(world)
        .await
}

fn sql() -> Value {
    json!({"mode": "sql", "argument": "query", "dialect": "postgres", "schema": "public"})
}

#[tokio::test]
async fn a_correction_is_shown_with_who_and_when_and_is_recorded() {
    let world = World::new().await;
    publish(&world, "default", &[READ]).await;
    let before = world.get("/tools/notes.read_note").await.expect(200);
    assert_eq!(
        (&before["correction"], &before["declared"]["name"]),
        (&Value::Null, &json!("read_note"))
    );
    assert_eq!(before["lifecycle_state"], "active");

    let body = json!({"side_effect": "delete", "risk_tags": ["pii"], "compliance_tags": ["gdpr"],
        "lifecycle_state": "deprecated", "by": "dana"});
    let got = send(&world, "PATCH", "/tools/notes.read_note", body).await;
    assert_eq!(got.header(http::header::ETAG), "\"1\"");
    let tool = got.expect(200);
    assert_eq!(
        (&tool["side_effect_type"], &tool["lifecycle_state"]),
        (&json!("delete"), &json!("deprecated"))
    );
    assert_eq!(tool["classification"]["tags"], json!(["pii", "gdpr"]));
    assert_eq!(tool["classification"]["plain_read"], false);
    let correction = &tool["correction"];
    assert_eq!(
        (&correction["updated_by"], &correction["stale"]),
        (&json!("dana"), &json!(false))
    );
    assert_eq!(correction["side_effect"], "delete");
    assert!(correction["updated_at"].as_str().unwrap().ends_with('Z'));
    assert!(world.did("mesh.tool_correct", "dana").await);

    let later = json!({"side_effect": null});
    let tool = send(&world, "PATCH", "/tools/notes.read_note", later)
        .await
        .expect(200);
    assert_eq!(tool["side_effect_type"], "read");
    assert_eq!(tool["risk_tags"], json!(["pii"]), "what is left out stays");
    for (query, count) in [
        ("tag=pii", 1),
        ("lifecycle=deprecated", 1),
        ("lifecycle=active", 0),
        ("kind=mcp", 1),
        ("family=named", 1),
        ("side_effect=read", 1),
        ("side_effect=delete", 0),
    ] {
        let found = world.get(&format!("/tools?{query}")).await.expect(200);
        assert_eq!(found.as_array().unwrap().len(), count, "{query}");
    }
    world.get("/tools?risk=TERRIBLE").await.problem(400);
}

#[tokio::test]
async fn a_correction_is_flagged_when_the_declaration_changes() {
    let world = World::new().await;
    publish(&world, "default", &[READ]).await;
    send(
        &world,
        "PATCH",
        "/tools/notes.read_note",
        json!({"risk_tags": ["pii"]}),
    )
    .await
    .expect(200);
    publish(&world, "default", &[READ]).await;
    assert_eq!(
        world.get("/tools/notes.read_note").await.expect(200)["correction"]["stale"],
        false
    );
    publish(&world, "default", &[("read_note", "Reads a note and mails it")]).await;
    assert_eq!(
        world.get("/tools/notes.read_note").await.expect(200)["correction"]["stale"],
        true
    );
}

#[tokio::test]
async fn an_extractor_is_tried_and_then_given() {
    let world = World::new().await;
    publish(&world, "default", &[QUERY]).await;
    let trial = json!({"extractor": sql(), "arguments": {"query": "SELECT name FROM users"}});
    let tried = world
        .post("/tools/notes.run_query/extractor/test", trial)
        .await
        .expect(200);
    assert_eq!(tried["resources"], json!(["table://public.users"]));
    assert_eq!(
        (&tried["columns"], &tried["complete"]),
        (&json!(["users.name"]), &json!(true))
    );
    assert_eq!(tried["risks"], json!(["READ"]));
    world
        .post("/tools/notes.run_query/extractor/test", json!({"arguments": {}}))
        .await
        .problem(400);

    let tool = send(&world, "PUT", "/tools/notes.run_query/extractor", sql())
        .await
        .expect(200);
    assert_eq!(tool["target_extractor"], sql());
    let own = json!({"arguments": {"query": "SELEC"}});
    let tried = world
        .post("/tools/notes.run_query/extractor/test", own)
        .await
        .expect(200);
    assert_eq!(
        (&tried["resources"], &tried["text_risks"]),
        (&Value::Null, &Value::Null)
    );
    assert!(tried["risks"].as_array().unwrap().contains(&json!("EXECUTION")));
    assert!(tried["reasons"][0].as_str().unwrap().contains("cannot be parsed"));
    let gone = world.delete("/tools/notes.run_query/extractor").await.expect(200);
    assert_eq!(
        (&gone["target_extractor"], &gone["correction"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn what_cannot_be_corrected_is_told() {
    let world = World::new().await;
    for namespace in ["default", "prod"] {
        publish(&world, namespace, &[READ]).await;
    }
    let path = "/tools/notes.read_note?namespace=prod";
    for body in [
        json!({}),
        json!({"by": "dana"}),
        json!({"side_effect": "explode"}),
        json!({"what": 1}),
        json!({"mapping": {"risks": []}}),
        json!({"risk_tags": ["a\u{7}"]}),
    ] {
        send(&world, "PATCH", path, body.clone()).await.problem(400);
    }
    let change = || json!({"side_effect": "write"});
    let several = send(&world, "PATCH", "/tools/notes.read_note", change())
        .await
        .problem(400);
    assert!(several.contains("default, prod"), "{several}");
    send(&world, "PATCH", "/tools/notes.none", change())
        .await
        .problem(404);
    world.get("/tools/notes.none").await.problem(404);
    let extractor = "/tools/notes.read_note/extractor?namespace=prod";
    for bad in [
        json!({"mode": "sql", "argument": "q", "dialect": "oracle"}),
        json!({"mode": "uri_template", "template": "x://{a}{b}"}),
        json!({"mode": "none"}),
    ] {
        send(&world, "PUT", extractor, bad).await.problem(400);
    }
    send(&world, "PATCH", path, change()).await.expect(200);
    let late = Ask::new("PATCH", path)
        .operator()
        .with("if-match", "\"7\"")
        .body(change().to_string())
        .send(&world)
        .await;
    late.problem(412);
    assert_eq!(
        world
            .get("/tools/notes.read_note?namespace=default")
            .await
            .expect(200)["correction"],
        Value::Null
    );
}

#[tokio::test]
async fn coverage_names_the_policies_that_can_reach_a_tool() {
    let world = World::new().await;
    publish(&world, "default", &[READ]).await;
    let none = world.get("/tools/notes.read_note").await.expect(200);
    assert_eq!(none["coverage"], json!({"policies": [], "denies": false}));
    let put = |name: &'static str, rules: &'static str| {
        let yaml = format!("name: {name}\nagent: \"*\"\n{rules}");
        let world = &world;
        async move { world.put(&format!("/policies/{name}"), &yaml).await.expect(201) }
    };
    put(
        "readers",
        "rules:\n  - tools: [\"notes.read_*\"]\n    action: allow\n  - action: deny\n",
    )
    .await;
    put("others", "rules:\n  - tools: [\"mail.*\"]\n    action: deny\n").await;
    put("shadow", "mode: shadow\nrules:\n  - action: deny\n").await;
    let covered = world.get("/tools/notes.read_note").await.expect(200)["coverage"].clone();
    assert_eq!(covered["policies"].as_array().unwrap().len(), 1, "{covered}");
    assert_eq!(
        (&covered["policies"][0]["name"], &covered["denies"]),
        (&json!("readers"), &json!(false))
    );
    put(
        "guard",
        "kind: guardrail\nrules:\n  - tools: [\"notes.*\"]\n    risk: [DELETE]\n    action: deny\n",
    )
    .await;
    let covered = world.get("/tools/notes.read_note").await.expect(200)["coverage"].clone();
    assert_eq!(
        (covered["policies"].as_array().unwrap().len(), &covered["denies"]),
        (2, &json!(true))
    );
}
