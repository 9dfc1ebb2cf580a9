//! Approvals of another namespace.

use proto::v1::{
    Binding, CancelApprovalRequest, ClaimRequest, OpenApprovalRequest, WatchApprovalsRequest, claim_response,
};
use serde_json::json;
use tests::fleet::Fleet;
use tests::wait;
use tonic::Code;

use super::{LASTING, blue, red};

#[tokio::test]
async fn approvals_of_another_namespace_cannot_be_seen_joined_claimed_or_cancelled() {
    let fleet = Fleet::on_sqlite(LASTING).await;
    let sidecar = blue(&fleet).await;
    let operator = fleet.operator();
    let agent = sidecar.stateless_agent("blue-agent");
    let asked = agent.call_modern("blue_server.write_item", json!({"n": 1})).await;
    let id = asked.decision()["approval_id"].as_str().unwrap().to_owned();
    operator
        .post(&format!("/approvals/{id}/approve"), json!({}))
        .await;

    let red = red(&fleet).await;
    let binding = |agent: &str| Binding {
        agent: agent.to_owned(),
        tool: "blue_server.write_item".to_owned(),
        fingerprint: vec![1; 32].into(),
        arguments_digest: vec![2; 32].into(),
        digest_key_id: red.enrolled.digest_key_id.clone(),
        ..Binding::default()
    };
    let watch = WatchApprovalsRequest {
        after: 1,
        ids: vec![id.clone()],
    };
    let stream = red.approvals().watch(red.request(watch)).await;
    let claim = ClaimRequest {
        id: id.clone(),
        call_id: "stolen".to_owned(),
        binding: Some(binding("red-1")),
    };
    match red.approvals().claim(red.request(claim)).await {
        Ok(answer) => match answer.into_inner().outcome.unwrap() {
            claim_response::Outcome::Refused(refusal) => assert_eq!(refusal.code, "not_found"),
            claim_response::Outcome::Claimed(claimed) => panic!("claimed: {claimed:?}"),
        },
        Err(status) => assert_eq!(status.code(), Code::NotFound, "{status}"),
    }
    let cancel = CancelApprovalRequest {
        id: id.clone(),
        call_id: "stolen".to_owned(),
    };
    let cancelled = red.approvals().cancel(red.request(cancel)).await.unwrap_err();
    assert_eq!(cancelled.code(), Code::NotFound, "{cancelled}");
    let open = |agent: &str| OpenApprovalRequest {
        call_id: format!("call of {agent}"),
        binding: Some(binding(agent)),
        params: b"{}".as_slice().into(),
        classification: b"{}".as_slice().into(),
        identity: "asserted".to_owned(),
        ..OpenApprovalRequest::default()
    };
    let foreign = red
        .approvals()
        .open(red.request(open("blue-agent")))
        .await
        .unwrap_err();
    assert_eq!(foreign.code(), Code::PermissionDenied, "{foreign}");
    let own = red
        .approvals()
        .open(red.request(open("red-1")))
        .await
        .unwrap()
        .into_inner();
    assert_ne!(own.id, id);
    operator
        .post(&format!("/approvals/{}/deny", own.id), json!({}))
        .await;
    if let Ok(stream) = stream {
        let mut stream = stream.into_inner();
        loop {
            let state = tokio::time::timeout(wait::PATIENCE, stream.message())
                .await
                .unwrap();
            let Ok(Some(state)) = state else {
                panic!("{state:?}")
            };
            assert_ne!(state.id, id, "an approval of another namespace: {state:?}");
            if state.id == own.id && state.resolved_at > 0 {
                break;
            }
        }
    }
    // It is still there for whom it was given.
    let called = agent.call_modern("blue_server.write_item", json!({"n": 1})).await;
    assert!(called.is_ok(), "{}", called.answer);
}
