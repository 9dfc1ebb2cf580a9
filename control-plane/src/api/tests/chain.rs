//! The chain over REST.

use chain::checkpoint::PublicKeys;
use chain::verify::{Options, Verifier, verify_lines};
use serde_json::{Value, json};

use super::{Ask, World};

async fn acts(world: &World, count: usize) {
    for number in 0..count {
        let grant = json!({"agent": format!("a{number}"), "tools": "x.y", "duration": "1m"});
        world.post("/grants", grant).await.expect(201);
    }
}

/// Waits until a checkpoint covers everything that is in the chain.
async fn covered(world: &World) {
    loop {
        let head = world.get("/traces?limit=1").await.expect(200)[0]["seq"].clone();
        let checkpoints = world.get("/traces/checkpoints").await.expect(200);
        if checkpoints[0]["seq"].as_u64() >= head.as_u64() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn keys(world: &World) -> PublicKeys {
    let ask = Ask::new("GET", "/traces/keys")
        .operator()
        .with("accept", "text/plain");
    PublicKeys::from_text(&ask.send(world).await.text).unwrap()
}

async fn verify_export(world: &World, path: &str) -> chain::verify::Report {
    let export = world.get(path).await;
    assert_eq!(export.status, 200, "{export:?}");
    let options = Options {
        public_keys: keys(world).await,
        ..Options::default()
    };
    verify_lines(export.text.as_bytes(), Verifier::new(options), |_| {}).unwrap()
}

#[tokio::test]
async fn the_chain_verifies_after_what_operators_did() {
    let world = World::new().await;
    acts(&world, 5).await;
    covered(&world).await;
    let answer = world.get("/traces/verify").await.expect(200);
    assert_eq!(answer["valid"], true, "{answer}");
    assert_eq!(answer["checked"], answer["head"]["seq"]);
    assert!(answer["checked"].as_u64().unwrap() >= 6);
    assert!(answer["checkpoints"].as_u64().unwrap() >= 1);
    assert_eq!(answer["head"]["hash"].as_str().unwrap().len(), 64);
    assert!(answer.get("first_bad").is_none());
}

#[tokio::test]
async fn an_export_verifies_without_the_server() {
    let world = World::new().await;
    acts(&world, 150).await;
    covered(&world).await;
    let report = verify_export(&world, "/traces/export").await;
    assert!(report.is_intact(), "{report:?}");
    assert!(
        report.records > 150 && report.signatures >= 1 && report.signatures_unchecked == 0,
        "{report:?}"
    );
    assert_eq!(report.payloads, report.records);
}

#[tokio::test]
async fn a_part_begins_at_the_checkpoint_before_and_verifies_by_itself() {
    let world = World::new().await;
    acts(&world, 5).await;
    covered(&world).await;
    let first = world.get("/traces/checkpoints").await.expect(200)[0]["seq"]
        .as_u64()
        .unwrap();
    acts(&world, 5).await;
    covered(&world).await;
    let report = verify_export(
        &world,
        &format!("/traces/export?from={}&until={}", first + 1, first + 3),
    )
    .await;
    assert!(report.is_intact(), "{report:?}");
    assert!(
        report.start.is_some() && (3..=5).contains(&report.records),
        "{report:?}"
    );
    assert_eq!(report.last.unwrap().seq, first + 3);
    world.get("/traces/export?from=x").await.problem(400);
    world
        .get("/traces/export?from=18446744073709551615")
        .await
        .problem(400);
}

#[tokio::test]
async fn an_altered_export_does_not_verify() {
    let world = World::new().await;
    acts(&world, 5).await;
    covered(&world).await;
    let text = world
        .get("/traces/export")
        .await
        .text
        .replacen("mesh.grant_create", "mesh.grant_revoke", 1);
    let report = verify_lines(text.as_bytes(), Verifier::new(Options::default()), |_| {}).unwrap();
    assert!(!report.is_intact());
}

#[tokio::test]
async fn records_are_listed_page_by_page_and_filtered() {
    let world = World::new().await;
    acts(&world, 7).await;
    let mut seen: Vec<u64> = Vec::new();
    let mut path = "/traces?limit=3&tool=mesh.grant_*".to_owned();
    loop {
        let page = world.get(&path).await;
        let link = page.header(http::header::LINK).to_owned();
        let page = page.expect(200);
        seen.extend(
            page.as_array()
                .unwrap()
                .iter()
                .map(|record| record["seq"].as_u64().unwrap()),
        );
        match link.split(['<', '>']).nth(1) {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen.len(), 7);
    assert!(seen.is_sorted_by(|newer, older| newer > older), "{seen:?}");
    let of_agent = world.get("/traces?agent=a3").await.expect(200);
    assert_eq!(of_agent.as_array().unwrap().len(), 1);
    assert_eq!(
        world.get("/traces?until=1999-01-01T00:00:00Z").await.expect(200),
        json!([])
    );
    for query in [
        "limit=0",
        "limit=x",
        "cursor=x",
        "since=yesterday",
        "tool=%5B",
        "sort=up",
        "text=x",
    ] {
        world.get(&format!("/traces?{query}")).await.problem(400);
    }
}

#[tokio::test]
async fn a_record_has_the_names_that_clients_read() {
    let world = World::new().await;
    acts(&world, 1).await;
    let record = world.get("/traces?limit=1").await.expect(200)[0].clone();
    for name in [
        "trace_id",
        "session_id",
        "agent_id",
        "tool",
        "params",
        "policy",
        "policy_rule",
        "status_code",
        "latency_ms",
        "timestamp",
        "id",
        "seq",
        "generation",
        "outcome",
        "kind",
        "hash",
    ] {
        assert!(record.get(name).is_some(), "{name}: {record}");
    }
    let id = record["id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/traces/{id}")).await.expect(200), record);
    world.get("/traces/ffff").await.problem(404);
}

#[tokio::test]
async fn keys_checkpoints_gaps_and_sessions_are_shown() {
    let world = World::new().await;
    acts(&world, 1).await;
    covered(&world).await;
    let keys = world.get("/traces/keys").await.expect(200);
    let checkpoint = keys
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["purpose"] == "checkpoint")
        .unwrap();
    assert!(
        checkpoint["pem"]
            .as_str()
            .unwrap()
            .starts_with("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA")
    );
    let ask = Ask::new("GET", "/traces/checkpoints")
        .operator()
        .with("accept", "application/jsonl");
    let lines = ask.send(&world).await.text;
    let signed: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let signed: chain::checkpoint::SignedCheckpoint = serde_json::from_value(signed).unwrap();
    self::keys(&world).await.verify(&signed).unwrap();
    assert_eq!(world.get("/traces/gaps").await.expect(200), json!([]));
    assert_eq!(world.get("/sessions").await.expect(200), json!([]));
    world.get("/sessions/s").await.problem(404);
}
