//! Operators by tokens of an identity provider.

use net::token::KeySource;
use net::token::testing::{SigningKey, TestProvider};
use serde_json::{Value, json};

use super::{Ask, World};
use crate::auth::{IssuerOptions, Reach, Right, Role};

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "toolgate-operators";
/// Long after every test, in Unix seconds.
const LATER: u64 = 4_000_000_000;

struct Provided {
    world: World,
    provider: TestProvider,
    key: SigningKey,
}

fn right(value: &str, role: Role, namespaces: &[&str]) -> (String, Right) {
    let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
    let reach = Reach::of(&namespaces);
    (value.to_owned(), Right { role, reach })
}

impl Provided {
    async fn new() -> Self {
        let key = SigningKey::p256("first");
        let provider = TestProvider::start(0, &[&key]).await;
        let issuer = IssuerOptions {
            keys: KeySource {
                url: provider.url(),
                ca_file: None,
                token_file: None,
                proxy: None,
            },
            issuer: ISSUER.to_owned(),
            audience: AUDIENCE.to_owned(),
            name_claim: "email".to_owned(),
            role_claim: "realm.groups".to_owned(),
            roles: vec![
                right("platform", Role::Admin, &[]),
                right("everybody", Role::Viewer, &[]),
                right("team-a", Role::Editor, &["a"]),
                right("team-b", Role::Editor, &["b"]),
            ],
        };
        let world = World::of(|options| options.issuer = Some(issuer)).await;
        let provided = Self { world, provider, key };
        let token = provided.token(&json!(["everybody"]));
        // The keys are fetched in the background.
        while provided.get("/policies", &token).await == 503 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        provided
    }

    fn claims(groups: &Value) -> Value {
        json!({
            "iss": ISSUER, "aud": AUDIENCE, "exp": LATER, "sub": "1", "email": "ada@id.example",
            "realm": {"groups": groups},
        })
    }

    fn token(&self, groups: &Value) -> String {
        self.key.token(&Self::claims(groups))
    }

    async fn get(&self, path: &str, token: &str) -> u16 {
        let got = Ask::new("GET", path).bearer(token).send(&self.world).await;
        got.status.as_u16()
    }
}

#[tokio::test]
async fn a_providers_token_gives_the_roles_of_its_groups_and_acts_bear_its_name() {
    let provided = Provided::new().await;
    let world = &provided.world;
    let policy = |namespace: &str| {
        format!(
            "name: p-{namespace}\nagent: \"*\"\nnamespace: {namespace}\nrules:\n  - tools: [\"*\"]\n    action: deny\n"
        )
    };
    let put = async |groups: Value, namespace: &str| {
        let ask = Ask::new("PUT", &format!("/policies/p-{namespace}")).bearer(&provided.token(&groups));
        let body = json!({"text": policy(namespace)});
        ask.body(body.to_string()).send(world).await.status.as_u16()
    };
    assert_eq!(put(json!("everybody"), "a").await, 403);
    assert_eq!(put(json!(["everybody", "team-b"]), "a").await, 403);
    assert_eq!(put(json!(["everybody", "team-a"]), "a").await, 201);
    assert_eq!(put(json!(["team-a", "team-b"]), "b").await, 201);
    assert_eq!(put(json!(["platform"]), "c").await, 201);
    assert!(world.did("mesh.policy_edit", "ada@id.example").await);
    for groups in [
        json!([]),
        json!(["nobody"]),
        json!(7),
        json!({"platform": true}),
        Value::Null,
        json!("platform everybody"),
    ] {
        assert_eq!(
            provided.get("/policies", &provided.token(&groups)).await,
            403,
            "{groups}"
        );
    }
    for name in [
        "system",
        "Operator",
        "configuration",
        "serviceaccount:prod:x",
        "join token 1",
    ] {
        let mut claims = Provided::claims(&json!(["platform"]));
        claims["email"] = json!(name);
        let token = provided.key.token(&claims);
        assert_eq!(provided.get("/policies", &token).await, 403, "{name}");
    }
    let both = provided.token(&json!(["everybody", "team-a"]));
    assert_eq!(
        provided.get("/policies/p-c", &both).await,
        200,
        "a viewer everywhere"
    );
    assert_eq!(provided.get("/traces/export", &both).await, 200);
    let own = provided.token(&json!(["team-a"]));
    assert_eq!(
        provided.get("/policies/p-c", &own).await,
        404,
        "an editor of one namespace"
    );
    let named = Ask::new("POST", "/generation").bearer(&provided.token(&json!(["platform"])));
    named
        .body(r#"{"reason":"x","by":"somebody"}"#)
        .send(world)
        .await
        .problem(403);
}

#[tokio::test]
async fn a_token_that_proves_nothing_here_is_refused() {
    let provided = Provided::new().await;
    let groups = json!(["platform"]);
    let with = |name: &str, value: Value| {
        let mut claims = Provided::claims(&groups);
        claims[name] = value;
        claims
    };
    let other = SigningKey::p256("first");
    let header = json!({"alg": "none", "kid": "first"});
    let confused = json!({"alg": "HS256", "kid": "first"});
    for (what, token) in [
        ("for agents", provided.key.token(&with("aud", json!("toolgate")))),
        (
            "of another issuer",
            provided.key.token(&with("iss", json!("https://other.example"))),
        ),
        ("over", provided.key.token(&with("exp", json!(1_000)))),
        ("not yet", provided.key.token(&with("nbf", json!(LATER)))),
        ("without a name", provided.key.token(&with("email", json!("")))),
        (
            "with a name of control characters",
            provided.key.token(&with("email", json!("a\nb"))),
        ),
        ("by another key", other.token(&Provided::claims(&groups))),
        (
            "unsigned",
            net::token::testing::unsigned(&header, &Provided::claims(&groups)),
        ),
        (
            "by a public key",
            net::token::testing::hmac(
                &confused,
                &Provided::claims(&groups),
                &provided.key.public_bytes(),
            ),
        ),
        (
            "too long",
            format!("{}.{}.x", "a".repeat(100_000), "b".repeat(100_000)),
        ),
        ("no token", "a.b.c".to_owned()),
    ] {
        assert_eq!(provided.get("/policies", &token).await, 401, "{what}");
    }
    assert_eq!(provided.get("/policies", &provided.token(&groups)).await, 200);
    assert_eq!(
        provided.get("/policies", super::TOKEN).await,
        200,
        "the installation's token goes on"
    );
    provided.provider.stop().await;
}
