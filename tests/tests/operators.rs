//! Operators of real control planes: personal tokens, an identity provider, and the switch that makes every local caller one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use net::token::testing::{SigningKey, TestProvider};
use reqwest::Method;
use serde_json::{Value, json};
use tests::fleet::{Fleet, SidecarOptions};
use tests::operator::Operator;
use tests::up::Up;
use tests::wait;

const POLICY: &str = "name: everybody\nagent: '*'\nrules:\n  - tools: ['*']\n    action: allow\n";
/// Long after every test, in Unix seconds.
const LATER: u64 = 4_000_000_000;

async fn status(operator: &Operator, method: Method, path: &str, body: Value) -> u16 {
    operator
        .try_send(operator.request(method, path).json(&body))
        .await
        .0
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_prove_who_they_are_at_every_replica_and_do_no_more_than_their_roles() {
    let key = SigningKey::ed25519("one");
    let provider = TestProvider::start(0, &[&key]).await;
    let extra = format!(
        "auth:\n  operators:\n    jwks_url: {}\n    issuer: https://id.example\n    audience: toolgate-operators\n    \
         roles:\n      - {{value: on-call, role: approver}}\n",
        provider.url()
    );
    let fleet = Fleet::on_postgres(2, &extra).await;
    let (one, two) = (fleet.operator_of(0), fleet.operator_of(1));

    // Made at one control plane, good at the other.
    let new = json!({"name": "ci", "role": "editor", "namespaces": ["team-a"]});
    let made = one.post("/tokens", new).await;
    let ci = two.with_token(made["token"].as_str().unwrap());
    let policy = json!({"text": POLICY.replace("rules", "namespace: team-a\nrules")});
    assert_eq!(status(&ci, Method::PUT, "/policies/everybody", policy).await, 201);
    assert_eq!(
        status(&ci, Method::PUT, "/policies/everybody", json!({"text": POLICY})).await,
        403
    );
    assert_eq!(
        status(&ci, Method::POST, "/generation", json!({"reason": "x"})).await,
        403
    );
    assert_eq!(
        status(&ci, Method::GET, "/sidecars?namespace=team-b", json!({})).await,
        403
    );

    // A person by the provider's token, known at both.
    let claims = |audience: &str| json!({"iss": "https://id.example", "aud": audience, "exp": LATER, "sub": "ada", "roles": ["on-call"]});
    for operator in [&one, &two] {
        let ada = operator.with_token(&key.token(&claims("toolgate-operators")));
        wait::until("the provider's keys are known", || async {
            (status(&ada, Method::GET, "/policies", json!({})).await == 200).then_some(())
        })
        .await;
        let agent = operator.with_token(&key.token(&claims("toolgate")));
        assert_eq!(
            status(&agent, Method::GET, "/policies", json!({})).await,
            401,
            "an agent's audience"
        );
    }
    let ada = two.with_token(&key.token(&claims("toolgate-operators")));
    let stop = ada.post("/stops", json!({"scope": "agent:mad"})).await;
    assert_eq!(stop["by"], "ada");
    let path = format!("/stops/{}", stop["id"].as_str().unwrap());
    assert_eq!(
        status(&ada, Method::DELETE, &path, json!({})).await,
        403,
        "lifting is an admin's"
    );
    assert_eq!(
        status(&ada, Method::POST, "/stops", json!({"scope": "all", "by": "bob"})).await,
        403
    );

    // The chain says who it was and how that was proven.
    let acts = one.get("/traces?kind=act&limit=100").await;
    let by = |tool: &str, user: &str| {
        let mut acts = acts.as_array().unwrap().iter();
        acts.any(|act| act["tool"] == tool && act["user_id"] == user)
    };
    assert!(by("mesh.policy_edit", "ci") && by("mesh.stop", "ada") && by("mesh.token_create", "operator"));
    let text = acts.to_string();
    assert!(text.contains("ada by https://id.example") && !text.contains(made["token"].as_str().unwrap()));

    // Revoked at one, it opens nothing at the other.
    one.delete(&format!("/tokens/{}", made["id"].as_str().unwrap()))
        .await;
    assert_eq!(status(&ci, Method::GET, "/policies", json!({})).await, 401);

    // Neither a sidecar's credential nor an agent's opens anything.
    let sidecar = fleet.sidecar(&SidecarOptions::named("s")).await;
    let kept = std::fs::read_dir(sidecar.folder.join("spool")).unwrap();
    for file in kept.filter_map(Result::ok).filter(|file| file.path().is_file()) {
        let text = String::from_utf8_lossy(&std::fs::read(file.path()).unwrap()).into_owned();
        for word in text.split('"').filter(|word| word.starts_with("tgs1.")) {
            let stolen = one.with_token(word);
            assert_eq!(status(&stolen, Method::GET, "/policies", json!({})).await, 401);
        }
    }
    let agent = one.with_token("agent:ada");
    assert_eq!(status(&agent, Method::GET, "/policies", json!({})).await, 403);
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipelines_token_is_made_used_and_revoked_by_commands() {
    let up = Up::start("policies: []\n").await;
    let made = up
        .toolgate(&[
            "token", "create", "--name", "ci", "--role", "viewer", "--ttl", "1h",
        ])
        .await;
    assert_eq!(made.code, 0, "{made:?}");
    let token = made.stdout.trim();
    assert_eq!(up.toolgate(&["--token", token, "policy", "list"]).await.code, 0);
    assert_eq!(
        up.toolgate(&["--token", token, "tools", "list"]).await.code,
        0,
        "a path that agents have too"
    );
    let refused = up
        .toolgate(&["--token", token, "stop", "all", "--reason", "x"])
        .await;
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("this needs the role approver; the credential has viewer"),
        "{refused:?}"
    );
    let ask = async |token: &str| {
        let arguments = [
            "--token",
            token,
            "decide",
            "fixture.get_item",
            "--agent",
            "billing",
        ];
        up.toolgate(&arguments).await
    };
    let refused = ask(token).await;
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.stderr.contains("this needs the role approver"),
        "{refused:?}"
    );
    let made = up
        .toolgate(&["token", "create", "--name", "call", "--role", "approver"])
        .await;
    let asked = ask(made.stdout.trim()).await;
    assert_eq!(asked.code, 1, "no policy allows it: {asked:?}");
    assert!(asked.stdout.contains("deny"), "{asked:?}");
    let unknown = ask("tgo_unknown").await;
    assert_eq!(unknown.code, 4, "{unknown:?}");
    let listed = up.json(&["token", "list"]).await;
    let listed = listed.as_array().unwrap();
    let ci = listed.iter().find(|token| token["name"] == "ci").unwrap();
    assert_eq!(ci["role"], "viewer");
    assert!(!json!(listed).to_string().contains(token));
    let id = ci["id"].as_str().unwrap();
    assert_eq!(up.toolgate(&["token", "revoke", id]).await.code, 0);
    assert_eq!(up.toolgate(&["--token", token, "policy", "list"]).await.code, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_start_warns_that_local_callers_are_operators() {
    let mut up = Up::start("auth:\n  loopback_operators: true\npolicies: []\n").await;
    let warnings = |up: &Up| up.process.log().matches("auth.loopback_operators is on").count();
    assert_eq!(warnings(&up), 1);
    let operator = up.operator();
    let (status, _) = operator
        .try_send(operator.anonymous(Method::GET, "/policies"))
        .await;
    assert_eq!(status, 200);
    let forwarded = operator
        .anonymous(Method::GET, "/policies")
        .header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(
        operator.try_send(forwarded).await.0,
        200,
        "a header says nothing of the caller"
    );
    up.restart().await;
    up.ready().await;
    assert_eq!(warnings(&up), 2);
}
