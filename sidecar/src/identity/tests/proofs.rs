//! Callers who prove who they are: by tokens of an identity provider, of the cluster, and by certificates.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use net::clock::Clock;
use net::serve::PeerCertificates;
use net::token::TokenError;
use net::token::testing::{SigningKey, TestProvider, unsigned};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;

/// Where a manual clock begins.
const NOW: i64 = 1_767_225_600;
const ISSUER: &str = "https://issuer.example";
const CLUSTER: &str = "https://cluster.example";

/// Entrances whose callers are proven by one provider, which stands for the cluster too.
struct Rig {
    key: SigningKey,
    provider: TestProvider,
    identities: Identities,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Rig {
    /// `more` is appended to `auth`.
    async fn start(identities: Identities, more: &str) -> Self {
        let key = SigningKey::p256("k");
        let provider = TestProvider::start(0, &[&key]).await;
        let url = provider.url();
        let yaml = format!(
            "auth:\n  jwt: {{jwks_url: '{url}', issuer: '{ISSUER}', audience: toolgate, agent_claim: act.sub, user_claim: sub}}\n  \
             service_accounts: {{jwks_url: '{url}', issuer: '{CLUSTER}'}}\n{more}"
        );
        let config = config::Config::parse("c.yaml", &yaml, &config::Environment::default()).unwrap();
        let (identities, fetchers) = identities
            .configured(&config.auth, None, &Clock::manual())
            .unwrap();
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        for fetcher in fetchers {
            tasks.spawn(fetcher.run(stop.clone()));
        }
        tasks.close();
        Self {
            key,
            provider,
            identities,
            stop,
            tasks,
        }
    }

    async fn resolve(&self, credentials: &[&str]) -> Result<Identity, IdentityError> {
        resolve(&self.identities, credentials).await
    }

    async fn token(&self, claims: &Value) -> Result<Identity, IdentityError> {
        self.resolve(&[&format!("Bearer {}", self.key.token(claims))])
            .await
    }

    async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
        self.provider.stop().await;
    }
}

fn person(agent: Value) -> Value {
    json!({"iss": ISSUER, "aud": ["toolgate"], "exp": NOW + 60, "sub": "ann", "act": {"sub": agent}})
}

fn account(subject: Value) -> Value {
    json!({"iss": CLUSTER, "aud": ["toolgate-agent"], "exp": NOW + 60, "sub": subject})
}

#[tokio::test]
async fn a_token_names_the_agent_and_the_human_it_acts_for() {
    let rig = Rig::start(Identities::new(None, true), "").await;
    let identity = rig.token(&person(json!("billing"))).await.unwrap();
    assert_eq!(identity.agent.as_str(), "billing");
    assert_eq!(identity.user.unwrap().as_str(), "ann");
    assert_eq!(identity.strength, Strength::Verified);

    let mut alone = person(json!("billing"));
    alone.as_object_mut().unwrap().remove("sub");
    assert_eq!(rig.token(&alone).await.unwrap().user, None);
    for wrong in [
        json!(null),
        json!(""),
        json!(["billing"]),
        json!("anonymous"),
        json!("a\nb"),
        json!("x".repeat(300)),
    ] {
        let refused = rig.token(&person(wrong.clone())).await.unwrap_err();
        assert_eq!(refused.status(), 401, "{wrong}: {refused}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_pods_service_account_is_an_agent_and_nothing_else_of_the_cluster_is() {
    let agents = "  agents: {'system:serviceaccount:prod:billing': billing}\n";
    let rig = Rig::start(Identities::new(None, true), agents).await;
    let named = rig
        .token(&account(json!("system:serviceaccount:prod:billing")))
        .await
        .unwrap();
    assert_eq!(
        (named.agent.as_str(), named.strength),
        ("billing", Strength::Verified)
    );
    let own = rig
        .token(&account(json!("system:serviceaccount:prod:mail")))
        .await
        .unwrap();
    assert_eq!(own.agent.as_str(), "system:serviceaccount:prod:mail");
    for wrong in [
        "system:node:worker",
        "system:serviceaccount:prod",
        "system:serviceaccount::x",
        "billing",
        "system:serviceaccount:a:b:c",
    ] {
        let refused = rig.token(&account(json!(wrong))).await.unwrap_err();
        assert_eq!(refused, IdentityError::NotAServiceAccount, "{wrong}");
    }
    // The audience that sidecars enrol with is another one.
    let mut enrolling = account(json!("system:serviceaccount:prod:mail"));
    enrolling["aud"] = json!(["toolgate"]);
    assert_eq!(
        rig.token(&enrolling).await.unwrap_err(),
        IdentityError::Token(TokenError::Audience)
    );
    rig.stop().await;
}

#[tokio::test]
async fn where_agents_prove_who_they_are_a_plain_name_is_refused() {
    let rig = Rig::start(Identities::new(None, false), "").await;
    assert_eq!(
        rig.resolve(&["Bearer agent:billing"]).await,
        Err(IdentityError::Plain)
    );
    assert_eq!(rig.resolve(&[]).await.unwrap().strength, Strength::Anonymous);
    let unsigned = unsigned(&json!({"alg": "none"}), &person(json!("billing")));
    assert_eq!(
        rig.resolve(&[&format!("Bearer {unsigned}")]).await,
        Err(IdentityError::Token(TokenError::Algorithm))
    );
    rig.stop().await;
}

#[tokio::test]
async fn a_plain_name_beside_tokens_is_taken_where_every_issuer_allows_it() {
    let key = SigningKey::p256("k");
    let provider = TestProvider::start(0, &[&key]).await;
    let yaml = format!(
        "auth: {{jwt: {{jwks_url: '{}', issuer: i, audience: a, allow_legacy: true}}}}",
        provider.url()
    );
    let config = config::Config::parse("c.yaml", &yaml, &config::Environment::default()).unwrap();
    let (identities, _) = Identities::new(None, true)
        .configured(&config.auth, None, &Clock::manual())
        .unwrap();
    let identity = resolve(&identities, &["Bearer agent:billing"]).await.unwrap();
    assert_eq!(identity.strength, Strength::Asserted);
    provider.stop().await;
}

#[tokio::test]
async fn an_entrance_of_one_agent_takes_only_proofs_of_that_agent() {
    let rig = Rig::start(Identities::new(Some("billing".parse().unwrap()), true), "").await;
    let proven = rig.token(&person(json!("billing"))).await.unwrap();
    assert_eq!(
        (proven.strength, proven.user.unwrap().as_str()),
        (Strength::Verified, "ann")
    );
    assert!(matches!(
        rig.token(&person(json!("mail"))).await,
        Err(IdentityError::Bound { .. })
    ));
    assert_eq!(rig.resolve(&[]).await.unwrap().strength, Strength::Bound);
    rig.stop().await;
}

fn certificates(name: &str) -> PeerCertificates {
    let made = net::tls::self_signed(&[name], Duration::from_secs(60)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (_, files) = made.write(folder.path()).unwrap();
    let pem = std::fs::read(files.cert_file).unwrap();
    let leaf =
        <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice(&pem)
            .unwrap();
    PeerCertificates(Arc::from(vec![leaf]))
}

#[tokio::test]
async fn a_client_certificate_names_the_agent() {
    let agents: BTreeMap<_, _> = [("billing.example".to_owned(), "billing".parse().unwrap())].into();
    let identities = Identities::new(None, true).with_proofs(Proofs::new(None, Vec::new(), agents), false);
    let resolve = async |name: &str, credentials: &[&str]| {
        identities
            .resolve(&headers(credentials), Some(&certificates(name)), &scope(&["*"]))
            .await
    };
    let mapped = resolve("billing.example", &[]).await.unwrap();
    assert_eq!(
        (mapped.agent.as_str(), mapped.strength),
        ("billing", Strength::Verified)
    );
    assert_eq!(
        resolve("mail.example", &[]).await.unwrap().agent.as_str(),
        "mail.example"
    );
    let same = resolve("billing.example", &["Bearer agent:billing"])
        .await
        .unwrap();
    assert_eq!(same.strength, Strength::Verified);
    assert_eq!(
        resolve("billing.example", &["Bearer agent:mail"]).await,
        Err(IdentityError::OtherCertificate)
    );
    // An address is no name of a holder.
    assert!(matches!(
        resolve("127.0.0.1", &[]).await,
        Err(IdentityError::Certificate(_))
    ));
}

#[tokio::test]
async fn before_the_first_keys_nobody_can_be_judged() {
    let yaml = "auth: {jwt: {jwks_url: 'http://127.0.0.1:9/', issuer: i, audience: a}}";
    let config = config::Config::parse("c.yaml", yaml, &config::Environment::default()).unwrap();
    let (identities, fetchers) = Identities::new(None, true)
        .configured(&config.auth, None, &Clock::manual())
        .unwrap();
    drop(fetchers);
    let token = SigningKey::p256("k").token(&json!({"iss": "i", "aud": "a", "exp": NOW + 60, "sub": "x"}));
    let refused = resolve(&identities, &[&format!("Bearer {token}")])
        .await
        .unwrap_err();
    assert_eq!(refused.status(), 503, "{refused}");
    assert!(!refused.refuses_a_credential());
    assert_eq!(identities.proofs().missing_keys().len(), 1);
}

#[test]
fn a_key_set_at_an_address_that_no_request_may_reach_is_an_error_at_the_start() {
    for url in [
        "http://169.254.169.254/jwks",
        "http://metadata.google.internal/jwks",
        "https://[fd00:ec2::254]/",
    ] {
        let yaml = format!("auth: {{jwt: {{jwks_url: '{url}', issuer: i, audience: a}}}}");
        let config = config::Config::parse("c.yaml", &yaml, &config::Environment::default()).unwrap();
        let refused = Identities::new(None, false)
            .configured(&config.auth, None, &Clock::manual())
            .unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("auth.jwt.jwks_url cannot be used"),
            "{refused}"
        );
    }
}
