//! Questions to people, and limits.

use std::time::Duration;

use crate::store::approvals::Resolution;
use proto::v1::approval_state::Status as State;
use proto::v1::approvals_client::ApprovalsClient;
use proto::v1::claim_response::Outcome;
use proto::v1::quotas_client::QuotasClient;
use proto::v1::{
    Binding, CancelApprovalRequest, ClaimRequest, LeaseQuotaRequest, OpenApprovalRequest, QuotaKey,
    WatchApprovalsRequest, quota_key,
};
use tonic::Code;

use super::plane::{LONG, Plane, eventually, policy};

fn binding(agent: &str) -> Binding {
    Binding {
        agent: agent.to_owned(),
        tool: "files.write".to_owned(),
        fingerprint: vec![1; 32].into(),
        arguments_digest: vec![2; 32].into(),
        digest_key_id: "k".to_owned(),
        ..Binding::default()
    }
}

pub(super) fn question(call_id: &str, agent: &str) -> OpenApprovalRequest {
    OpenApprovalRequest {
        call_id: call_id.to_owned(),
        binding: Some(binding(agent)),
        params: b"{}".as_slice().into(),
        classification: b"{}".as_slice().into(),
        identity: "bound".to_owned(),
        ..OpenApprovalRequest::default()
    }
}

pub(super) fn yes() -> Resolution {
    Resolution {
        approve: true,
        by: "test".to_owned(),
        via: "rest".to_owned(),
        reasoning: String::new(),
        confidence: None,
        ttl: Duration::from_secs(60),
    }
}

#[tokio::test]
async fn an_approval_is_seen_by_its_waiter_and_claimed_once() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut client = ApprovalsClient::new(plane.channel.clone());
    let opened = client
        .open(sidecar.request(question("call-1", "a")))
        .await
        .unwrap()
        .into_inner();
    let joined = client
        .open(sidecar.request(question("call-2", "a")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(opened.id, joined.id);
    let request = WatchApprovalsRequest {
        after: 0,
        ids: vec![opened.id.clone()],
    };
    let mut events = client.watch(sidecar.request(request)).await.unwrap().into_inner();
    assert_eq!(events.message().await.unwrap().unwrap().status(), State::Pending);
    plane
        .store()
        .resolve_approval(&opened.id, yes(), None)
        .await
        .unwrap();
    let approved = async {
        loop {
            let event = events.message().await.unwrap().unwrap();
            assert_eq!(event.id, opened.id);
            if event.status() == State::Approved {
                return;
            }
        }
    };
    tokio::time::timeout(LONG, approved)
        .await
        .expect("the resolution in time");
    let claim = |call: &str| ClaimRequest {
        id: opened.id.clone(),
        call_id: call.to_owned(),
        binding: Some(binding("a")),
    };
    for _ in 0..2 {
        let claimed = client
            .claim(sidecar.request(claim("call-1")))
            .await
            .unwrap()
            .into_inner();
        assert!(
            matches!(claimed.outcome, Some(Outcome::Claimed(_))),
            "repeating a claim answers the same"
        );
    }
    let second = client
        .claim(sidecar.request(claim("call-2")))
        .await
        .unwrap()
        .into_inner();
    let Some(Outcome::Refused(refusal)) = second.outcome else {
        panic!("claimed twice")
    };
    assert_eq!(refusal.code, "already_claimed");
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_waiter_here_sees_the_resolution() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut client = ApprovalsClient::new(plane.channel.clone());
    let opened = client
        .open(sidecar.request(question("call-1", "a")))
        .await
        .unwrap()
        .into_inner();
    let core = plane.plane.core();
    let (waited, resolved) = tokio::join!(
        core.approvals.wait(&*core.store, &opened.id, LONG),
        plane.store().resolve_approval(&opened.id, yes(), None)
    );
    assert_eq!(waited.unwrap().status, resolved.unwrap().status);
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn nobody_asks_or_cancels_for_an_agent_outside_the_scope() {
    let plane = Plane::start().await;
    let ours = plane.enrol("default", &["a"]).await;
    let theirs = plane.enrol("default", &["b"]).await;
    let mut client = ApprovalsClient::new(plane.channel.clone());
    let refused = client
        .open(ours.request(question("call-1", "b")))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let opened = client
        .open(theirs.request(question("call-1", "b")))
        .await
        .unwrap()
        .into_inner();
    let cancel = CancelApprovalRequest {
        id: opened.id,
        call_id: "call-1".to_owned(),
    };
    let refused = client.cancel(ours.request(cancel.clone())).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let cancelled = client.cancel(theirs.request(cancel)).await.unwrap().into_inner();
    assert_eq!(cancelled.status(), State::Cancelled);
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn an_unanswered_approval_times_out() {
    let plane = Plane::start_with(|options| options.settings.approval_timeout_ms = 100).await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut client = ApprovalsClient::new(plane.channel.clone());
    let opened = client
        .open(sidecar.request(question("call-1", "a")))
        .await
        .unwrap()
        .into_inner();
    let core = plane.plane.core();
    let waited = core.approvals.wait(&*core.store, &opened.id, LONG).await.unwrap();
    assert_eq!(waited.status.as_str(), "timeout");
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_limit_is_leased_once_per_lease_never_beyond_and_by_each_namespace_apart() {
    let plane = Plane::start().await;
    plane
        .put_policy(&format!(
            "{}rate_limit: {{max_total: 3}}\n",
            policy("p", "a", "*")
        ))
        .await;
    eventually("the policy", async || {
        plane.plane.core().hub.resource("policy", "p").is_some()
    })
    .await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut client = QuotasClient::new(plane.channel.clone());
    let lease = |id: &str| LeaseQuotaRequest {
        key: Some(QuotaKey {
            policy: "p".to_owned(),
            agent: "a".to_owned(),
            kind: quota_key::Kind::Total.into(),
        }),
        want: 2,
        lease_id: id.to_owned(),
        limit: 1_000,
        unleased: 0,
    };
    let mut unknown = lease("l0");
    if let Some(key) = &mut unknown.key {
        key.policy = "unknown".to_owned();
    }
    let refused = client.lease(sidecar.request(unknown)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "the caller's word is no limit");
    for (id, granted) in [("l1", 2), ("l1", 2), ("l2", 1), ("l3", 0)] {
        let lot = client
            .lease(sidecar.request(lease(id)))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(lot.granted, granted, "{id}");
    }
    let elsewhere = plane.enrol("dev", &["*"]).await;
    let lot = client
        .lease(elsewhere.request(lease("l1")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(lot.granted, 2, "the same agent name in another namespace");
    plane.plane.shutdown().await;
}
