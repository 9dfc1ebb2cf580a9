//! Approvals, quotas, catalogues.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use proto::v1;
use proto::v1::approval_state::Status as Wire;

use super::approvals::{ApprovalError, ApprovalStatus, Claim, Question};
use super::plane::approval;
use super::quotas::Limited;
use super::*;

async fn enrolled() -> Rig {
    let rig = Rig::start().await;
    let mut state = rig.control.state();
    state
        .wait_for(|state| *state == LinkState::Enrolled { epoch: 1 })
        .await
        .unwrap();
    rig
}

fn question(call_id: &str) -> Question {
    Question {
        call_id: call_id.into(),
        ..Question::default()
    }
}

#[tokio::test]
async fn all_waiters_share_one_stream_and_each_hears_its_own_resolution() {
    let rig = enrolled().await;
    let client = rig.control.approvals();
    let (one, two) = (
        client.open(question("q1")).await.unwrap(),
        client.open(question("q2")).await.unwrap(),
    );
    let plane = async {
        let (asked, tell) = rig.plane.approvals().await;
        assert_eq!(asked.after, 5);
        for (id, status, cursor) in [("q1", Wire::Approved, 6), ("q2", Wire::Denied, 7)] {
            tell.send(Ok(approval(id, status, cursor))).await.unwrap();
        }
        tell
    };
    let limit = Duration::from_secs(10);
    let (one, two, _tell) = tokio::join!(client.wait(&one, limit), client.wait(&two, limit), plane);
    assert_eq!(one.unwrap().status, ApprovalStatus::Approved);
    assert_eq!(two.unwrap().status, ApprovalStatus::Denied);
}

#[tokio::test]
async fn a_wait_that_ends_in_vain_answers_pending() {
    let rig = enrolled().await;
    let client = rig.control.approvals();
    let opened = client.open(question("q1")).await.unwrap();
    let waited = client.wait(&opened, Duration::from_millis(20)).await.unwrap();
    assert_eq!(waited.status, ApprovalStatus::Pending);
    let cancelled = client.cancel("q1", "call").await.unwrap();
    assert_eq!(cancelled.status, ApprovalStatus::Cancelled);
}

#[tokio::test]
async fn a_resolution_that_comes_before_the_wait_is_not_missed() {
    let rig = enrolled().await;
    let client = rig.control.approvals();
    let opened = client.open(question("q1")).await.unwrap();
    let other = client.open(question("q2")).await.unwrap();
    let first = client.wait(&other, Duration::from_secs(10));
    let plane = async {
        let (_, tell) = rig.plane.approvals().await;
        tell.send(Ok(approval("q1", Wire::Approved, 6))).await.unwrap();
        tell.send(Ok(approval("q2", Wire::Denied, 7))).await.unwrap();
        tell
    };
    let (_, _tell) = tokio::join!(first, plane);
    let late = client.wait(&opened, Duration::from_secs(10)).await.unwrap();
    assert_eq!(late.status, ApprovalStatus::Approved);
}

#[tokio::test]
async fn a_claim_answers_what_it_was_checked_against_or_why_not() {
    let rig = enrolled().await;
    let client = rig.control.approvals();
    let claimed = v1::Claimed {
        revision: Some(plane::revision(1, 9)),
        stop_sequence: 4,
        approval: Some(approval("q1", Wire::Approved, 8)),
    };
    let refused = v1::Refusal {
        code: "already_claimed".into(),
        message: "taken".into(),
    };
    rig.plane.script.claims.lock().unwrap().extend([
        v1::claim_response::Outcome::Claimed(claimed),
        v1::claim_response::Outcome::Refused(refused),
    ]);
    let binding = approvals::Binding::default();
    let first = client.claim("q1", "c1", &binding).await.unwrap();
    assert!(matches!(first, Claim::Claimed { revision, stop_sequence: 4, .. } if revision.number == 9));
    let second = client.claim("q1", "c2", &binding).await.unwrap();
    assert!(matches!(second, Claim::Refused { code, .. } if code == "already_claimed"));
    let third = client.claim("q1", "c3", &binding).await;
    assert!(matches!(third, Err(ApprovalError::Unavailable { .. })));
}

#[tokio::test]
async fn a_window_is_leased_in_lots_and_refused_when_it_is_used_up() {
    let rig = enrolled().await;
    rig.plane.script.quota.store(6, Ordering::SeqCst);
    let quotas = rig.control.quotas();
    for _ in 0..6 {
        quotas.attempt("p", "a", 60).await.unwrap();
    }
    assert!(rig.plane.script.leases.load(Ordering::SeqCst) <= 3);
    let refused = quotas.attempt("p", "a", 60).await;
    assert!(matches!(
        refused,
        Err(Limited::Reached {
            retry_after: Some(_),
            ..
        })
    ));
    let asked = rig.plane.script.leases.load(Ordering::SeqCst);
    assert!(quotas.attempt("p", "a", 60).await.is_err());
    assert_eq!(
        rig.plane.script.leases.load(Ordering::SeqCst),
        asked,
        "asking is in vain for a while"
    );
}

#[tokio::test]
async fn without_the_control_plane_a_share_of_the_last_window_is_left() {
    let rig = enrolled().await;
    rig.plane.script.quota.store(100, Ordering::SeqCst);
    let quotas = rig.control.quotas();
    for _ in 0..5 {
        quotas.attempt("p", "a", 1000).await.unwrap();
    }
    rig.plane.cut();
    let mut alone = 0;
    while quotas.attempt("p", "a", 1000).await.is_ok() {
        alone += 1;
    }
    assert_eq!(alone, 5);
    let total = quotas.reserve("p", "a", 10).await;
    assert!(matches!(total, Err(Limited::Unavailable { .. })));
}

#[tokio::test]
async fn a_reservation_is_given_back_unless_it_is_spent() {
    let rig = enrolled().await;
    rig.plane.script.quota.store(2, Ordering::SeqCst);
    let quotas = rig.control.quotas();
    quotas.reserve("p", "a", 2).await.unwrap().spend();
    drop(quotas.reserve("p", "a", 2).await.unwrap());
    let script = rig.plane.script.clone();
    until("one is given back", || {
        script.returned.load(Ordering::SeqCst) == 1
    })
    .await;
    assert!(matches!(
        quotas.reserve("p", "a", 2).await,
        Err(Limited::Reached { .. })
    ));
}

#[tokio::test]
async fn catalogues_are_published_and_one_outside_the_scope_does_not_hold_up_the_others() {
    let rig = enrolled().await;
    for upstream in ["outside", "github"] {
        rig.control.publish(Catalogue {
            upstream: upstream.into(),
            tools: vec![PublishedTool {
                name: format!("{upstream}.read"),
                fingerprint: [1; 32],
                declared: Bytes::from_static(b"{}"),
                kind: "mcp",
            }],
        });
    }
    let mut answers = rig.control.published();
    answers
        .wait_for(|answers| answers.contains_key("github"))
        .await
        .unwrap();
    let answer = answers.borrow().get("github").cloned().unwrap();
    assert_eq!(answer.pins.get("github.read"), Some(&PinStatus::Pinned));
}
