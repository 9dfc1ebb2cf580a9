//! Approvals, grants and stops over REST.

use serde_json::json;

use super::{Ask, World};

#[tokio::test]
async fn an_approval_is_seen_answered_once_and_recorded() {
    let world = World::new().await;
    let id = world.asks("support-1", "pay.refund").await;
    let list = world.get("/approvals?status=pending&tool=pay.*").await;
    assert!(list.text.contains(r#""params":{"amount":1.50}"#), "{list:?}");
    let list = list.expect(200);
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["agent_id"], "support-1");
    assert_eq!(list[0]["policy_rule"], "support");
    assert!(
        ["5m", "4m59s", "4m58s"].contains(&list[0]["remaining"].as_str().unwrap()),
        "{list}"
    );
    let detail = world
        .get(&format!("/approvals/{}", id.get(..8).unwrap()))
        .await
        .expect(200);
    assert_eq!(detail["id"], id);
    assert!(detail["recent_traces"].is_array() && detail["active_grants"].is_array());

    let answer = json!({"resolved_by": "dana", "reasoning": "fine", "confidence": 0.9});
    let approved = world
        .post(&format!("/approvals/{id}/approve"), answer)
        .await
        .expect(200);
    assert_eq!(
        (&approved["status"], &approved["resolved_by"]),
        (&json!("approved"), &json!("dana"))
    );
    let again = Ask::new("POST", &format!("/approvals/{id}/deny")).operator();
    assert!(again.send(&world).await.problem(409).contains("already approved"));
    assert!(world.did("mesh.approval_resolve", "dana").await);
    assert_eq!(
        world.get("/approvals?status=pending").await.expect(200),
        json!([])
    );
}

#[tokio::test]
async fn an_empty_body_answers_too() {
    let world = World::new().await;
    let id = world.asks("a", "pay.refund").await;
    let ask = Ask::new("POST", &format!("/approvals/{id}/deny")).operator();
    let denied = ask.send(&world).await.expect(200);
    assert_eq!(
        (&denied["status"], &denied["resolved_by"]),
        (&json!("denied"), &json!("operator"))
    );
}

#[tokio::test]
async fn what_is_not_there_or_not_clear_is_told() {
    let world = World::new().await;
    world
        .post("/approvals/ffff/approve", json!({}))
        .await
        .problem(404);
    world.get("/approvals/ffff").await.problem(404);
    world.get("/approvals?status=perhaps").await.problem(400);
    world.get("/approvals?tool=a%5Bb").await.problem(400);
    let mut ids = Vec::new();
    for _ in 0..17 {
        ids.push(world.asks("a", "pay.refund").await);
    }
    // Of seventeen ids two begin alike.
    let same = |digit: char| ids.iter().filter(|id| id.starts_with(digit)).count() > 1;
    let digit = "0123456789abcdef".chars().find(|digit| same(*digit)).unwrap();
    let got = world
        .post(&format!("/approvals/{digit}/approve"), json!({}))
        .await;
    assert!(got.problem(409).contains("several approvals"));
    let page = world.get("/approvals?limit=10").await;
    assert!(page.header(http::header::LINK).contains("cursor="));
    let next = page
        .header(http::header::LINK)
        .split(['<', '>'])
        .nth(1)
        .unwrap()
        .to_owned();
    assert_eq!(world.get(&next).await.expect(200).as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn a_call_that_waits_is_in_the_traces_at_once() {
    let world = World::new().await;
    let id = world.asks("support-1", "pay.refund").await;
    let first = world.get("/traces?limit=5").await.expect(200)[0].clone();
    assert_eq!(
        (&first["outcome"], &first["status"]),
        (&json!("pending"), &json!("pending"))
    );
    assert_eq!(
        (&first["approval_id"], &first["policy"]),
        (&json!(id), &json!("human_approval"))
    );
    let call = first["id"].as_str().unwrap();
    assert_eq!(
        world.get(&format!("/traces/{call}")).await.expect(200)["approval_status"],
        "pending"
    );
    let only = world
        .get("/traces?outcome=pending&agent=support-1")
        .await
        .expect(200);
    assert_eq!(only.as_array().unwrap().len(), 1);
    assert_eq!(
        world.get("/traces?outcome=pending&agent=other").await.expect(200),
        json!([])
    );
}

#[tokio::test]
async fn a_grant_is_made_listed_and_revoked() {
    let world = World::new().await;
    let new = json!({"agent": "support-*", "tools": "pay.*", "duration": "30m", "reason": "month end", "by": "dana"});
    let grant = world.post("/grants", new).await.expect(201);
    assert_eq!(
        (&grant["tools"], &grant["remaining"]),
        (&json!(["pay.*"]), &json!("30m"))
    );
    assert_eq!(grant["granted_by"], "dana");
    let several = json!({"agent": "a", "tools": ["x.y", "x.z"], "duration": "1h"});
    world.post("/grants", several).await.expect(201);
    assert_eq!(
        world.get("/grants").await.expect(200).as_array().unwrap().len(),
        2
    );
    let id = grant["id"].as_str().unwrap();
    let revoked = world
        .delete(&format!("/grants/{}", id.get(..10).unwrap()))
        .await
        .expect(200);
    assert_eq!(revoked["id"], id);
    world.delete(&format!("/grants/{id}")).await.problem(404);
    assert!(world.did("mesh.grant_create", "dana").await);
    assert!(world.did("mesh.grant_revoke", "operator").await);
}

#[tokio::test]
async fn a_grant_that_says_too_little_or_too_much_is_refused() {
    let world = World::new().await;
    let missing = world
        .post("/grants", json!({"tools": "a.b", "duration": "1m"}))
        .await;
    assert!(missing.problem(400).contains("agent"));
    for body in [
        json!({"agent": "a", "tools": [], "duration": "1m"}),
        json!({"agent": "a", "tools": 3, "duration": "1m"}),
        json!({"agent": "a", "tools": "a.[b", "duration": "1m"}),
        json!({"agent": "a{b", "tools": "a.b", "duration": "1m"}),
        json!({"agent": "a", "tools": "a.b", "duration": "0"}),
        json!({"agent": "a", "tools": "a.b", "duration": "25h"}),
        json!({"agent": "a", "tools": "a.b", "duration": "soon"}),
        json!({"agent": "a", "tools": "a.b", "duration": "1m", "namespace": ""}),
        json!({"agent": "a", "tools": "a.b", "duration": "1m", "forever": true}),
    ] {
        world.post("/grants", body).await.problem(400);
    }
    assert_eq!(world.get("/grants").await.expect(200), json!([]));
}

#[tokio::test]
async fn a_local_agent_grants_to_itself_where_every_local_caller_is_an_operator() {
    let world = World::of(|options| options.loopback_operators = true).await;
    let ask = Ask::new("POST", "/grants")
        .from("127.0.0.1:1")
        .with("host", "localhost")
        .bearer("agent:coder")
        .body(r#"{"tools": "a.b", "duration": "5m"}"#);
    let grant = ask.send(&world).await.expect(201);
    assert_eq!(
        (&grant["agent"], &grant["granted_by"]),
        (&json!("coder"), &json!("coder"))
    );
}

#[tokio::test]
async fn a_stop_holds_until_it_is_lifted() {
    let world = World::new().await;
    let id = world.asks("support-1", "pay.refund").await;
    let new = json!({"scope": "agent:support-*", "reason": "it runs wild", "by": "dana"});
    let stop = world.post("/stops?wait=applied", new).await.expect(201);
    assert_eq!(
        (&stop["scope"], &stop["by"]),
        (&json!("agent:support-*"), &json!("dana"))
    );
    assert_eq!((&stop["applied"], &stop["of"]), (&json!(0), &json!(0)));
    assert_eq!(stop["denied_approvals"], json!([id]));
    assert_eq!(world.get("/stops").await.expect(200).as_array().unwrap().len(), 1);
    let stop_id = stop["id"].as_str().unwrap();
    let lifted = world.delete(&format!("/stops/{stop_id}")).await.expect(200);
    assert_eq!(lifted["lifted_by"], "operator");
    world.delete(&format!("/stops/{stop_id}")).await.problem(409);
    world.delete("/stops/ffff").await.problem(404);
    assert_eq!(world.get("/stops").await.expect(200), json!([]));
    assert_eq!(
        world
            .get("/stops?all=true")
            .await
            .expect(200)
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(world.did("mesh.stop", "dana").await && world.did("mesh.resume", "operator").await);
}

#[tokio::test]
async fn only_scopes_that_mean_something_are_taken() {
    let world = World::new().await;
    for scope in [
        "all",
        "namespace:prod",
        "agent:a*",
        "session:s:1",
        "upstream:github",
    ] {
        let stop = world.post("/stops", json!({"scope": scope})).await.expect(201);
        assert_eq!(stop["scope"], scope);
    }
    for scope in [
        "",
        "everything",
        "agent:",
        "agent:[",
        "namespace:",
        "session:",
        "upstream:a b",
        "all:x",
    ] {
        world.post("/stops", json!({"scope": scope})).await.problem(400);
    }
    world
        .post("/stops", json!({"scope": "all", "agent": "a"}))
        .await
        .problem(400);
    let stop = world
        .post("/stops", json!({"scope": "session:s", "agent": "a", "user": "u"}))
        .await
        .expect(201);
    assert_eq!((&stop["agent"], &stop["user"]), (&json!("a"), &json!("u")));
}
