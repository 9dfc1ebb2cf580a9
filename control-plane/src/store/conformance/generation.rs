use std::time::Duration;

use super::{
    Fixture, act,
    approvals::{claim, opened, question, yes},
    sidecars::{enrolled, resumption},
    sources::{Source, checkpoint, verified},
};
use crate::store::{
    Revision, StoreError,
    approvals::ApprovalStatus,
    desired::Expected,
    records::{GapKind, RecordFilter},
};

const LONG: Duration = Duration::from_secs(300);

pub(super) async fn a_new_generation_restarts_the_chain_and_loses_nothing(fixture: &Fixture) {
    let store = &fixture.store;
    let draft = super::desired::policy("a", "{}");
    store
        .put_policy(draft, Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    let (pending, approved, consumed) = (
        opened(fixture, question("claude", "notes.a")).await,
        opened(fixture, question("claude", "notes.b")).await,
        opened(fixture, question("claude", "notes.c")).await,
    );
    for approval in [&approved, &consumed] {
        store
            .resolve_approval(&approval.id, yes(LONG), None)
            .await
            .unwrap();
    }
    store.claim_approval(claim(&consumed, "call-1")).await.unwrap();
    enrolled(fixture, "s1").await;
    let mut source = Source::new("s1", 1);
    store.ingest(vec![source.batch(3)]).await.unwrap();
    let trusted = checkpoint(&**store).await;
    let behind = source.batch(2);
    store.ingest(vec![behind.clone()]).await.unwrap();
    let before = verified(&**store).await;

    let head = store.head().await.unwrap().revision;
    let revision = store
        .begin_generation(head.generation, "restored from a backup", "ada")
        .await
        .unwrap();
    assert_eq!(revision, Revision::new(head.generation + 1, 0));
    assert!(matches!(
        store.changes_after(head, 10).await,
        Err(StoreError::ChangesGone { .. })
    ));
    assert_eq!(store.desired_state().await.unwrap().resources.len(), 1);
    let status = async |id: &str| store.approval(id, None).await.unwrap().status;
    assert_eq!(status(&pending.id).await, ApprovalStatus::Pending);
    assert_eq!(status(&approved.id).await, ApprovalStatus::Cancelled);
    assert_eq!(status(&consumed.id).await, ApprovalStatus::Approved);

    // Nothing is lost, nothing is twice: what no checkpoint covered yet is covered by the next one.
    assert_eq!(verified(&**store).await, before + 1);
    let records = store.records_after(trusted.at, 100).await.unwrap();
    assert_eq!(
        records
            .iter()
            .map(|record| record.at.generation)
            .collect::<Vec<_>>(),
        [head.generation, head.generation, revision.generation]
    );
    assert_eq!(records[2].at.seq, 1);
    assert!(records[2].header.contains("mesh.generation"));
    let marks = store.ingest(vec![behind, source.batch(1)]).await.unwrap();
    assert_eq!(
        (marks[0].committed, marks[0].settled, marks[0].generation),
        (6, 3, revision.generation)
    );
    assert_eq!(verified(&**store).await, before + 2);
    checkpoint(&**store).await;
    assert_eq!(store.epoch_marks("s1", vec![1]).await.unwrap()[0].settled, 6);
    let next = store
        .put_policy(
            super::desired::policy("b", "{}"),
            Expected::Any,
            act("mesh.policy_edit"),
        )
        .await;
    assert_eq!(next.unwrap().revision, Revision::new(revision.generation, 1));
}

pub(super) async fn records_that_a_restore_lost_are_a_gap(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    let mut source = Source::new("s1", 1);
    store.ingest(vec![source.batch(2)]).await.unwrap();
    // Numbers 3 and 4 were settled in a database that is gone, and forgotten by their source.
    source.batch(2);
    let later = source.batch(2);
    assert!(matches!(
        store.ingest(vec![later.clone()]).await,
        Err(StoreError::Hole { .. })
    ));
    store
        .begin_generation(1, "restored from a backup", "ada")
        .await
        .unwrap();
    assert_eq!(store.ingest(vec![later]).await.unwrap()[0].committed, 6);
    let gap = store.gaps().await.unwrap().remove(0);
    assert_eq!(gap.kind, GapKind::Lost { from: 3, to: 4 });
    source.batch(1);
    let hole = source.batch(1);
    assert!(
        matches!(store.ingest(vec![hole]).await, Err(StoreError::Hole { .. })),
        "only the first may skip"
    );
    // An epoch that began after the backup is delivered too, and new epochs never take its number.
    let next = store.resume(resumption("s1")).await.unwrap();
    assert!(next.sidecar.epoch > 1000);
    let forgotten = Source::new("s1", 2).batch(3);
    assert_eq!(store.ingest(vec![forgotten]).await.unwrap()[0].committed, 3);
    let ahead = Source::new("s1", next.sidecar.epoch + 1).batch(1);
    assert!(matches!(
        store.ingest(vec![ahead]).await,
        Err(StoreError::NoOpenEpoch { .. })
    ));
    verified(&**store).await;
}

pub(super) async fn a_generation_begins_once(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    let (one, two) = tokio::join!(
        store.begin_generation(1, "seen here", "system"),
        other.begin_generation(1, "seen there", "system")
    );
    assert_eq!(
        (one.unwrap(), two.unwrap()),
        (Revision::new(2, 0), Revision::new(2, 0))
    );
    let acts = store
        .records(RecordFilter {
            tool: Some("mesh.generation".into()),
            ..RecordFilter::default()
        })
        .await;
    assert_eq!(acts.unwrap().len(), 1);
    other.close().await;
}
