//! Enrolment, snapshots, leases and stops.

use std::sync::Arc;
use std::time::Duration;

use crate::store::Act;
use crate::store::stops::{StopDraft, StopScope};
use chain::checkpoint::{Checkpoint, CheckpointSigner};
use chain::timestamp::Timestamp;
use proto::v1::watch_request::Message as Sent;
use proto::v1::watch_response::Message;
use proto::v1::{CheckpointNotice, Hello, Ping};
use serde_json::json;
use tonic::Code;

use super::plane::{Plane, eventually, policy, refusal};
use super::watcher::Watcher;

#[tokio::test]
async fn an_edit_reaches_a_watcher_as_a_delta_with_a_valid_proof() {
    let plane = Plane::start().await;
    plane.put_policy(&policy("first", "a", "*")).await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    watcher.until(|watcher| watcher.has_policy("first")).await;
    let row = plane.put_policy(&policy("second", "a", "*")).await;
    watcher.until(|watcher| watcher.has_policy("second")).await;
    assert_eq!(watcher.fulls, 1);
    watcher.ack().await;
    eventually("the acknowledgement", async || {
        let sidecar = plane.store().sidecar(&sidecar.answer.sidecar_id).await.unwrap();
        sidecar.ack.is_some_and(|ack| ack.revision == row.revision)
    })
    .await;
    let act = Act::new("mesh.policy_edit", "test", json!({}));
    plane
        .store()
        .delete_policy("first", crate::store::desired::Expected::Any, act)
        .await
        .unwrap();
    watcher.until(|watcher| !watcher.has_policy("first")).await;
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_policy_of_another_namespace_or_agent_is_never_sent() {
    let plane = Plane::start().await;
    plane.put_policy(&policy("theirs", "*", "dev")).await;
    let sidecar = plane.enrol("prod", &["support-*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    plane.put_policy(&policy("billing", "billing-*", "*")).await;
    plane.put_policy(&policy("moving", "support-1", "prod")).await;
    plane.put_policy(&policy("ours", "*-1", "pr*")).await;
    watcher
        .until(|watcher| watcher.has_policy("ours") && watcher.has_policy("moving"))
        .await;
    assert!(!watcher.has_policy("theirs") && !watcher.has_policy("billing"));
    plane.put_policy(&policy("moving", "support-1", "dev")).await;
    watcher.until(|watcher| !watcher.has_policy("moving")).await;
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn one_edit_among_ten_thousand_policies_sends_a_small_delta() {
    let plane = Plane::start_with(|options| {
        let text: String = (0..10_000)
            .map(|n| format!("---\n{}", policy(&format!("p{n}"), &format!("a{n}"), "*")))
            .collect();
        let source = policy::document::Source::Inline;
        options.policies =
            policy::Policy::parse_all("inline", &text, &source, &policy::document::Lists::none()).unwrap();
    })
    .await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    assert!(watcher.view.len() > 10_000);
    watcher.delta_bytes = 0;
    plane.put_policy(&policy("edited", "a1", "*")).await;
    watcher.until(|watcher| watcher.has_policy("edited")).await;
    assert!(watcher.delta_bytes < 4096, "{} bytes", watcher.delta_bytes);
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_receiver_that_holds_the_state_is_sent_nothing_and_one_step_behind_a_delta() {
    let plane = Plane::start().await;
    plane.put_policy(&policy("first", "a", "*")).await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let first = Watcher::start(&plane, &sidecar).await;
    let hello = Hello {
        held: Some(first.revision),
        held_digest: first.digest().to_vec().into(),
        checkpoint: None,
    };
    let mut second = Watcher::open(&plane, &sidecar).await.unwrap();
    second.view = first.view.clone();
    second.revision = first.revision;
    second.say(Sent::Hello(hello)).await;
    plane.put_policy(&policy("second", "a", "*")).await;
    second.until(|watcher| watcher.has_policy("second")).await;
    assert_eq!(second.fulls, 0);
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_lease_echoes_the_nonce_and_a_stop_is_pushed_at_once() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    let lease = watcher.heartbeat(b"nonce-1").await.lease.unwrap();
    assert_eq!(lease.nonce.as_ref(), b"nonce-1");
    assert!(lease.database_time > 0);
    let draft = StopDraft {
        scope: StopScope::Agent("a*".to_owned()),
        in_namespace: None,
        reason: "test".to_owned(),
        by: "test".to_owned(),
    };
    let made = plane
        .store()
        .create_stop(draft, Act::new("mesh.stop", "test", json!({})))
        .await
        .unwrap();
    watcher
        .until(|watcher| watcher.stop_ids.contains(&made.stop.id))
        .await;
    let stops = watcher.heartbeat(b"nonce-2").await.stops.unwrap();
    assert_eq!(stops.sequence, made.stop.sequence);
    plane
        .store()
        .lift_stop(&made.stop.id, "test", Act::new("mesh.resume", "test", json!({})))
        .await
        .unwrap();
    watcher.until(|watcher| watcher.stop_ids.is_empty()).await;
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_newer_process_ends_the_streams_of_the_older_one() {
    let plane = Plane::start().await;
    let first = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &first).await;
    let second = plane.resume(&first).await.unwrap();
    assert_eq!(second.answer.epoch, 2);
    let end = watcher.end().await;
    assert_eq!(
        (end.code(), refusal(&end)),
        (Code::Aborted, "stale_epoch".to_owned())
    );
    let Err(again) = Watcher::open(&plane, &first).await else {
        panic!("an old epoch was let in")
    };
    assert_eq!(again.code(), Code::Aborted);
    Watcher::start(&plane, &second).await;
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_revoked_sidecar_loses_its_stream_and_cannot_come_back() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    let act = Act::new("mesh.sidecar_revoke", "test", json!({}));
    plane
        .store()
        .revoke_sidecar(&sidecar.answer.sidecar_id, act)
        .await
        .unwrap();
    assert_eq!(refusal(&watcher.end().await), "revoked");
    assert!(Watcher::open(&plane, &sidecar).await.is_err());
    assert!(plane.resume(&sidecar).await.is_err());
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_receiver_that_does_not_take_its_messages_is_cut() {
    let plane = Plane::start_with(|options| {
        options.limits.queue = 2;
        options.limits.patience = Duration::from_millis(50);
    })
    .await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    let metrics = plane.plane.core().metrics.clone();
    assert_eq!(metrics.streams.get(), 1);
    let rule = format!(
        "  - action: deny\n    tools: [\"t\"]\n    message: {}\n",
        "x".repeat(2_000)
    );
    let rules = rule.repeat(50);
    for n in 0..40 {
        let name = format!("p{n}");
        plane
            .put_policy(&format!("{}{rules}", policy(&name, "a", "*")))
            .await;
        let is_in_the_view = async || plane.plane.core().hub.resource("policy", &name).is_some();
        eventually("the revision", is_in_the_view).await;
    }
    eventually("the cut", async || metrics.streams.get() == 0).await;
    let end = watcher.end().await;
    assert_eq!(
        (end.code(), refusal(&end)),
        (Code::ResourceExhausted, "slow_receiver".to_owned())
    );
    plane.plane.shutdown().await;
}

/// The generation of the view after a sidecar held a checkpoint a thousand records ahead, signed by `signer` for `origin`.
async fn generation_after(signer: impl Fn(&Plane) -> Arc<CheckpointSigner>, origin: Option<&str>) -> u64 {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let signer = signer(&plane);
    let signed = signer
        .sign(&Checkpoint {
            origin: origin.map_or_else(|| plane.plane.core().keys.installation(), str::to_owned),
            generation: 1,
            seq: 1_000,
            hash: chain::hash::Hash::from([7; 32]),
            time: Timestamp::from_micros(1),
        })
        .unwrap();
    let mut watcher = Watcher::open(&plane, &sidecar).await.unwrap();
    let notice = CheckpointNotice {
        signature: signed.signature_bytes().unwrap().to_vec().into(),
        text: signed.text,
        key_id: plane.plane.core().keys.checkpoint_signer().public_key().id(),
        at: None,
    };
    let hello = Hello {
        checkpoint: Some(notice),
        ..Hello::default()
    };
    watcher.say(Sent::Hello(hello)).await;
    watcher.until(|watcher| watcher.fulls > 0).await;
    plane.plane.shutdown().await;
    watcher.revision.generation
}

fn own_signer(plane: &Plane) -> Arc<CheckpointSigner> {
    plane.plane.core().keys.checkpoint_signer()
}

#[tokio::test]
async fn a_chain_behind_a_checkpoint_that_a_sidecar_holds_begins_a_generation() {
    assert_eq!(generation_after(own_signer, None).await, 2);
}

#[tokio::test]
async fn a_checkpoint_that_the_installation_did_not_sign_begins_no_generation() {
    let forger = |_: &Plane| Arc::new(CheckpointSigner::from_seed(&[9; 32]));
    assert_eq!(generation_after(forger, None).await, 1);
    assert_eq!(generation_after(own_signer, Some("another")).await, 1);
}

#[tokio::test]
async fn a_restart_keeps_the_generation_and_the_keys() {
    let plane = Plane::start().await;
    plane.put_policy(&policy("first", "a", "*")).await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    watcher.until(|watcher| watcher.checkpoint.is_some()).await;
    let (revision, checkpoint) = (watcher.revision, watcher.checkpoint.clone());
    let Plane { plane, directory, .. } = plane;
    plane.shutdown().await;
    let plane = crate::start(crate::Options::in_directory(directory.path()))
        .await
        .unwrap();
    let channel = plane.in_memory_channel();
    let plane = Plane {
        plane,
        channel,
        directory,
    };
    let mut again = Watcher::open(&plane, &sidecar).await.unwrap();
    again
        .say(Sent::Hello(Hello {
            checkpoint,
            ..Hello::default()
        }))
        .await;
    again.until(|watcher| watcher.fulls > 0).await;
    assert_eq!(again.revision, revision);
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn streams_are_told_to_leave_before_the_end() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    let Plane {
        plane,
        directory: _directory,
        ..
    } = plane;
    let (end, ()) = tokio::join!(
        async {
            loop {
                if let Some(Message::Draining(_)) = watcher.next().await.unwrap() {
                    return watcher.end().await;
                }
            }
        },
        plane.shutdown()
    );
    assert_eq!(end.code(), Code::Unavailable);
}

#[tokio::test]
async fn without_a_credential_nothing_opens_and_a_wrong_join_token_is_refused() {
    let plane = Plane::start().await;
    let mut sidecar = plane.enrol("default", &["*"]).await;
    let wrong = proto::v1::enrol_request::Proof::JoinToken("guess".to_owned());
    let Err(refused) = plane.enrol_by(wrong).await else {
        panic!("a guess enrolled")
    };
    assert_eq!(refused.code(), Code::PermissionDenied);
    if let Some(credential) = &mut sidecar.answer.credential {
        credential.token.push('x');
    }
    let Err(refused) = Watcher::open(&plane, &sidecar).await else {
        panic!("a forged credential was let in")
    };
    assert_eq!(refused.code(), Code::Unauthenticated);
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_credential_ends_the_stream_when_it_is_not_renewed() {
    let plane = Plane::start_with(|options| options.lifetimes.credential = Duration::from_millis(600)).await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut watcher = Watcher::start(&plane, &sidecar).await;
    watcher.say(Sent::Ping(Ping::default())).await;
    assert_eq!(watcher.end().await.code(), Code::Unauthenticated);
    plane.plane.shutdown().await;
}
