//! What an operator who is confined to a namespace sees and touches.

use serde_json::{Value, json};

use super::roles::{policy, token};
use super::{Ask, Got, World};
use crate::auth::Role;

/// Two namespaces with the same things in them, and an operator for one.
struct Divided {
    world: World,
    mine: String,
}

impl Divided {
    async fn new(role: Role) -> Self {
        let world = World::new().await;
        for namespace in ["mine", "theirs"] {
            let name = format!("policy-{namespace}");
            let put = world
                .put(&format!("/policies/{name}"), &policy(&name, namespace))
                .await;
            put.expect(201);
            world
                .post("/sidecars/tokens", json!({"namespace": namespace}))
                .await
                .expect(201);
            let grant = json!({"namespace": namespace, "agent": "a", "tools": "x.y", "duration": "1h"});
            world.post("/grants", grant).await.expect(201);
            let stop = json!({"scope": "agent:nobody", "namespace": namespace});
            world.post("/stops", stop).await.expect(201);
            world
                .post(
                    "/tokens",
                    json!({"name": namespace, "role": "viewer", "namespaces": [namespace]}),
                )
                .await
                .expect(201);
            world.asks_in(namespace, "agent", "bank.pay").await;
        }
        world
            .put("/policies/both", &policy("both", "*"))
            .await
            .expect(201);
        let mine = token(&world, "me", role, &["mine"]).await;
        Self { world, mine }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Got {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        Ask::new(method, path)
            .bearer(&self.mine)
            .body(body)
            .send(&self.world)
            .await
    }

    async fn get(&self, path: &str) -> Got {
        self.send("GET", path, Value::Null).await
    }

    /// The id of what the installation's operator sees there of the other namespace.
    async fn theirs(&self, path: &str) -> String {
        let all = self.world.get(path).await.expect(200);
        let is_theirs = |item: &&Value| item.to_string().contains("theirs");
        let item = all.as_array().unwrap().iter().find(is_theirs);
        item.unwrap()["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_confined_operator_sees_nothing_of_another_namespace() {
    let divided = Divided::new(Role::Admin).await;
    for path in [
        "/policies",
        "/approvals",
        "/grants",
        "/stops",
        "/traces",
        "/sidecars/tokens",
        "/tokens",
        "/traces?kind=act",
    ] {
        let got = divided.get(path).await;
        assert_eq!(got.status, 200, "{path}: {got:?}");
        assert!(!got.text.contains("theirs"), "{path}: {}", got.text);
        assert!(got.text.contains("mine"), "{path}: {}", got.text);
        assert!(
            divided.world.get(path).await.text.contains("theirs"),
            "{path} shows it to others"
        );
    }
    for path in [
        "/approvals",
        "/grants",
        "/traces",
        "/sessions",
        "/sidecars",
        "/tools",
        "/tools/pins",
        "/limits",
    ] {
        let named = divided.get(&format!("{path}?namespace=theirs")).await;
        assert_eq!(named.status, 403, "{path}: {named:?}");
        divided.get(&format!("{path}?namespace=mine")).await.expect(200);
        let twice = divided
            .get(&format!("{path}?namespace=mine&namespace=theirs"))
            .await;
        assert_eq!(twice.status, 400, "{path}: {twice:?}");
    }
    let approval = divided.theirs("/approvals").await;
    divided.get(&format!("/approvals/{approval}")).await.problem(404);
    let call = divided
        .world
        .get(&format!("/approvals/{approval}"))
        .await
        .expect(200);
    let call = call["call_id"].as_str().unwrap().to_owned();
    divided.get(&format!("/traces/{call}")).await.problem(404);
    for record in divided
        .world
        .get("/traces?kind=act&namespace=theirs")
        .await
        .expect(200)
        .as_array()
        .unwrap()
    {
        let id = record["id"].as_str().unwrap();
        divided.get(&format!("/traces/{id}")).await.problem(404);
        divided.get(&format!("/traces/{id}/why")).await.problem(404);
    }
    divided.get("/policies/policy-theirs").await.problem(404);
    divided.get("/policies/policy-theirs/versions").await.problem(404);
    divided.get("/policies/both").await.expect(200);
    for path in ["/traces/verify", "/traces/export"] {
        divided.get(path).await.problem(403);
    }
    let replay = json!({"documents": policy("policy-mine", "mine"), "records": {"namespace": "theirs"}});
    divided.send("POST", "/traces/replay", replay).await.problem(403);
}

#[tokio::test]
async fn a_confined_operator_touches_nothing_of_another_namespace() {
    let divided = Divided::new(Role::Admin).await;
    let theirs = async |path: &str| format!("{path}/{}", divided.theirs(path).await);
    let approval = theirs("/approvals").await;
    for (method, path) in [
        ("POST", format!("{approval}/approve")),
        ("POST", format!("{approval}/deny")),
        ("DELETE", theirs("/grants").await),
        ("DELETE", theirs("/stops").await),
        ("DELETE", theirs("/sidecars/tokens").await),
        ("DELETE", theirs("/tokens").await),
        ("DELETE", "/policies/policy-theirs".to_owned()),
    ] {
        divided.send(method, &path, Value::Null).await.problem(404);
    }
    for (method, path, body) in [
        (
            "POST",
            "/grants",
            json!({"namespace": "theirs", "agent": "a", "tools": "x.y", "duration": "1h"}),
        ),
        ("POST", "/stops", json!({"scope": "namespace:theirs"})),
        (
            "POST",
            "/stops",
            json!({"scope": "agent:a", "namespace": "theirs"}),
        ),
        ("POST", "/stops", json!({"scope": "all"})),
        ("POST", "/sidecars/tokens", json!({"namespace": "theirs"})),
        (
            "POST",
            "/tokens",
            json!({"name": "x", "role": "viewer", "namespaces": ["theirs"]}),
        ),
        (
            "POST",
            "/tokens",
            json!({"name": "x", "role": "viewer", "namespaces": ["mine", "theirs"]}),
        ),
        ("POST", "/generation", json!({"reason": "x"})),
        ("PUT", "/settings/fleet", json!({"pin_tools": true})),
        ("DELETE", "/limits?namespace=theirs", Value::Null),
        ("DELETE", "/policies/both", Value::Null),
        ("POST", "/policies/both/rollback", json!({"version": 1})),
        ("PUT", "/policies/agent/tools/x.y", json!({"action": "deny"})),
    ] {
        divided.send(method, path, body).await.problem(403);
    }
    for (name, namespace) in [
        ("policy-mine", "theirs"),
        ("policy-mine", "*"),
        ("both", "mine"),
        ("new", "*"),
        ("new", "min?"),
    ] {
        let body = json!({"text": policy(name, namespace)});
        divided
            .send("PUT", &format!("/policies/{name}"), body)
            .await
            .problem(403);
    }
    let held = divided.world.get("/approvals?namespace=theirs").await.expect(200);
    assert_eq!(held[0]["status"], "pending");
    assert_eq!(
        divided
            .world
            .get("/stops")
            .await
            .expect(200)
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn a_confined_operator_works_in_its_own_namespace_without_naming_it() {
    let divided = Divided::new(Role::Admin).await;
    let put = divided
        .send(
            "PUT",
            "/policies/policy-mine",
            json!({"text": policy("policy-mine", "mine").replace("allow", "deny")}),
        )
        .await;
    put.expect(200);
    let grant = json!({"agent": "b", "tools": "x.y", "duration": "1h"});
    let grant = divided.send("POST", "/grants", grant).await.expect(201);
    assert_eq!(grant["namespace"], "mine");
    let id = grant["id"].as_str().unwrap();
    divided
        .send("DELETE", &format!("/grants/{id}"), Value::Null)
        .await
        .expect(200);
    let stop = divided
        .send("POST", "/stops", json!({"scope": "agent:a"}))
        .await
        .expect(201);
    assert_eq!(stop["namespace"], "mine");
    let id = stop["id"].as_str().unwrap();
    divided
        .send("DELETE", &format!("/stops/{id}"), Value::Null)
        .await
        .expect(200);
    let approval = divided.get("/approvals").await.expect(200);
    let id = approval[0]["id"].as_str().unwrap();
    let answered = divided
        .send("POST", &format!("/approvals/{id}/approve"), json!({}))
        .await
        .expect(200);
    assert_eq!(answered["resolved_by"], "me");
    let made = divided
        .send("POST", "/tokens", json!({"name": "x", "role": "viewer"}))
        .await
        .expect(201);
    assert_eq!(made["namespaces"], json!(["mine"]));
    assert!(divided.world.did("mesh.approval_resolve", "me").await);
    assert!(divided.world.did("mesh.policy_edit", "me").await);
}
