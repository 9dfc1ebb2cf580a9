//! Becoming known, and opening streams patiently.

use std::sync::atomic::Ordering;

use tonic::Status;

use super::plane::{Plane, Script};
use super::*;

#[tokio::test]
async fn a_sidecar_enrols_by_its_token_and_resumes_by_its_secret() {
    let rig = Rig::start().await;
    let mut state = rig.control.state();
    state
        .wait_for(|state| *state == LinkState::Enrolled { epoch: 1 })
        .await
        .unwrap();
    let identity = rig.control.identity().unwrap();
    assert_eq!(
        (identity.id.as_str(), identity.epoch, identity.digest_key.id()),
        ("s1", 1, "d1")
    );
    let plane = Plane::with(Script {
        epoch: 1.into(),
        ..Script::default()
    });
    let rig = rig.restart(plane).await;
    let mut state = rig.control.state();
    state
        .wait_for(|state| *state == LinkState::Enrolled { epoch: 2 })
        .await
        .unwrap();
}

#[tokio::test]
async fn an_epoch_that_the_spool_has_used_is_passed_over() {
    let rig = Rig::start().await;
    rig.plane.watch().await;
    // A restored control plane counts from an earlier number.
    let rig = rig.restart(Plane::start()).await;
    let mut state = rig.control.state();
    state
        .wait_for(|state| *state == LinkState::Enrolled { epoch: 2 })
        .await
        .unwrap();
    assert_eq!(rig.plane.script.enrolments.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_refused_sidecar_does_not_ask_again_until_configuration_changes() {
    let plane = Plane::with(Script {
        refuse: std::sync::Mutex::new([Status::permission_denied("the token has expired")].into()),
        ..Script::default()
    });
    let rig = Rig::on(plane, tempfile::tempdir().unwrap(), Clock::manual(), true);
    let mut state = rig.control.state();
    state
        .wait_for(|state| matches!(state, LinkState::Refused { .. }))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(rig.plane.script.enrolments.load(Ordering::SeqCst), 1);
    rig.control.reconfigured();
    state
        .wait_for(|state| *state == LinkState::Enrolled { epoch: 1 })
        .await
        .unwrap();
}

#[tokio::test]
async fn an_unavailable_control_plane_is_asked_again_less_and_less_often() {
    let refusals = (0..1000).map(|_| Status::unavailable("starting"));
    let plane = Plane::with(Script {
        refuse: std::sync::Mutex::new(refusals.collect()),
        ..Script::default()
    });
    let rig = Rig::on(plane, tempfile::tempdir().unwrap(), Clock::manual(), true);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let asked = rig.plane.script.enrolments.load(Ordering::SeqCst);
    // Steps of 100, 200, 400, … ms, each cut by at most a half.
    assert!((2..=6).contains(&asked), "{asked}");
}

#[tokio::test]
async fn a_stream_that_closes_right_after_opening_is_not_opened_in_a_hurry() {
    let rig = Rig::start().await;
    // Every stream yields a message and ends.
    let closing = async {
        loop {
            let watch = rig.plane.watch().await;
            watch
                .tell(plane::message(proto::v1::watch_response::Message::Stops(
                    Default::default(),
                )))
                .await;
            drop(watch);
        }
    };
    let _ = tokio::time::timeout(Duration::from_millis(1500), closing).await;
    let opened = rig.plane.script.watches.load(Ordering::SeqCst);
    assert!((2..=6).contains(&opened), "{opened}");
}
