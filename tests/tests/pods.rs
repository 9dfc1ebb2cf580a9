//! Sidecars of pods: enrolled by the projected token of their service account, which a cluster of the tests' own issues.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failure here is a failed test"
)]

use net::token::testing::SigningKey;
use proto::v1::enrol_request::Proof;
use reqwest::Method;
use serde_json::{Value, json};
use tests::fleet::{Fleet, Sidecar, SidecarOptions};
use tests::kubernetes::{Kubernetes, projected, uuid_like};
use tests::operator::Operator;
use tests::{simulated, wait};
use tonic::Code;

const POLICY: &str = "name: everybody\nagent: '*'\nrules:\n  - tools: ['*']\n    action: allow\n";

fn pod(name: &str, token: String) -> SidecarOptions {
    SidecarOptions {
        pod_token: Some(token),
        ..SidecarOptions::named(name)
    }
}

/// Puts another token into the file that the sidecar reads, as the kubelet does: by a rename.
fn project(sidecar: &Sidecar, token: &str) {
    let new = sidecar.folder.join("token.new");
    std::fs::write(&new, token).unwrap();
    std::fs::rename(new, sidecar.folder.join("token")).unwrap();
}

async fn refusals(operator: &Operator, count: usize) -> Vec<Value> {
    operator.records("kind=act&tool=mesh.sidecar_refuse", count).await
}

async fn one(operator: &Operator, id: &str) -> Value {
    operator.get(&format!("/sidecars/{id}")).await
}

async fn call(sidecar: &Sidecar, n: u64) -> u16 {
    let agent = sidecar.stateless_agent("billing");
    agent.rest("fixture.write_item", json!({"n": n})).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn every_token_that_proves_no_pod_enrols_nobody_and_is_on_the_record() {
    let cluster = Kubernetes::start().await;
    let fleet = Fleet::on_sqlite(&cluster.enrolling("prod:*")).await;
    let operator = fleet.operator();
    let channel = simulated::connect(&fleet.grpc_url(0), fleet.ca_file()).await;
    let (uid, foreign) = (uuid_like(7), SigningKey::rsa("another"));
    let with = |name: &str, value: Value| {
        let mut claims = projected("prod", &uid, 600);
        claims[name] = value;
        cluster.token(&claims)
    };
    let unbound = json!({"namespace": "prod", "serviceaccount": {"name": "agents"}});
    let wrong = [
        (
            "the audience of agents",
            with("aud", json!(["toolgate-agent"])),
            Code::Unauthenticated,
        ),
        (
            "another issuer",
            with("iss", json!("https://evil.example")),
            Code::Unauthenticated,
        ),
        (
            "expired",
            cluster.token(&projected("prod", &uid, -31)),
            Code::Unauthenticated,
        ),
        (
            "a key that the cluster does not have",
            foreign.token(&projected("prod", &uid, 600)),
            Code::Unauthenticated,
        ),
        (
            "bound to no pod",
            with("kubernetes.io", unbound),
            Code::Unauthenticated,
        ),
        (
            "another namespace",
            cluster.pod_token("dev", &uid),
            Code::PermissionDenied,
        ),
        ("no token", "x".to_owned(), Code::Unauthenticated),
    ];
    for (number, (case, token, code)) in wrong.iter().enumerate() {
        let proof = Proof::ServiceAccountToken(token.clone());
        let refused = simulated::enrol(channel.clone(), proof, case)
            .await
            .err()
            .unwrap();
        assert_eq!(refused.code(), *code, "{case}: {refused}");
        let records = refusals(&operator, number + 1).await;
        let newest = &records[0];
        assert_eq!(
            newest["params"]["shown"], "service-account token",
            "{case}: {newest}"
        );
        assert_eq!(newest["params"]["reason"], refused.message(), "{case}: {newest}");
        assert!(
            !newest.to_string().contains(token) || token == "x",
            "{case}: {newest}"
        );
    }
    assert_eq!(operator.get("/sidecars").await, json!([]));

    // A sidecar that was refused goes on as soon as its file holds another token.
    let mut claims = projected("prod", &uid, 600);
    claims["aud"] = json!(["other"]);
    let sidecar = fleet.start_sidecar(&pod("one", cluster.token(&claims))).await;
    wait::until("the sidecar says that it is refused", || async {
        let log = sidecar.process.log();
        log.contains("the control plane refuses this sidecar")
            .then_some(())
    })
    .await;
    project(&sidecar, &cluster.pod_token("prod", &uid));
    sidecar.ready().await;
    assert_eq!(one(&operator, &uid).await["namespace"], "prod");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_enrols_once_outlives_its_tokens_and_stays_out_when_revoked() {
    let cluster = Kubernetes::start().await;
    let fleet = Fleet::on_sqlite(&cluster.enrolling("prod:*")).await;
    let operator = fleet.operator();
    let uid = uuid_like(8);
    let mut sidecar = fleet.sidecar(&pod("one", cluster.pod_token("prod", &uid))).await;
    let revision = operator.put_policy("everybody", POLICY).await;
    operator.applied(&revision, 1).await;
    assert_eq!(call(&sidecar, 1).await, 200);
    let records = operator.records("agent=billing&tool=fixture.write_item", 1).await;
    assert_eq!(records[0]["namespace"], "prod", "{}", records[0]);
    let enrolled = operator.records("kind=act&tool=mesh.sidecar_enrol", 1).await;
    assert_eq!(enrolled[0]["params"]["sidecar"], uid.as_str(), "{}", enrolled[0]);

    // Its first token is over, and the file holds another, then none that counts: the sidecar renews, and comes back by its spool.
    project(&sidecar, &cluster.token(&projected("prod", &uid, 300)));
    let first_epoch = one(&operator, &uid).await["epoch"].as_u64();
    project(&sidecar, &cluster.token(&projected("prod", &uid, -600)));
    sidecar.restart();
    sidecar.ready().await;
    wait::until("the next process has enrolled", || async {
        (one(&operator, &uid).await["epoch"].as_u64() > first_epoch).then_some(())
    })
    .await;
    wait::until("it calls as before", || async {
        (call(&sidecar, 2).await == 200).then_some(())
    })
    .await;

    operator.delete(&format!("/sidecars/{uid}")).await;
    // Long before its lease would be too old.
    wait::until("a revoked sidecar lets nothing through", || async {
        (call(&sidecar, 3).await == 503).then_some(())
    })
    .await;
    let ready = tests::operator::client(None).get(format!("{}/readyz", sidecar.url));
    let ready = ready.send().await.unwrap();
    assert_eq!(ready.json::<Value>().await.unwrap()["lease"], "revoked");
    let refused = |count| refusals(&operator, count);
    let before = refused(1).await.len();
    assert!(
        sidecar.process.log().contains("revoked"),
        "{}",
        sidecar.process.log()
    );

    // The same pod, with a fresh token and an empty spool.
    sidecar.process.kill();
    std::fs::remove_dir_all(sidecar.folder.join("spool")).unwrap();
    project(&sidecar, &cluster.pod_token("prod", &uid));
    sidecar.restart();
    let records = refused(before + 1).await;
    let reason = records[0]["params"]["reason"].as_str().unwrap();
    assert!(
        reason.contains(&uid) && reason.contains("was revoked"),
        "{reason}"
    );
    let (_, found) = operator
        .try_send(operator.request(Method::GET, &format!("/sidecars/{uid}")))
        .await;
    assert!(found["revoked_at"].is_string(), "{found}");

    // Another pod of the account is another sidecar.
    let other = uuid_like(9);
    let second = fleet
        .sidecar(&pod("two", cluster.pod_token("prod", &other)))
        .await;
    wait::until("the other pod serves", || async {
        (call(&second, 4).await == 200).then_some(())
    })
    .await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_enrolment_a_restore_lost_enrols_again_and_loses_no_record() {
    let cluster = Kubernetes::start().await;
    let extra = format!(
        "{}loop:\n  max: 10000\ntraces:\n  checkpoint_seconds: 3600\n",
        cluster.enrolling("prod:*")
    );
    let mut fleet = Fleet::on_postgres(1, &extra).await;
    fleet.operator().put_policy("everybody", POLICY).await;
    let dump = fleet.dump();
    let uid = uuid_like(10);
    let mut sidecar = fleet.sidecar(&pod("one", cluster.pod_token("prod", &uid))).await;
    // An epoch of which nothing is left but its end.
    sidecar.restart();
    sidecar.ready().await;
    let operator = fleet.operator();
    let query = "agent=billing&tool=fixture.write_item&outcome=ok";
    for n in 0..5 {
        wait::until("the policy is in force", || async {
            (call(&sidecar, n).await == 200).then_some(())
        })
        .await;
    }
    operator.records(query, 5).await;

    project(&sidecar, &cluster.pod_token("prod", &uid));
    fleet.restore(&dump).await;
    let operator = fleet.operator();
    let path = format!("/sidecars/{uid}");
    let known = wait::until("the pod has enrolled again", || async {
        let (status, known) = operator.try_send(operator.request(Method::GET, &path)).await;
        (status == 200).then_some(known)
    })
    .await;
    assert_eq!(known["namespace"], "prod", "{known}");
    for n in 5..8 {
        assert_eq!(call(&sidecar, n).await, 200);
    }
    let records = operator.records(query, 8).await;
    let mut numbers: Vec<u64> = records
        .iter()
        .map(|record| record["params"]["n"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    // The epoch of before the restore is closed a moment after its last record is there.
    wait::until("no epoch is open that has ended", || async {
        (operator.get("/traces/gaps").await == json!([])).then_some(())
    })
    .await;
    let verified = operator.get("/traces/verify").await;
    assert_eq!(
        (&verified["valid"], &verified["head"]["generation"]),
        (&json!(true), &json!(2)),
        "{verified}"
    );
    let revision = operator
        .put_policy("everybody", &POLICY.replace("allow", "deny"))
        .await;
    operator.applied(&revision, 1).await;
    assert_eq!(call(&sidecar, 9).await, 403);
    cluster.stop().await;
}
