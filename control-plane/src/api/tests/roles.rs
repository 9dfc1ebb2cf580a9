//! Which role opens which path, and what a personal token is.

use serde_json::{Value, json};

use super::{Ask, World};
use crate::api::paths;
use crate::api::table::{Entry, Scope};
use crate::auth::Role;

/// A token made by the operator.
pub(super) async fn token(world: &World, name: &str, role: Role, namespaces: &[&str]) -> String {
    let new = json!({"name": name, "role": role, "namespaces": namespaces});
    let made = world.post("/tokens", new).await.expect(201);
    made["token"].as_str().unwrap().to_owned()
}

/// A request of the path that reaches its handler, whatever that then says.
fn ask(entry: &Entry) -> Ask {
    let path = entry
        .path
        .replace("{revision}", "latest")
        .replace("{name}", "nothing")
        .replace("{tool}", "nothing.read")
        .replace("{id}", "0123456789");
    let query = if path == "/tools/decisions" {
        "?agent=a"
    } else {
        ""
    };
    Ask::new(entry.method, &format!("{path}{query}"))
}

#[tokio::test]
async fn every_path_is_opened_by_its_role_and_those_above_it_and_by_no_other() {
    let world = World::new().await;
    let mut tokens = Vec::new();
    for role in Role::ALL {
        tokens.push((role, token(&world, role.name(), role, &[]).await));
    }
    let table = paths();
    assert!(table.entries().len() > 50);
    for entry in table.entries() {
        for (role, token) in &tokens {
            let got = ask(entry).bearer(token).send(&world).await;
            let is_open = got.status != 403;
            assert_eq!(
                is_open,
                *role >= entry.role,
                "{} {} as {role}: {got:?}",
                entry.method,
                entry.path
            );
            assert!(
                got.status != 401 && !got.status.is_server_error(),
                "{} {}: {got:?}",
                entry.method,
                entry.path
            );
        }
        for stranger in ["agent:x", "tgo_0000", ""] {
            let got = ask(entry).bearer(stranger).send(&world).await;
            assert!(
                [401, 403].contains(&got.status.as_u16()),
                "{} {}: {got:?}",
                entry.method,
                entry.path
            );
        }
    }
}

/// What changes something says so by its method; reading by another method is named here.
#[test]
fn only_reading_is_open_to_viewers() {
    const READS: [&str; 4] = [
        "/policies/validate",
        "/traces/replay",
        "/tools/classify",
        "/tools/{tool}/extractor/test",
    ];
    let table = paths();
    for entry in table.entries() {
        let reads = entry.method == "GET" || READS.contains(&entry.path);
        let is_for_admins = ["/tokens", "/sidecars/tokens"].contains(&entry.path);
        assert_eq!(
            entry.role == Role::Viewer,
            reads && !is_for_admins,
            "{} {}",
            entry.method,
            entry.path
        );
    }
    let over_all: Vec<_> = table
        .entries()
        .iter()
        .filter(|entry| entry.scope == Scope::All)
        .collect();
    assert!(over_all.iter().any(|entry| entry.path == "/generation"));
}

/// A policy that allows everything in some namespaces.
pub(super) fn policy(name: &str, namespace: &str) -> String {
    format!(
        "name: {name}\nagent: \"*\"\nnamespace: \"{namespace}\"\nrules:\n  - tools: [\"*\"]\n    action: allow\n"
    )
}

#[tokio::test]
async fn what_a_token_does_is_kept_under_its_name_and_no_other() {
    let world = World::new().await;
    let token = token(&world, "ci", Role::Editor, &[]).await;
    let put = |body: Value| {
        Ask::new("PUT", "/policies/p")
            .bearer(&token)
            .body(body.to_string())
    };
    let text = policy("p", "*");
    put(json!({"text": text, "by": "somebody"}))
        .send(&world)
        .await
        .problem(403);
    put(json!({"text": text, "by": "ci"}))
        .send(&world)
        .await
        .expect(201);
    assert!(world.did("mesh.policy_edit", "ci").await);
    let text = policy("p", "*")
        .replace("rules", "kind: guardrail\nrules")
        .replace("allow", "deny");
    put(json!({"text": text})).send(&world).await.problem(403);
    world.put("/policies/p", &text).await.expect(200);
    put(json!({"text": policy("p", "*")}))
        .send(&world)
        .await
        .problem(403);
    let delete = Ask::new("DELETE", "/policies/p")
        .bearer(&token)
        .send(&world)
        .await;
    assert!(delete.problem(403).contains("admin"), "a guardrail is an admin's");
}

#[tokio::test]
async fn a_token_is_shown_once_and_opens_nothing_once_it_is_revoked_or_over() {
    let world = World::new().await;
    let new = json!({"name": "ci", "role": "viewer", "ttl": "1h"});
    let made = world.post("/tokens", new).await.expect(201);
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("tgo_") && token.len() == 68);
    let list = world.get("/tokens").await;
    assert!(!list.text.contains(token));
    assert_eq!(list.expect(200)[0]["name"], "ci");
    let opens = async |token: &str| {
        Ask::new("GET", "/policies")
            .bearer(token)
            .send(&world)
            .await
            .status
    };
    assert_eq!(opens(token).await, 200);
    let id = made["id"].as_str().unwrap();
    world
        .delete(&format!("/tokens/{}", id.get(..8).unwrap()))
        .await
        .expect(200);
    assert_eq!(opens(token).await, 401);
    world.delete(&format!("/tokens/{id}")).await.problem(404);
    assert_eq!(world.get("/tokens").await.expect(200), json!([]));
    assert!(
        world.did("mesh.token_create", "operator").await && world.did("mesh.token_revoke", "operator").await
    );
    assert!(!world.get("/traces?limit=100").await.text.contains(token));
    for (what, body) in [
        ("no role", json!({"name": "a"})),
        ("another role", json!({"name": "a", "role": "root"})),
        ("no name", json!({"name": " ", "role": "viewer"})),
        ("a name of ours", json!({"name": "system", "role": "viewer"})),
        (
            "too long",
            json!({"name": "a", "role": "viewer", "ttl": "10000d"}),
        ),
        ("no time", json!({"name": "a", "role": "viewer", "ttl": "0s"})),
        (
            "no namespace",
            json!({"name": "a", "role": "viewer", "namespaces": [""]}),
        ),
    ] {
        let got = world.post("/tokens", body).await;
        assert_eq!(got.status, 400, "{what}: {got:?}");
    }
}
