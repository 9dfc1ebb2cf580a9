//! Desired state, leases and stops.

use proto::v1;

use super::plane::{Plane, State, WatchStream, checkpoint, heartbeat, message, policy, resource, revision};
use super::*;

fn stop(sequence: u64, scope: v1::stop::Scope) -> v1::StopSet {
    v1::StopSet {
        sequence,
        stops: vec![v1::Stop {
            id: format!("stop-{sequence}"),
            sequence,
            scope: Some(scope),
            ..v1::Stop::default()
        }],
    }
}

/// A link that holds one policy at revision 1.1 under a fresh lease.
async fn in_force() -> (Rig, WatchStream, State) {
    let rig = Rig::start().await;
    let mut watch = rig.plane.watch().await;
    assert_eq!(watch.hello().await.held, None);
    let ping = watch.ping().await;
    let state = State::of([policy("one", 1)]);
    watch.tell(state.full(revision(1, 1))).await;
    assert_eq!(watch.ack().await.revision, Some(revision(1, 1)));
    watch
        .tell(heartbeat(&ping, revision(1, 1), v1::StopSet::default()))
        .await;
    until("the lease is taken", || {
        rig.control.freshness() == Freshness::Fresh
    })
    .await;
    (rig, watch, state)
}

#[tokio::test]
async fn without_a_snapshot_there_is_nothing_to_decide_by() {
    let rig = Rig::start().await;
    assert_eq!(rig.control.freshness(), Freshness::NoSnapshot);
    assert_eq!(rig.control.snapshot().policies.policies().len(), 0);
}

#[tokio::test]
async fn a_lease_ages_on_the_boot_clock_and_less_and_less_runs() {
    let (rig, _watch, _) = in_force().await;
    rig.clock.advance(Duration::from_secs(179));
    assert_eq!(rig.control.freshness(), Freshness::Fresh);
    rig.clock.advance(Duration::from_secs(1));
    assert_eq!(rig.control.freshness(), Freshness::PlainReadsOnly);
    rig.clock.advance(Duration::from_secs(720));
    assert_eq!(rig.control.freshness(), Freshness::Nothing);
    assert_eq!(rig.control.database_now(), 1_000_000_000 + 900 * 1_000_000);
}

#[tokio::test]
async fn a_delta_is_applied_and_acknowledged() {
    let (rig, mut watch, mut state) = in_force().await;
    let mut changed = rig.control.changed();
    changed.mark_unchanged();
    let delta = state.add(policy("two", 2), revision(1, 1), revision(1, 2));
    watch.tell(delta).await;
    assert_eq!(watch.ack().await.revision, Some(revision(1, 2)));
    assert_eq!(rig.control.snapshot().policies.policies().len(), 2);
    assert!(changed.has_changed().unwrap());
}

#[tokio::test]
async fn a_lease_counts_only_once_the_view_has_its_revision() {
    let rig = Rig::start().await;
    let mut watch = rig.plane.watch().await;
    let ping = watch.ping().await;
    let mut state = State::of([policy("one", 1)]);
    watch.tell(state.full(revision(1, 1))).await;
    watch
        .tell(heartbeat(&ping, revision(1, 2), v1::StopSet::default()))
        .await;
    watch.ack().await;
    assert_eq!(rig.control.freshness(), Freshness::Nothing);
    let delta = state.add(policy("two", 2), revision(1, 1), revision(1, 2));
    watch.tell(delta).await;
    watch.ack().await;
    assert_eq!(rig.control.freshness(), Freshness::Fresh);
}

#[tokio::test]
async fn a_heartbeat_that_answers_no_ping_renews_nothing() {
    let (rig, watch, _) = in_force().await;
    rig.clock.advance(Duration::from_secs(200));
    let stranger = v1::Ping {
        nonce: vec![1; 16].into(),
        ..v1::Ping::default()
    };
    let stops = stop(1, v1::stop::Scope::All(true));
    watch
        .tell(heartbeat(&stranger, revision(1, 1), stops.clone()))
        .await;
    watch
        .tell(message(v1::watch_response::Message::Stops(stops)))
        .await;
    until("the stop behind it is in force", || {
        !rig.control.stops().is_empty()
    })
    .await;
    assert_eq!(rig.control.freshness(), Freshness::PlainReadsOnly);
}

#[tokio::test]
async fn a_policy_that_cannot_be_decoded_denies_its_agents_and_is_nacked() {
    let (rig, mut watch, mut state) = in_force().await;
    let unreadable = resource("policy", "future", 2, b"{\"format\":99}".to_vec());
    let delta = state.add(unreadable, revision(1, 1), revision(1, 2));
    watch.tell(delta).await;
    let nack = watch.nack().await;
    assert_eq!(nack.revision, Some(revision(1, 2)));
    assert_eq!(
        (nack.rejected[0].r#type.as_str(), nack.rejected[0].name.as_str()),
        ("policy", "future")
    );
    let snapshot = rig.control.snapshot();
    let invalid = snapshot.policies.invalid();
    assert!(invalid[0].covers("default", "billing-7") && !invalid[0].covers("default", "support"));
    assert_eq!(
        snapshot.revision,
        Revision {
            generation: 1,
            number: 2
        }
    );
}

#[tokio::test]
async fn a_state_whose_proof_does_not_hold_is_not_applied_and_a_full_one_is_asked_for() {
    let (rig, watch, mut state) = in_force().await;
    let mut forged = state.add(policy("two", 2), revision(1, 1), revision(1, 2));
    if let Some(v1::watch_response::Message::Delta(delta)) = &mut forged.message {
        delta.changed[0] = policy("evil", 2);
    }
    watch.tell(forged).await;
    let mut again = rig.plane.watch().await;
    assert_eq!(again.hello().await.held, None);
    assert_eq!(rig.control.snapshot().revision.number, 1);
    assert!(rig.control.snapshot().policies.get("evil").is_none());
}

#[tokio::test]
async fn a_signature_by_an_unknown_key_is_refused() {
    let rig = Rig::start().await;
    let watch = rig.plane.watch().await;
    let mut full = State::of([policy("one", 1)]).full(revision(1, 1));
    if let Some(v1::watch_response::Message::Full(full)) = &mut full.message {
        full.proof.as_mut().unwrap().key_id = "k2".into();
    }
    watch.tell(full).await;
    rig.plane.watch().await;
    assert_eq!(rig.control.freshness(), Freshness::NoSnapshot);
}

#[tokio::test]
async fn a_delta_that_does_not_fit_leads_to_a_full_snapshot() {
    let (rig, watch, mut state) = in_force().await;
    let delta = state.add(policy("two", 3), revision(1, 2), revision(1, 3));
    watch.tell(delta).await;
    let mut again = rig.plane.watch().await;
    assert_eq!(again.hello().await.held, None);
    again.tell(state.full(revision(1, 3))).await;
    again.ack().await;
    assert_eq!(rig.control.snapshot().policies.policies().len(), 2);
}

#[tokio::test]
async fn an_older_full_snapshot_does_not_take_the_place_of_a_newer_one() {
    let (rig, mut watch, mut state) = in_force().await;
    let delta = state.add(policy("two", 2), revision(1, 1), revision(1, 2));
    watch.tell(delta).await;
    watch.ack().await;
    watch
        .tell(State::of([policy("one", 1)]).full(revision(1, 1)))
        .await;
    let mut again = rig.plane.watch().await;
    assert_eq!(rig.control.snapshot().revision.number, 2);
    // A new generation does.
    again
        .tell(State::of([policy("one", 1)]).full(revision(2, 1)))
        .await;
    again.ack().await;
    assert_eq!(rig.control.snapshot().revision.generation, 2);
    assert_eq!(rig.control.freshness(), Freshness::Nothing);
}

#[tokio::test]
async fn a_stop_is_in_force_at_once_and_an_older_set_does_not_lift_it() {
    let (rig, watch, _) = in_force().await;
    let mut stops_changed = rig.control.stops_changed();
    stops_changed.mark_unchanged();
    let told = |stops| message(v1::watch_response::Message::Stops(stops));
    watch
        .tell(told(stop(7, v1::stop::Scope::Upstream("github".into()))))
        .await;
    stops_changed.changed().await.unwrap();
    watch
        .tell(told(v1::StopSet {
            sequence: 6,
            stops: vec![],
        }))
        .await;
    watch.tell(told(stop(8, v1::stop::Scope::All(true)))).await;
    stops_changed.changed().await.unwrap();
    assert_eq!(rig.control.stops().sequence(), 8);
    assert!(
        rig.control
            .caught_up(
                Revision {
                    generation: 1,
                    number: 1
                },
                8,
                Duration::ZERO
            )
            .await
    );
    assert!(
        !rig.control
            .caught_up(
                Revision {
                    generation: 1,
                    number: 2
                },
                8,
                Duration::ZERO
            )
            .await
    );
}

#[tokio::test]
async fn a_sidecar_restarted_during_an_outage_goes_on_within_the_bounds() {
    let (rig, watch, _) = in_force().await;
    watch
        .tell(message(v1::watch_response::Message::Stops(stop(
            3,
            v1::stop::Scope::All(true),
        ))))
        .await;
    until("the stop is in force", || !rig.control.stops().is_empty()).await;
    rig.clock.advance(Duration::from_secs(100));
    let gone = Plane::start();
    gone.cut();
    let rig = rig.restart(gone).await;
    assert_eq!(rig.control.freshness(), Freshness::Fresh);
    assert_eq!(rig.control.stops().sequence(), 3);
    assert!(rig.control.snapshot().policies.get("one").is_some());
    assert_eq!(rig.control.identity().unwrap().id, "s1");
    rig.clock.advance(Duration::from_secs(80));
    assert_eq!(rig.control.freshness(), Freshness::PlainReadsOnly);
}

#[tokio::test]
async fn after_another_boot_a_kept_lease_has_ended() {
    let (rig, _watch, _) = in_force().await;
    rig.clock.reboot("another boot");
    let gone = Plane::start();
    gone.cut();
    // The lease that was kept says the boot that it was taken in.
    let rig = {
        let clock = Clock::manual();
        clock.reboot("yet another boot");
        let mut rig = rig;
        rig.clock = clock;
        rig.restart(gone).await
    };
    assert_eq!(rig.control.freshness(), Freshness::Nothing);
    assert!(rig.control.snapshot().policies.get("one").is_some());
}

#[tokio::test]
async fn a_kept_snapshot_that_was_tampered_with_is_not_used() {
    let (rig, _watch, _) = in_force().await;
    let path = rig.dir.path().join("snapshot.bin");
    until("the snapshot is kept", || path.exists()).await;
    let mut full = <v1::Full as prost::Message>::decode(std::fs::read(&path).unwrap().as_slice()).unwrap();
    full.revision = Some(revision(1, 9));
    let gone = Plane::start();
    gone.cut();
    rig.plane.cut();
    rig.control.shutdown(Duration::ZERO).await;
    std::fs::write(&path, prost::Message::encode_to_vec(&full)).unwrap();
    let rig = rig.restart(gone).await;
    assert_eq!(rig.control.freshness(), Freshness::NoSnapshot);
}

#[tokio::test]
async fn a_kept_snapshot_of_another_credential_is_not_used() {
    let (rig, _watch, _) = in_force().await;
    let path = rig.dir.path().join("snapshot.bin");
    until("the snapshot is kept", || path.exists()).await;
    let gone = Plane::start();
    gone.cut();
    rig.plane.cut();
    rig.control.shutdown(Duration::ZERO).await;
    let mut kept = credentials::Credentials::load(rig.dir.path()).unwrap().unwrap();
    kept.namespace = "another".parse().unwrap();
    kept.save(rig.dir.path()).unwrap();
    let rig = rig.restart(gone).await;
    assert_eq!(rig.control.freshness(), Freshness::NoSnapshot);
}

#[tokio::test]
async fn what_is_held_is_said_when_a_stream_is_opened_again() {
    let (rig, watch, state) = in_force().await;
    watch.end(tonic::Status::unavailable("going down")).await;
    let mut again = rig.plane.watch().await;
    let hello = again.hello().await;
    assert_eq!(hello.held, Some(revision(1, 1)));
    let v1::watch_response::Message::Full(full) = state.full(revision(1, 1)).message.unwrap() else {
        panic!()
    };
    assert_eq!(hello.held_digest, full.proof.unwrap().digest);
}

#[tokio::test]
async fn a_checkpoint_behind_the_one_that_is_held_opens_a_stream_that_states_what_is_held() {
    let (rig, mut watch, _) = in_force().await;
    let told = |seq| message(v1::watch_response::Message::Checkpoint(checkpoint(seq)));
    watch.tell(told(9)).await;
    watch.tell(told(5)).await;
    let mut again = rig.plane.watch().await;
    assert_eq!(again.hello().await.checkpoint, Some(checkpoint(9)));
    // A control plane that stays behind has been told; the stream with its lease is worth more than telling it again and again.
    again.tell(told(5)).await;
    let ping = again.ping().await;
    again
        .tell(heartbeat(&ping, revision(1, 1), v1::StopSet::default()))
        .await;
    again.ping().await;
    assert_eq!(
        rig.plane.script.watches.load(std::sync::atomic::Ordering::SeqCst),
        2
    );
    assert!(watch.next().await.is_none_or(|said| said.message.is_some()));
}

#[tokio::test]
async fn a_stop_is_acknowledged_at_once() {
    let (_rig, mut watch, _) = in_force().await;
    let told = std::time::Instant::now();
    watch
        .tell(message(v1::watch_response::Message::Stops(stop(
            7,
            v1::stop::Scope::All(true),
        ))))
        .await;
    while watch.ping().await.stop_sequence != 7 {}
    assert!(
        told.elapsed() < Duration::from_secs(1),
        "not with the next of the pings, of which one comes in two seconds: {:?}",
        told.elapsed()
    );
}
