//! Sidecars, join tokens, rollouts, settings and generations over REST.

use serde_json::json;

use super::{Ask, World};
use crate::store::sidecars::{Redemption, SidecarFacts};

async fn enrolled(world: &World, token: &str) -> String {
    let redemption = Redemption {
        token_hash: crate::grpc::digest(token),
        sidecar_id: None,
        renewal_hash: [7; 32],
        agents: vec!["*".to_owned()],
        upstreams: vec!["*".to_owned()],
        facts: SidecarFacts {
            name: "beside-a".to_owned(),
            ..SidecarFacts::default()
        },
    };
    let store = &world.plane.core().store;
    store.redeem(redemption).await.unwrap().sidecar.id
}

#[tokio::test]
async fn a_join_token_is_shown_once_and_can_be_made_useless() {
    let world = World::new().await;
    let new = json!({"namespace": "prod", "agents": ["support-*"], "ttl": "2h", "uses": 3, "label": "ci"});
    let made = world.post("/sidecars/tokens", new).await.expect(201);
    assert_eq!(made["token"].as_str().unwrap().len(), 64);
    assert_eq!(
        (&made["agents"], &made["upstreams"]),
        (&json!(["support-*"]), &json!(["*"]))
    );
    assert_eq!(made["uses"], 3);
    let list = world.get("/sidecars/tokens").await;
    assert!(!list.text.contains(made["token"].as_str().unwrap()));
    assert_eq!(list.expect(200)[0]["id"], made["id"]);
    let id = made["id"].as_str().unwrap();
    world.delete(&format!("/sidecars/tokens/{id}")).await.expect(200);
    world.delete(&format!("/sidecars/tokens/{id}")).await.problem(404);
    assert_eq!(world.get("/sidecars/tokens").await.expect(200), json!([]));
    for body in [
        json!({"uses": 0}),
        json!({"ttl": "0"}),
        json!({"ttl": "9"}),
        json!({"agents": ["["]}),
    ] {
        world.post("/sidecars/tokens", body).await.problem(400);
    }
    let empty = Ask::new("POST", "/sidecars/tokens")
        .operator()
        .send(&world)
        .await
        .expect(201);
    assert_eq!(
        (&empty["uses"], &empty["namespace"]),
        (&json!(1), &json!("default"))
    );
    let traces = world.get("/traces?limit=100").await.text;
    assert!(!traces.contains(empty["token"].as_str().unwrap()));
    assert!(world.did("mesh.join_token_create", "operator").await);
    assert!(world.did("mesh.join_token_revoke", "operator").await);
}

#[tokio::test]
async fn a_sidecar_is_shown_and_revoked_for_good() {
    let world = World::new().await;
    let token = world.post("/sidecars/tokens", json!({})).await.expect(201);
    let id = enrolled(&world, token["token"].as_str().unwrap()).await;
    let list = world.get("/sidecars").await.expect(200);
    assert_eq!(
        (&list[0]["id"], &list[0]["name"]),
        (&json!(id), &json!("beside-a"))
    );
    assert_eq!(
        (&list[0]["connected"], &list[0]["epoch"]),
        (&json!(false), &json!(1))
    );
    let prefix = id.get(..8).unwrap();
    assert_eq!(
        world.get(&format!("/sidecars/{prefix}")).await.expect(200)["id"],
        id
    );
    let revoked = world.delete(&format!("/sidecars/{prefix}")).await.expect(200);
    assert_eq!(revoked["revoked_by"], "operator");
    world.get("/sidecars/ffffffffffff").await.problem(404);
    assert!(world.did("mesh.sidecar_revoke", "operator").await);
}

#[tokio::test]
async fn a_rollout_counts_sidecars_that_are_there() {
    let world = World::new().await;
    let latest = world.get("/rollouts/latest").await.expect(200);
    assert_eq!((&latest["complete"], &latest["of"]), (&json!(true), &json!(0)));
    let revision = latest["revision"].as_str().unwrap();
    assert_eq!(
        world.get(&format!("/rollouts/{revision}")).await.expect(200)["revision"],
        latest["revision"]
    );
    world.get("/rollouts/1.999999").await.problem(404);
    world.get("/rollouts/9.1").await.problem(404);
    for text in ["x", "1", "1.", "1.-1", "1.18446744073709551615"] {
        world.get(&format!("/rollouts/{text}")).await.problem(400);
    }
}

#[tokio::test]
async fn settings_change_field_by_field_and_lost_updates_are_refused() {
    let world = World::new().await;
    let before = world.get("/settings/fleet").await;
    let tag = before.header(http::header::ETAG).to_owned();
    assert_eq!(before.expect(200)["staleness_write_ms"], 180_000);
    let put = |body: &str| {
        Ask::new("PUT", "/settings/fleet")
            .operator()
            .body(body.to_owned())
    };
    let after = put(r#"{"staleness_write_ms": 60000}"#)
        .send(&world)
        .await
        .expect(200);
    assert_eq!(
        (&after["staleness_write_ms"], &after["staleness_read_ms"]),
        (&json!(60_000), &json!(900_000))
    );
    put(r#"{"pin_tools": true}"#)
        .with("if-match", &tag)
        .send(&world)
        .await
        .problem(412);
    for body in [
        r#"{"stalenes": 1}"#,
        r#"{"staleness_write_ms": "1"}"#,
        r#"{"staleness_write_ms": 0}"#,
        r#"{"staleness_write_ms": 1000000}"#,
        r#"{"approval_wait_ms": 60000}"#,
        r#"{"params": "some"}"#,
        r#"{"loop_others": 0}"#,
        r#"{"approval_max_pending": 0}"#,
        r#"{"staleness_write_ms": 1, "staleness_write_ms": 2}"#,
    ] {
        put(body).send(&world).await.problem(400);
    }
    assert!(world.did("mesh.settings", "operator").await);
}

#[tokio::test]
async fn a_new_generation_needs_a_reason_and_restarts_the_revisions() {
    let world = World::new().await;
    world.post("/generation", json!({})).await.problem(400);
    world
        .post("/generation", json!({"reason": " "}))
        .await
        .problem(400);
    let begun = world
        .post(
            "/generation",
            json!({"reason": "restored from a backup", "by": "dana"}),
        )
        .await;
    assert!(begun.expect(201)["revision"].as_str().unwrap().starts_with("2."));
    assert_eq!(world.get("/traces/verify").await.expect(200)["valid"], true);
    let summary = world.get("/health").await.expect(200);
    assert_eq!(summary["status"], "ok");
}
