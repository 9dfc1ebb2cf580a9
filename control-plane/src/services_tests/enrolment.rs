//! What a sidecar gets when it comes back, and when it proves itself by its pod's token.

use net::clock::Clock;
use net::token::KeySource;
use net::token::testing::{SigningKey, TestProvider};
use proto::v1::enrol_request::Proof;
use serde_json::{Value, json};
use tonic::Code;

use super::plane::Plane;
use crate::auth::AccountOptions;
use crate::store::sidecars::{SidecarHeartbeat, SidecarReport};

#[tokio::test]
async fn a_later_process_may_ask_for_all_that_the_join_token_allows() {
    let plane = Plane::start().await;
    let token = plane.join_token("default", &["team-*"]).await;
    let first = plane
        .enrol_for(Proof::JoinToken(token), &["team-a"], &["notes"])
        .await
        .unwrap();
    assert_eq!(first.answer.upstreams, ["notes"]);
    let next = plane
        .enrol_for(first.resumption(""), &["team-a", "team-b"], &["notes", "mail"])
        .await
        .unwrap();
    assert_eq!(next.answer.sidecar_id, first.answer.sidecar_id);
    assert_eq!(next.answer.agents, ["team-a", "team-b"]);
    assert_eq!(next.answer.upstreams, ["notes", "mail"]);
    let all = plane.enrol_by(next.resumption("")).await.unwrap();
    assert_eq!(all.answer.agents, ["team-*"]);
    let refused = plane.enrol_for(all.resumption(""), &["other"], &[]).await;
    assert_eq!(refused.err().unwrap().code(), Code::PermissionDenied);
}

#[tokio::test]
async fn a_wider_join_token_widens_a_sidecar_that_is_known() {
    let plane = Plane::start().await;
    let first = plane.enrol("default", &["team-a"]).await;
    let foreign = plane.join_token("elsewhere", &["*"]).await;
    let narrow = plane.join_token("default", &["team-b"]).await;
    for useless in ["unknown", &foreign, &narrow] {
        let refused = plane
            .enrol_for(first.resumption(useless), &["team-a", "team-b"], &[])
            .await;
        assert_eq!(refused.err().unwrap().code(), Code::PermissionDenied, "{useless}");
    }
    let wide = plane.join_token("default", &["team-*"]).await;
    let next = plane
        .enrol_for(first.resumption(&wide), &["team-a", "team-b"], &[])
        .await
        .unwrap();
    assert_eq!(next.answer.sidecar_id, first.answer.sidecar_id);
    assert_eq!(next.answer.agents, ["team-a", "team-b"]);
    let later = plane.enrol_by(next.resumption("")).await.unwrap();
    assert_eq!(later.answer.agents, ["team-*"]);
}

const POD: &str = "6f0f4c1a-1f65-4b0e-9a0f-6f2f4c7f7d8e";

/// The claims of a token that is projected into a pod.
fn projected(account: &str, pod: &str) -> Value {
    let exp = Clock::machine().wall_micros() / 1_000_000 + 600;
    json!({
        "iss": "https://cluster.example", "aud": ["toolgate"], "exp": exp, "sub": account,
        "kubernetes.io": {"namespace": "prod", "pod": {"name": "billing-1", "uid": pod}},
    })
}

#[tokio::test]
async fn a_pods_projected_token_enrols_its_sidecar_in_the_pods_namespace() {
    let (key, foreign) = (SigningKey::p256("k"), SigningKey::p256("k"));
    let provider = TestProvider::start(0, &[&key]).await;
    let keys = KeySource {
        url: provider.url(),
        ca_file: None,
        token_file: None,
        proxy: None,
    };
    let plane = Plane::start_with(|options| {
        options.accounts = Some(AccountOptions {
            issuer: "https://cluster.example".to_owned(),
            audience: "toolgate".to_owned(),
            keys,
            accounts: vec!["prod:*".parse().unwrap()],
            agents: vec!["team-*".to_owned()],
        });
    })
    .await;
    let account = "system:serviceaccount:prod:billing";
    let with = |name: &str, value: Value| {
        let mut claims = projected(account, POD);
        claims[name] = value;
        key.token(&claims)
    };
    for (case, token, expected) in [
        (
            "a foreign key",
            foreign.token(&projected(account, POD)),
            Code::Unauthenticated,
        ),
        (
            "the audience of agents",
            with("aud", json!("toolgate-agent")),
            Code::Unauthenticated,
        ),
        ("expired", with("exp", json!(1)), Code::Unauthenticated),
        (
            "no pod",
            with("kubernetes.io", json!({"namespace": "prod"})),
            Code::Unauthenticated,
        ),
        (
            "an odd pod",
            key.token(&projected(account, "../x")),
            Code::Unauthenticated,
        ),
        (
            "no account",
            key.token(&projected("system:node:a", POD)),
            Code::Unauthenticated,
        ),
        (
            "another account",
            key.token(&projected("system:serviceaccount:dev:x", POD)),
            Code::PermissionDenied,
        ),
        ("no token", "x".to_owned(), Code::Unauthenticated),
    ] {
        let refused = plane.enrol_by(Proof::ServiceAccountToken(token)).await;
        assert_eq!(refused.err().unwrap().code(), expected, "{case}");
    }
    let token = key.token(&projected(account, POD));
    let wide = plane
        .enrol_for(Proof::ServiceAccountToken(token.clone()), &["*"], &[])
        .await;
    assert_eq!(wide.err().unwrap().code(), Code::PermissionDenied);

    let enrolled = plane
        .enrol_by(Proof::ServiceAccountToken(token.clone()))
        .await
        .unwrap();
    assert_eq!(enrolled.answer.sidecar_id, POD);
    assert_eq!(
        (enrolled.answer.namespace.as_str(), &enrolled.answer.agents),
        ("prod", &vec!["team-*".to_owned()])
    );
    // The answer was lost: nobody has heard of the sidecar yet.
    let again = plane
        .enrol_by(Proof::ServiceAccountToken(token.clone()))
        .await
        .unwrap();
    assert!(again.answer.epoch > enrolled.answer.epoch);
    let former = plane.resume(&enrolled).await;
    assert_eq!(former.err().unwrap().code(), Code::PermissionDenied);
    let next = plane.resume(&again).await.unwrap();
    let heard = SidecarReport {
        sidecar: POD.to_owned(),
        epoch: next.answer.epoch,
        heartbeat: Some(SidecarHeartbeat::default()),
        ack: None,
    };
    plane.store().report_sidecars(vec![heard]).await.unwrap();
    let again = plane.enrol_by(Proof::ServiceAccountToken(token)).await;
    assert_eq!(
        again.err().unwrap().code(),
        Code::FailedPrecondition,
        "the pod has its sidecar"
    );
    provider.stop().await;
}

#[tokio::test]
async fn where_no_service_accounts_are_configured_none_enrols() {
    let plane = Plane::start().await;
    let refused = plane.enrol_by(Proof::ServiceAccountToken("x".to_owned())).await;
    assert_eq!(refused.err().unwrap().code(), Code::Unimplemented);
}
