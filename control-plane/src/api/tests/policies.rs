//! Policies over REST.

use http::header;
use serde_json::{Value, json};

use super::{Ask, World};

const SUPPORT: &str =
    "# kept\nname: support\nagent: \"support-*\"\nrules:\n  - tools: [\"notes.*\"]\n    action: allow\n";

fn named(name: &str, agent: &str) -> String {
    format!("name: {name}\nagent: \"{agent}\"\nrules:\n  - tools: [\"*\"]\n    action: deny\n")
}

#[tokio::test]
async fn a_policy_is_created_changed_rolled_back_and_removed() {
    let world = World::new().await;
    let made = world.put("/policies/support", SUPPORT).await;
    assert_eq!(made.header(header::ETAG), "\"1\"");
    let made = made.expect(201);
    assert_eq!((&made["name"], &made["version"]), (&json!("support"), &json!(1)));
    let read = world.get("/policies/support").await;
    assert_eq!(read.header(header::ETAG), "\"1\"");
    let read = read.expect(200);
    assert_eq!(read["text"], SUPPORT);
    assert_eq!(read["agent"], json!(["support-*"]));
    assert_eq!(
        (&read["kind"], &read["mode"], &read["origin"]),
        (&json!("standard"), &json!("enforce"), &json!("api"))
    );
    assert_eq!(read["rules"][0]["index"], 0);
    assert_eq!(read["rules"][0]["line"], 5);
    let yaml = Ask::new("GET", "/policies/support")
        .operator()
        .with("accept", "application/yaml");
    assert_eq!(yaml.send(&world).await.text, SUPPORT);

    let changed = SUPPORT.replace("allow", "deny");
    assert_eq!(
        world.put("/policies/support", &changed).await.expect(200)["version"],
        2
    );
    let history = world.get("/policies/support/versions").await.expect(200);
    assert_eq!(
        (&history[0]["version"], &history[1]["version"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(history[1]["text"], SUPPORT);

    let back = json!({"version": 1, "by": "dana"});
    assert_eq!(
        world.post("/policies/support/rollback", back).await.expect(200)["version"],
        3
    );
    assert_eq!(world.get("/policies/support").await.expect(200)["text"], SUPPORT);
    world
        .post("/policies/support/rollback", json!({"version": 99}))
        .await
        .problem(404);

    let gone = world.delete("/policies/support").await.expect(200);
    assert_eq!(gone["name"], "support");
    world.get("/policies/support").await.problem(404);
    world.delete("/policies/support").await.problem(404);
    let edits: Vec<String> = world
        .acts()
        .await
        .into_iter()
        .filter(|(act, _)| act == "mesh.policy_edit")
        .map(|(_, by)| by)
        .collect();
    assert_eq!(edits, ["operator", "operator", "dana", "operator"]);
}

#[tokio::test]
async fn an_edit_is_recorded_with_the_text_before_and_after() {
    let world = World::new().await;
    world.put("/policies/support", SUPPORT).await.expect(201);
    let body = json!({"text": SUPPORT.replace("allow", "deny"), "by": "dana"}).to_string();
    let ask = Ask::new("PUT", "/policies/support").operator().body(body);
    ask.send(&world).await.expect(200);
    let record = &world
        .get("/traces?tool=mesh.policy_edit&limit=1")
        .await
        .expect(200)[0];
    assert_eq!(record["params"]["before"], SUPPORT);
    assert_eq!(record["params"]["credential"], "operator token");
    assert_eq!(record["user_id"], "dana");
}

#[tokio::test]
async fn a_lost_update_is_refused() {
    let world = World::new().await;
    world.put("/policies/support", SUPPORT).await.expect(201);
    let change = |name: &'static str, value: &str, text: &str| {
        Ask::new("PUT", "/policies/support")
            .operator()
            .with("content-type", "application/yaml")
            .with(name, value)
            .body(text.to_owned())
    };
    let (one, other) = (SUPPORT.replace("allow", "deny"), SUPPORT.replace("notes", "mail"));
    change("if-match", "\"1\"", &one).send(&world).await.expect(200);
    change("if-match", "\"1\"", &other)
        .send(&world)
        .await
        .problem(412);
    change("if-none-match", "*", &other)
        .send(&world)
        .await
        .problem(412);
    change("if-match", "nonsense", &other)
        .send(&world)
        .await
        .problem(400);
    assert_eq!(world.get("/policies/support").await.expect(200)["text"], one);
    let stale = Ask::new("DELETE", "/policies/support")
        .operator()
        .with("if-match", "\"1\"");
    stale.send(&world).await.problem(412);
    change("if-match", "*", &other).send(&world).await.expect(200);
    let absent = Ask::new("PUT", "/policies/other")
        .operator()
        .with("if-match", "*");
    absent.body(named("other", "x")).send(&world).await.problem(412);
}

#[tokio::test]
async fn an_invalid_document_is_refused_with_every_problem() {
    let world = World::new().await;
    let text = "name: support\nagent: x\nkind: guardrail\nrulez: []\nrules:\n  - tools: [\"a[\"]\n    action: alow\n";
    let got = world.put("/policies/support", text).await;
    let body = got.json();
    got.problem(422);
    let problems = body["problems"].as_array().unwrap();
    assert!(problems.len() >= 3, "{body}");
    for problem in problems {
        assert_eq!(problem["file"], "support.yaml");
        assert!(problem["line"].as_u64().unwrap() > 0 && !problem["message"].as_str().unwrap().is_empty());
    }
    let other = world.put("/policies/other", SUPPORT).await;
    assert!(other.problem(422).contains("support"));
    let two = format!("{}---\n{}", named("a", "x"), named("b", "x"));
    world.put("/policies/a", &two).await.problem(422);
    world.put("/policies/a", "").await.problem(422);
    assert_eq!(world.get("/policies").await.expect(200), json!([]));
    assert!(!world.did("mesh.policy_edit", "operator").await);
}

#[tokio::test]
async fn a_document_can_be_checked_without_being_put_in_force() {
    let world = World::new().await;
    let check = |text: &str| {
        Ask::new("POST", "/policies/validate")
            .operator()
            .body(text.to_owned())
    };
    let fine = check(SUPPORT).send(&world).await.expect(200);
    assert_eq!(fine, json!({"valid": true, "problems": []}));
    let wrong = check("name: a\n").send(&world).await.expect(200);
    assert_eq!(wrong["valid"], false);
    assert!(!wrong["problems"].as_array().unwrap().is_empty());
    assert_eq!(world.get("/policies").await.expect(200), json!([]));
}

#[tokio::test]
async fn the_list_begins_with_the_most_specific() {
    let world = World::new().await;
    for (name, agent) in [("all", "*"), ("exact", "support-1"), ("prefix", "support-*")] {
        world
            .put(&format!("/policies/{name}"), &named(name, agent))
            .await
            .expect(201);
    }
    let list = world.get("/policies").await.expect(200);
    let names: Vec<&Value> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| &policy["name"])
        .collect();
    assert_eq!(names, ["exact", "prefix", "all"]);
}

#[tokio::test]
async fn a_policy_of_the_configuration_is_not_changed_here() {
    let text = named("fixed", "x");
    let world = World::of(|options| {
        let source = policy::document::Source::Inline;
        options.policies = policy::Policy::parse_all("c.yaml", &text, &source, &options.lists).unwrap();
    })
    .await;
    world
        .put("/policies/fixed", &named("fixed", "y"))
        .await
        .problem(409);
    assert_eq!(world.get("/policies/fixed").await.expect(200)["origin"], "inline");
}
