//! What a sidecar gets when it comes back.

use proto::v1::enrol_request::Proof;
use tonic::Code;

use super::plane::Plane;

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
