use std::time::Duration;

use super::{
    Fixture, act,
    approvals::{claim, opened, question, yes},
    catalogue::unprefixed,
};
use crate::store::{
    StoreError,
    approvals::{ApprovalStatus, ClaimOutcome, ClaimRefusal, Opened},
    desired::GrantDraft,
    stops::{Stop, StopDraft, StopScope, StopSubject},
};

const LONG: Duration = Duration::from_secs(300);

fn stop(scope: StopScope) -> StopDraft {
    StopDraft {
        scope,
        in_namespace: None,
        reason: "alarm".to_owned(),
        by: "ada".to_owned(),
    }
}

pub(super) async fn a_stop_ends_what_it_concerns(fixture: &Fixture) {
    let store = &fixture.store;
    let pending = opened(fixture, question("support-1", "notes.a")).await;
    let approved = opened(fixture, question("support-1", "notes.b")).await;
    store
        .resolve_approval(&approved.id, yes(LONG), None)
        .await
        .unwrap();
    let consumed = opened(fixture, question("support-1", "notes.c")).await;
    store
        .resolve_approval(&consumed.id, yes(LONG), None)
        .await
        .unwrap();
    store.claim_approval(claim(&consumed, "call-1")).await.unwrap();
    let other = opened(fixture, question("claude", "notes.a")).await;
    let made = store
        .create_stop(stop(StopScope::Agent("support-*".into())), act("mesh.stop"))
        .await
        .unwrap();
    assert_eq!(
        (made.denied, made.cancelled),
        (vec![pending.id.clone()], vec![approved.id.clone()])
    );
    let status = async |id: &str| store.approval(id, None).await.unwrap();
    let denied = status(&pending.id).await;
    assert_eq!(
        (denied.status, denied.resolved_via.as_str()),
        (ApprovalStatus::Denied, "stop")
    );
    assert_eq!(denied.reasoning, "alarm");
    assert_eq!(status(&approved.id).await.status, ApprovalStatus::Cancelled);
    assert_eq!(status(&consumed.id).await.status, ApprovalStatus::Approved);
    assert_eq!(status(&other.id).await.status, ApprovalStatus::Pending);
}

pub(super) async fn a_stopped_call_is_neither_opened_nor_claimed(fixture: &Fixture) {
    let store = &fixture.store;
    let approved = opened(fixture, question("claude", "notes.a")).await;
    let made = store
        .create_stop(stop(StopScope::Upstream("mail".into())), act("mesh.stop"))
        .await
        .unwrap();
    store
        .resolve_approval(&approved.id, yes(LONG), None)
        .await
        .unwrap();
    let ClaimOutcome::Claimed { stop_sequence, .. } =
        store.claim_approval(claim(&approved, "call-1")).await.unwrap()
    else {
        panic!("a stop of another upstream does not concern this call");
    };
    assert_eq!(stop_sequence, made.stop.sequence);
    let refused = store
        .open_approval(question("claude", "mail.send"), 100)
        .await
        .unwrap();
    assert!(matches!(refused, Opened::Stopped { stop, .. } if stop == made.stop.id));
    store
        .lift_stop(made.stop.id.get(..8).unwrap(), "bob", act("mesh.resume"))
        .await
        .unwrap();
    let mail = opened(fixture, question("claude", "mail.send")).await;
    store.resolve_approval(&mail.id, yes(LONG), None).await.unwrap();
    store
        .create_stop(stop(StopScope::All), act("mesh.stop"))
        .await
        .unwrap();
    let outcome = store.claim_approval(claim(&mail, "call-2")).await.unwrap();
    assert_eq!(
        outcome,
        ClaimOutcome::Refused(ClaimRefusal::NotApproved(ApprovalStatus::Cancelled))
    );
}

pub(super) async fn a_suspended_grant_comes_back_with_the_time_it_had_left(fixture: &Fixture) {
    let store = &fixture.store;
    let draft = |agent: &str, duration| GrantDraft {
        namespace: "default".to_owned(),
        agent: agent.to_owned(),
        tools: vec!["notes.*".to_owned()],
        duration,
        reason: None,
        granted_by: "ada".to_owned(),
    };
    let grant = store
        .create_grant(draft("claude", LONG), act("mesh.grant"))
        .await
        .unwrap();
    let wide = store
        .create_grant(draft("*", LONG), act("mesh.grant"))
        .await
        .unwrap();
    let agent = store
        .create_stop(stop(StopScope::Agent("claude".into())), act("mesh.stop"))
        .await
        .unwrap()
        .stop;
    let all = store
        .create_stop(stop(StopScope::Namespace("default".into())), act("mesh.stop"))
        .await
        .unwrap()
        .stop;
    let during = store
        .create_grant(draft("claude", Duration::ZERO), act("mesh.grant"))
        .await
        .unwrap();
    assert!(during.suspended_at.is_some());
    assert_eq!(
        store.sweep_grants().await.unwrap(),
        0,
        "the time of suspended grants stands still"
    );
    store.lift_stop(&all.id, "bob", act("mesh.resume")).await.unwrap();
    let find = async |id: &str| {
        store
            .grants(None)
            .await
            .unwrap()
            .into_iter()
            .find(|row| row.grant.id == id)
            .unwrap()
    };
    assert!(
        find(&grant.grant.id).await.suspended_at.is_some(),
        "the other stop still covers it"
    );
    let back = find(&wide.grant.id).await;
    assert_eq!(back.suspended_at, None);
    let lifted = store
        .lift_stop(&agent.id, "bob", act("mesh.resume"))
        .await
        .unwrap();
    let back = find(&grant.grant.id).await;
    let paused = lifted.lifted.unwrap().0 - agent.created_at;
    assert_eq!(back.grant.expires_at, grant.grant.expires_at + paused);
    assert_eq!(back.revision, store.head().await.unwrap().revision);
}

pub(super) async fn a_stop_of_a_service_suspends_grants_for_its_tools_without_a_prefix(fixture: &Fixture) {
    let store = &fixture.store;
    store
        .publish_catalogue(unprefixed("pets", "get_pets"))
        .await
        .unwrap();
    let grant = async |tools: &[&str]| {
        let draft = GrantDraft {
            namespace: "default".to_owned(),
            agent: "claude".to_owned(),
            tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            duration: LONG,
            reason: None,
            granted_by: "ada".to_owned(),
        };
        store
            .create_grant(draft, act("mesh.grant"))
            .await
            .unwrap()
            .grant
            .id
    };
    let own = grant(&["get_pets"]).await;
    let wider = grant(&["get_pets", "get_others"]).await;
    let any = grant(&["get_*"]).await;
    let made = store
        .create_stop(stop(StopScope::Upstream("pets".into())), act("mesh.stop"))
        .await
        .unwrap();
    let during = grant(&["get_pets", "pets.x"]).await;
    let suspended = async || {
        let rows = store.grants(None).await.unwrap();
        let mut ids: Vec<String> = rows
            .into_iter()
            .filter(|row| row.suspended_at.is_some())
            .map(|row| row.grant.id)
            .collect();
        ids.sort();
        ids
    };
    let mut expected = vec![own, during];
    expected.sort();
    assert_eq!(suspended().await, expected, "neither {wider} nor {any}");
    store
        .lift_stop(&made.stop.id, "bob", act("mesh.resume"))
        .await
        .unwrap();
    assert_eq!(suspended().await, Vec::<String>::new());
}

pub(super) async fn stops_have_an_order_of_their_own(fixture: &Fixture) {
    let store = &fixture.store;
    let revision = store.head().await.unwrap().revision;
    let start = store.stops_head().await.unwrap().sequence;
    let session = StopScope::Session {
        id: "chat".into(),
        agent: Some("claude".into()),
        user: None,
    };
    let made = store
        .create_stop(stop(session.clone()), act("mesh.stop"))
        .await
        .unwrap()
        .stop;
    assert_eq!(made.sequence, start + 1);
    assert_eq!(
        store.stops_head().await.unwrap().stops,
        std::slice::from_ref(&made)
    );
    assert_eq!(store.head().await.unwrap().stop_sequence, start + 1);
    store
        .lift_stop(&made.id, "bob", act("mesh.resume"))
        .await
        .unwrap();
    let again = store.lift_stop(&made.id, "bob", act("mesh.resume")).await;
    assert!(matches!(again, Err(StoreError::Conflict { .. })));
    let head = store.stops_head().await.unwrap();
    assert_eq!((head.sequence, head.stops.len()), (start + 2, 0));
    assert_eq!(store.stops(false).await.unwrap().len(), 0);
    assert_eq!(store.stops(true).await.unwrap()[0].scope, session);
    assert_eq!(
        store.head().await.unwrap().revision,
        revision,
        "stops take no revision"
    );
}

#[test]
fn a_stop_concerns_exactly_its_scope() {
    let call = StopSubject {
        namespace: "default",
        agent: "support-1",
        user: "ada",
        session: "chat",
        upstream: "notes",
    };
    let concerns = |scope: StopScope, in_namespace: Option<&str>| {
        Stop {
            id: String::new(),
            sequence: 1,
            scope,
            in_namespace: in_namespace.map(str::to_owned),
            reason: String::new(),
            by: String::new(),
            created_at: 0,
            lifted: None,
        }
        .concerns(&call)
    };
    let session = |id: &str, agent: Option<&str>| StopScope::Session {
        id: id.to_owned(),
        agent: agent.map(str::to_owned),
        user: None,
    };
    assert!(concerns(StopScope::All, None));
    assert!(!concerns(StopScope::All, Some("other")));
    assert!(concerns(StopScope::Namespace("default".into()), None));
    assert!(concerns(StopScope::Agent("support-?".into()), Some("default")));
    assert!(!concerns(StopScope::Agent("Support-*".into()), None));
    assert!(concerns(session("chat", None), None));
    assert!(!concerns(session("chat", Some("claude")), None));
    assert!(concerns(StopScope::Upstream("notes".into()), None));
    assert!(!concerns(StopScope::Upstream("note".into()), None));
}
