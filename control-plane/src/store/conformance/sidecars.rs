use std::time::Duration;

use super::{Fixture, act};
use crate::store::{
    EnrolRefusal, StoreError,
    desired::Expected,
    sidecars::{
        Enrolled, JoinTokenDraft, Redemption, RejectedResource, Resumption, SidecarAck, SidecarEvent,
        SidecarFacts, SidecarHeartbeat, SidecarReport,
    },
};

const SECRET: [u8; 32] = [7; 32];

pub(super) fn token(hash: u8, uses: Option<u32>) -> JoinTokenDraft {
    JoinTokenDraft {
        hash: [hash; 32],
        label: "laptops".to_owned(),
        namespace: "default".to_owned(),
        agents: vec!["*".to_owned()],
        upstreams: vec!["*".to_owned()],
        lifetime: Some(Duration::from_secs(3600)),
        uses,
        created_by: "ada".to_owned(),
    }
}

pub(super) fn redemption(hash: u8, id: &str) -> Redemption {
    Redemption {
        token_hash: [hash; 32],
        sidecar_id: Some(id.to_owned()),
        renewal_hash: SECRET,
        agents: vec!["claude".to_owned()],
        upstreams: vec!["notes".to_owned()],
        facts: SidecarFacts {
            name: id.to_owned(),
            ..SidecarFacts::default()
        },
    }
}

pub(super) fn resumption(id: &str) -> Resumption {
    Resumption {
        sidecar_id: id.to_owned(),
        renewal_hash: SECRET,
        token_hash: None,
        agents: vec!["claude".to_owned()],
        upstreams: vec!["notes".to_owned()],
        facts: SidecarFacts::default(),
    }
}

/// A sidecar at its first epoch.
pub(super) async fn enrolled(fixture: &Fixture, id: &str) -> Enrolled {
    let hash = u8::try_from(id.bytes().map(u32::from).sum::<u32>() % 251).unwrap();
    fixture
        .store
        .create_join_token(token(hash, None), act("mesh.token"))
        .await
        .unwrap();
    fixture.store.redeem(redemption(hash, id)).await.unwrap()
}

pub(super) async fn a_join_token_is_used_as_often_as_it_may_be(fixture: &Fixture) {
    let store = &fixture.store;
    let made = store
        .create_join_token(token(1, Some(1)), act("mesh.token"))
        .await
        .unwrap();
    assert_eq!(store.join_tokens().await.unwrap(), std::slice::from_ref(&made));
    assert_eq!(store.join_token([1; 32]).await.unwrap(), made);
    let enrolled = store.redeem(redemption(1, "s1")).await.unwrap();
    assert_eq!(
        (enrolled.sidecar.epoch, enrolled.sidecar.namespace.as_str()),
        (1, "default")
    );
    let used = store.redeem(redemption(1, "s2")).await;
    assert!(matches!(
        used,
        Err(StoreError::Enrolment(EnrolRefusal::TokenUsedUp))
    ));
    let unknown = store.redeem(redemption(2, "s2")).await;
    assert!(matches!(
        unknown,
        Err(StoreError::Enrolment(EnrolRefusal::UnknownToken))
    ));
    let mut brief = token(3, None);
    brief.lifetime = Some(Duration::ZERO);
    store.create_join_token(brief, act("mesh.token")).await.unwrap();
    let late = store.redeem(redemption(3, "s2")).await;
    assert!(matches!(
        late,
        Err(StoreError::Enrolment(EnrolRefusal::TokenExpired))
    ));
    let revoked = store
        .create_join_token(token(4, None), act("mesh.token"))
        .await
        .unwrap();
    store
        .revoke_join_token(&revoked.id, act("mesh.token_revoke"))
        .await
        .unwrap();
    let revoked = store.redeem(redemption(4, "s2")).await;
    assert!(matches!(
        revoked,
        Err(StoreError::Enrolment(EnrolRefusal::TokenExpired))
    ));
}

pub(super) async fn an_id_that_was_never_heard_of_enrols_anew_and_no_other(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .create_join_token(token(9, None), act("mesh.token"))
        .await
        .unwrap();
    let first = store.redeem(redemption(9, "s1")).await.unwrap();
    let again = Redemption {
        renewal_hash: [8; 32],
        ..redemption(9, "s1")
    };
    let second = store.redeem(again.clone()).await.unwrap();
    assert_eq!(second.sidecar.epoch, first.sidecar.epoch + 1);
    let epoch = second.sidecar.epoch;
    assert!(store.check_renewal("s1", epoch, SECRET).await.is_err());
    store.check_renewal("s1", epoch, [8; 32]).await.unwrap();

    let report = SidecarReport {
        sidecar: "s1".to_owned(),
        epoch,
        heartbeat: Some(SidecarHeartbeat::default()),
        ack: None,
    };
    store.report_sidecars(vec![report]).await.unwrap();
    let heard = store.redeem(again.clone()).await;
    assert!(matches!(heard, Err(StoreError::Conflict { .. })), "{heard:?}");
    store.redeem(redemption(9, "s2")).await.unwrap();
    store
        .revoke_sidecar("s2", act("mesh.sidecar_revoke"))
        .await
        .unwrap();
    let revoked = store.redeem(redemption(9, "s2")).await;
    assert!(matches!(revoked, Err(StoreError::Conflict { .. })), "{revoked:?}");
}

pub(super) async fn a_restarted_process_is_the_same_sidecar_with_a_new_epoch(fixture: &Fixture) {
    let store = &fixture.store;
    let first = enrolled(fixture, "s1").await;
    let next = store.resume(resumption("s1")).await.unwrap();
    assert_eq!(
        (next.sidecar.id.as_str(), next.sidecar.epoch),
        ("s1", first.sidecar.epoch + 1)
    );
    assert_eq!(next.sidecar.agents, ["claude"]);
    assert_eq!(next.open_epochs.len(), 1);
    assert_eq!(next.open_epochs[0].epoch, first.sidecar.epoch);
    store
        .check_renewal("s1", next.sidecar.epoch, SECRET)
        .await
        .unwrap();
    let stale = store.check_renewal("s1", first.sidecar.epoch, SECRET).await;
    assert!(matches!(
        stale,
        Err(StoreError::Enrolment(EnrolRefusal::StaleEpoch { .. }))
    ));
    let wrong = store
        .resume(Resumption {
            renewal_hash: [0; 32],
            ..resumption("s1")
        })
        .await;
    assert!(matches!(
        wrong,
        Err(StoreError::Enrolment(EnrolRefusal::WrongSecret(_)))
    ));
    let unknown = store.resume(resumption("s9")).await;
    assert!(matches!(
        unknown,
        Err(StoreError::Enrolment(EnrolRefusal::UnknownSidecar(_)))
    ));
    assert_eq!(next.sidecar.scope.agents, ["*"]);
    let closed = store.close_epoch("s1", first.sidecar.epoch, 0).await.unwrap();
    assert!(closed.closed);
    assert_eq!(store.resume(resumption("s1")).await.unwrap().open_epochs.len(), 1);
}

pub(super) async fn a_revoked_sidecar_stays_a_tombstone(fixture: &Fixture) {
    let store = &fixture.store;
    let start = store.head().await.unwrap().sidecar_sequence;
    enrolled(fixture, "s1").await;
    let gone = store
        .revoke_sidecar("s1", act("mesh.sidecar_revoke"))
        .await
        .unwrap();
    assert_eq!(gone.revoked.as_ref().unwrap().1, "ada");
    let refused = store.resume(resumption("s1")).await;
    assert!(matches!(
        refused,
        Err(StoreError::Enrolment(EnrolRefusal::Revoked(_)))
    ));
    assert_eq!(store.sidecars(None).await.unwrap().len(), 1);
    let events = store.sidecar_events_after(start, 10).await.unwrap();
    let event = |sequence, revoked| SidecarEvent {
        sequence,
        sidecar: "s1".to_owned(),
        epoch: 1,
        revoked,
    };
    assert_eq!(events, [event(start + 1, false), event(start + 2, true)]);
    assert_eq!(store.head().await.unwrap().sidecar_sequence, start + 2);
}

pub(super) async fn a_rollout_shows_who_applied_what(fixture: &Fixture) {
    let store = &fixture.store;
    for id in ["s1", "s2", "s3"] {
        enrolled(fixture, id).await;
    }
    let draft = super::desired::policy("a", "{}");
    let revision = store
        .put_policy(draft, Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap()
        .revision;
    let ack = |rejected| SidecarAck {
        revision,
        apply_us: 40,
        rejected,
    };
    let bad = RejectedResource {
        kind: "policy".into(),
        name: "a".into(),
        reason: "unknown operator".into(),
    };
    let heartbeat = SidecarHeartbeat {
        lease_age_ms: 12,
        high_water: 5,
        open_intents: 1,
        stop_sequence: 0,
    };
    let report = |id: &str, epoch, ack| SidecarReport {
        sidecar: id.to_owned(),
        epoch,
        heartbeat: Some(heartbeat),
        ack,
    };
    store
        .report_sidecars(vec![
            report("s1", 1, None),
            report("s1", 1, Some(ack(vec![]))),
            report("s2", 1, Some(ack(vec![bad.clone()]))),
            report("s3", 9, Some(ack(vec![]))),
        ])
        .await
        .unwrap();
    let rollout = store.rollout(revision).await.unwrap();
    assert!(rollout.committed_at.is_some());
    let applied: Vec<bool> = rollout
        .sidecars
        .iter()
        .map(|sidecar| rollout.applied(sidecar))
        .collect();
    assert_eq!(
        applied,
        [true, true, false],
        "an ACK of another epoch says nothing of this one"
    );
    assert_eq!(rollout.sidecars[1].ack.as_ref().unwrap().rejected, [bad]);
    assert_eq!(rollout.sidecars[0].heartbeat, heartbeat);
    assert!(rollout.sidecars[0].last_seen > 0);
}
