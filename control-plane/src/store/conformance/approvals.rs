use std::time::Duration;

use super::{Fixture, act, catalogue::unprefixed};
use crate::store::{
    Revision, StoreError,
    approvals::{
        Approval, ApprovalDraft, ApprovalFilter, ApprovalStatus, Binding, Claim, ClaimOutcome, ClaimRefusal,
        Opened, Resolution,
    },
};

const LONG: Duration = Duration::from_secs(300);

pub(super) fn question(agent: &str, tool: &str) -> ApprovalDraft {
    ApprovalDraft {
        namespace: "default".to_owned(),
        sidecar: "s1".to_owned(),
        call_id: "call-1".to_owned(),
        binding: Binding {
            agent: agent.to_owned(),
            user: String::new(),
            tool: tool.to_owned(),
            fingerprint: vec![1; 32],
            arguments_digest: vec![2; 32],
            digest_key_id: "k1".to_owned(),
            session: "chat".to_owned(),
        },
        params: r#"{"path":"a"}"#.into(),
        classification: "{}".into(),
        policy_rule: "support".to_owned(),
        rule_index: 3,
        revision: Revision::new(1, 4),
        message: "ask".to_owned(),
        injection_risk: true,
        resources: vec!["note://a".to_owned()],
        identity: "bound".to_owned(),
        floors: vec!["pin".to_owned()],
        timeout: LONG,
    }
}

pub(super) fn yes(ttl: Duration) -> Resolution {
    Resolution {
        approve: true,
        by: "ada".to_owned(),
        via: "rest".to_owned(),
        reasoning: "fine".to_owned(),
        confidence: Some(0.5),
        ttl,
    }
}

pub(super) async fn opened(fixture: &Fixture, draft: ApprovalDraft) -> Approval {
    match fixture.store.open_approval(draft, 100).await.unwrap() {
        Opened::New(approval) => approval,
        other => panic!("not new: {other:?}"),
    }
}

pub(super) fn claim(approval: &Approval, call_id: &str) -> Claim {
    Claim {
        id: approval.id.clone(),
        namespace: approval.asked.namespace.clone(),
        call_id: call_id.to_owned(),
        binding: approval.asked.binding.clone(),
    }
}

pub(super) async fn the_same_question_joins_while_it_is_open(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    let draft = question("claude", "notes.delete");
    let (one, two) = tokio::join!(
        store.open_approval(draft.clone(), 100),
        other.open_approval(draft.clone(), 100)
    );
    let ids: Vec<String> = [one.unwrap(), two.unwrap()]
        .into_iter()
        .map(|opened| match opened {
            Opened::New(approval) | Opened::Joined(approval) => approval.id,
            Opened::Stopped { .. } | Opened::TooMany { .. } => {
                panic!("no stop holds, and nothing else is asked")
            }
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
    let first = store.approval(&ids[0], None).await.unwrap();
    assert_eq!(first.asked, draft);
    store.resolve_approval(&first.id, yes(LONG), None).await.unwrap();
    assert!(
        matches!(store.open_approval(draft.clone(), 100).await.unwrap(), Opened::Joined(joined) if joined.id == first.id)
    );
    store.claim_approval(claim(&first, "call-1")).await.unwrap();
    assert_ne!(opened(fixture, draft.clone()).await.id, first.id);
    let mut elsewhere = draft;
    elsewhere.namespace = "other".to_owned();
    opened(fixture, elsewhere).await;
    other.close().await;
}

pub(super) async fn an_agent_has_only_so_many_questions_open(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    let tools: Vec<String> = (0..8).map(|n| format!("notes.delete{n}")).collect();
    let racing = tools.iter().enumerate().map(|(n, tool)| {
        let store = if n % 2 == 0 { store } else { &other };
        store.open_approval(question("claude", tool), 3)
    });
    let outcomes = futures_util::future::join_all(racing).await;
    let mut first = Vec::new();
    for outcome in outcomes {
        match outcome.unwrap() {
            Opened::New(approval) => first.push(approval),
            Opened::TooMany { pending } => assert_eq!(pending, 3),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(first.len(), 3);
    // What is open is joined; another agent, and the agent of that name in another namespace, ask on their own account.
    let again = store.open_approval(first[0].asked.clone(), 3).await.unwrap();
    assert!(matches!(again, Opened::Joined(joined) if joined.id == first[0].id));
    let asked = store.open_approval(question("another", "notes.delete"), 3).await;
    assert!(matches!(asked, Ok(Opened::New(_))));
    let mut elsewhere = question("claude", "notes.delete");
    elsewhere.namespace = "elsewhere".to_owned();
    let asked = store.open_approval(elsewhere, 3).await;
    assert!(matches!(asked, Ok(Opened::New(_))));
    // An answer makes room for one more.
    store
        .resolve_approval(&first[0].id, yes(LONG), None)
        .await
        .unwrap();
    let asked = store.open_approval(question("claude", "notes.more"), 3).await;
    assert!(matches!(asked, Ok(Opened::New(_))));
    let asked = store.open_approval(question("claude", "notes.most"), 3).await;
    assert!(matches!(asked, Ok(Opened::TooMany { .. })));
    other.close().await;
}

pub(super) async fn a_persons_no_answers_the_same_call_for_a_while(fixture: &Fixture) {
    let store = &fixture.store;
    let no = |ttl| Resolution {
        approve: false,
        ..yes(ttl)
    };
    let draft = question("claude", "notes.delete");
    let asked = opened(fixture, draft.clone()).await;
    store.resolve_approval(&asked.id, no(LONG), None).await.unwrap();
    let again = store.open_approval(draft.clone(), 100).await.unwrap();
    let Opened::Joined(denied) = again else {
        panic!("{again:?}")
    };
    assert_eq!((denied.id, denied.status), (asked.id, ApprovalStatus::Denied));
    // It is the answer to exactly this call.
    let mut other = draft.clone();
    other.binding.arguments_digest = [9; 32].to_vec();
    opened(fixture, other).await;
    // A no that no longer holds is no answer, and neither is an end that no person brought about.
    let brief = question("claude", "notes.rename");
    let asked = opened(fixture, brief.clone()).await;
    store
        .resolve_approval(&asked.id, no(Duration::ZERO), None)
        .await
        .unwrap();
    assert_ne!(opened(fixture, brief).await.id, asked.id);
    let cancelled = question("claude", "notes.move");
    let asked = opened(fixture, cancelled.clone()).await;
    store.cancel_approval("default", &asked.id).await.unwrap();
    assert_ne!(opened(fixture, cancelled).await.id, asked.id);
}

pub(super) async fn an_answer_is_given_once(fixture: &Fixture) {
    let store = &fixture.store;
    let asked = opened(fixture, question("claude", "notes.delete")).await;
    let answered = store
        .resolve_approval(
            asked.id.get(..8).unwrap(),
            yes(Duration::from_secs(60)),
            Some(act("mesh.resolve")),
        )
        .await
        .unwrap();
    assert_eq!(answered.status, ApprovalStatus::Approved);
    assert_eq!(answered.expires_at - answered.resolved_at.unwrap(), 60_000_000);
    assert_eq!(
        store.approval(&asked.id, Some("default")).await.unwrap(),
        answered
    );
    let again = store.resolve_approval(&asked.id, yes(LONG), None).await;
    assert!(matches!(
        again,
        Err(StoreError::AlreadyResolved {
            status: ApprovalStatus::Approved,
            ..
        })
    ));
    assert!(matches!(
        store.approval(&asked.id, Some("other")).await,
        Err(StoreError::NotFound { .. })
    ));
    let missing = store.resolve_approval("ffffffffffff", yes(LONG), None).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })));
}

pub(super) async fn two_racing_claims_have_one_winner(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    let asked = opened(fixture, question("claude", "notes.delete")).await;
    let early = store.claim_approval(claim(&asked, "call-1")).await.unwrap();
    assert_eq!(
        early,
        ClaimOutcome::Refused(ClaimRefusal::NotApproved(ApprovalStatus::Pending))
    );
    store.resolve_approval(&asked.id, yes(LONG), None).await.unwrap();
    let (one, two) = tokio::join!(
        store.claim_approval(claim(&asked, "call-1")),
        other.claim_approval(claim(&asked, "call-2"))
    );
    let outcomes = [one.unwrap(), two.unwrap()];
    let won = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, ClaimOutcome::Claimed { .. }))
        .count();
    assert_eq!(won, 1);
    assert!(outcomes.contains(&ClaimOutcome::Refused(ClaimRefusal::AlreadyClaimed)));
    let winner = store.approval(&asked.id, None).await.unwrap();
    let again = other
        .claim_approval(claim(&asked, &winner.consumed_by))
        .await
        .unwrap();
    let ClaimOutcome::Claimed {
        approval, revision, ..
    } = again
    else {
        panic!("repeating a claim answers the same")
    };
    assert_eq!(approval.consumed_at, winner.consumed_at);
    assert_eq!(revision, store.head().await.unwrap().revision);
    other.close().await;
}

pub(super) async fn a_claim_is_refused_for_another_binding(fixture: &Fixture) {
    let store = &fixture.store;
    let asked = opened(fixture, question("claude", "notes.delete")).await;
    store.resolve_approval(&asked.id, yes(LONG), None).await.unwrap();
    let mut other_arguments = claim(&asked, "call-1");
    other_arguments.binding.arguments_digest = vec![9; 32];
    let mut other_namespace = claim(&asked, "call-1");
    other_namespace.namespace = "other".to_owned();
    for wrong in [other_arguments, other_namespace] {
        let outcome = store.claim_approval(wrong).await.unwrap();
        assert_eq!(outcome, ClaimOutcome::Refused(ClaimRefusal::NotFound));
    }
}

pub(super) async fn deadlines_end_what_is_overdue(fixture: &Fixture) {
    let store = &fixture.store;
    let mut brief = question("claude", "notes.one");
    brief.timeout = Duration::ZERO;
    let unanswered = opened(fixture, brief.clone()).await;
    let late = store.resolve_approval(&unanswered.id, yes(LONG), None).await;
    assert!(matches!(
        late,
        Err(StoreError::AlreadyResolved {
            status: ApprovalStatus::Timeout,
            ..
        })
    ));
    let unanswered = store.approval(&unanswered.id, None).await.unwrap();
    assert_eq!(unanswered.status, ApprovalStatus::Timeout);
    let again = opened(fixture, brief).await;
    assert_eq!(store.sweep_approvals().await.unwrap(), 1);
    assert_eq!(
        store.approval(&again.id, None).await.unwrap().status,
        ApprovalStatus::Timeout
    );
    let unused = opened(fixture, question("claude", "notes.two")).await;
    store
        .resolve_approval(&unused.id, yes(Duration::ZERO), None)
        .await
        .unwrap();
    let outcome = store.claim_approval(claim(&unused, "call-1")).await.unwrap();
    assert_eq!(
        outcome,
        ClaimOutcome::Refused(ClaimRefusal::NotApproved(ApprovalStatus::Expired))
    );
    let unused = store.approval(&unused.id, None).await.unwrap();
    assert_eq!(
        (unused.status, unused.resolved_by.as_str()),
        (ApprovalStatus::Expired, "ada")
    );
    assert_eq!(store.sweep_approvals().await.unwrap(), 0);
}

pub(super) async fn a_cancelled_call_cancels_its_question(fixture: &Fixture) {
    let store = &fixture.store;
    let asked = opened(fixture, question("claude", "notes.delete")).await;
    assert!(matches!(
        store.cancel_approval("other", &asked.id).await,
        Err(StoreError::NotFound { .. })
    ));
    assert_eq!(
        store.cancel_approval("default", &asked.id).await.unwrap().status,
        ApprovalStatus::Cancelled
    );
    let refused = store.resolve_approval(&asked.id, yes(LONG), None).await;
    assert!(matches!(
        refused,
        Err(StoreError::AlreadyResolved {
            status: ApprovalStatus::Cancelled,
            ..
        })
    ));
}

pub(super) async fn the_feed_has_every_event_in_order(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    let start = store.head().await.unwrap().approval_cursor;
    let questions = (0..12).map(|index| {
        let store = if index % 2 == 0 {
            store.clone()
        } else {
            other.clone()
        };
        async move {
            let draft = question("claude", &format!("notes.t{index}"));
            let Opened::New(asked) = store.open_approval(draft, 100).await.unwrap() else {
                panic!("not new")
            };
            store.resolve_approval(&asked.id, yes(LONG), None).await.unwrap();
            store.claim_approval(claim(&asked, "call-1")).await.unwrap();
        }
    });
    futures_util::future::join_all(questions).await;
    let events = store.approval_events_after(start, 100).await.unwrap();
    let cursors: Vec<u64> = events.iter().map(|event| event.cursor).collect();
    assert_eq!(cursors, (start + 1..=start + 36).collect::<Vec<_>>());
    assert_eq!(events.iter().filter(|event| event.consumed).count(), 12);
    assert_eq!(store.head().await.unwrap().approval_cursor, start + 36);
    assert_eq!(store.approval_events_after(start + 30, 3).await.unwrap().len(), 3);
    other.close().await;
}

pub(super) async fn approvals_are_filtered_and_paged(fixture: &Fixture) {
    let store = &fixture.store;
    for tool in ["notes.a", "notes.b", "mail.a"] {
        opened(fixture, question("claude", tool)).await;
    }
    let denied = opened(fixture, question("cursor", "notes.a")).await;
    store
        .resolve_approval(
            &denied.id,
            Resolution {
                approve: false,
                ..yes(LONG)
            },
            None,
        )
        .await
        .unwrap();
    let count = async |filter: ApprovalFilter| store.approvals(filter).await.unwrap().len();
    let filter = ApprovalFilter::default;
    assert_eq!(count(filter()).await, 4);
    assert_eq!(
        count(ApprovalFilter {
            tool: Some("notes.*".into()),
            ..filter()
        })
        .await,
        3
    );
    assert_eq!(
        count(ApprovalFilter {
            tool: Some("n%".into()),
            ..filter()
        })
        .await,
        0
    );
    assert_eq!(
        count(ApprovalFilter {
            agent: Some("c?rsor".into()),
            ..filter()
        })
        .await,
        1
    );
    assert_eq!(
        count(ApprovalFilter {
            status: Some(ApprovalStatus::Denied),
            ..filter()
        })
        .await,
        1
    );
    assert_eq!(
        count(ApprovalFilter {
            namespace: Some("other".into()),
            ..filter()
        })
        .await,
        0
    );
    store
        .publish_catalogue(unprefixed("pets", "get_pets"))
        .await
        .unwrap();
    for tool in ["get_pets", "pets.x", "petshop.x"] {
        opened(fixture, question("pat", tool)).await;
    }
    for (upstream, expected) in [
        ("notes", 3),
        ("pets", 2),
        ("petshop", 1),
        ("get_pets", 0),
        ("p%", 0),
    ] {
        let of = ApprovalFilter {
            upstream: Some(upstream.into()),
            ..filter()
        };
        assert_eq!(count(of).await, expected, "{upstream}");
    }
    let first = store
        .approvals(ApprovalFilter { limit: 3, ..filter() })
        .await
        .unwrap();
    let rest = ApprovalFilter {
        before: Some(first[2].id.clone()),
        ..filter()
    };
    assert_eq!(count(rest).await, 4);
}
