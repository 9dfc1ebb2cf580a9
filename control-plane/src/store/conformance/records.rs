use chain::{link::MacKey, timestamp::Timestamp, vocabulary::Action};

use super::{
    Fixture, act,
    sidecars::{enrolled, resumption},
    sources::{Source, checkpoint, verified},
};
use crate::store::{
    StoreError,
    desired::Expected,
    records::{ChainPosition, CheckpointRow, GapKind, Incoming, RecordFilter, RefusedRecord},
    sidecars::{SidecarHeartbeat, SidecarReport},
};

pub(super) async fn records_are_in_the_chain_exactly_once(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    let before = verified(&**store).await;
    let mut source = Source::new("s1", 1);
    let batch = source.batch(5);
    let marks = store.ingest(vec![batch.clone()]).await.unwrap();
    assert_eq!(
        (marks[0].committed, marks[0].settled, marks[0].closed),
        (5, 0, false)
    );
    let mut longer = batch.clone();
    longer.records.extend(source.batch(2).records);
    let marks = store.ingest(vec![longer, batch]).await.unwrap();
    assert_eq!(marks[0].committed, 7);
    assert_eq!(verified(&**store).await, before + 7);
    let stored = store.record("s1-1-3").await.unwrap();
    assert!(stored.header.contains("\"n\":3"));
    store.use_chain_key(MacKey::new("m1", &[5; 32]));
    store.ingest(vec![source.batch(1)]).await.unwrap();
    let newest = store
        .records(RecordFilter {
            limit: 1,
            ..RecordFilter::default()
        })
        .await
        .unwrap()
        .remove(0);
    assert_eq!(newest.key_id, "m1");
    let tag = MacKey::new("m1", &[5; 32]).unwrap().tag(&newest.hash.into());
    assert_eq!(newest.mac, Some(*tag.as_bytes()));
}

pub(super) async fn a_hole_is_refused_and_changes_nothing(fixture: &Fixture) {
    let store = &fixture.store;
    for id in ["s1", "s2"] {
        enrolled(fixture, id).await;
    }
    let before = store.chain_head().await.unwrap().at;
    let (mut whole, mut holed) = (Source::new("s1", 1), Source::new("s2", 1));
    let mut bad = holed.batch(3);
    bad.records.remove(1);
    let refused = store.ingest(vec![whole.batch(2), bad]).await;
    assert!(matches!(
        refused,
        Err(StoreError::Hole {
            expected: 2,
            found: 3,
            ..
        })
    ));
    assert_eq!(store.chain_head().await.unwrap().at, before);
    let unknown = store.ingest(vec![Source::new("s1", 9).batch(1)]).await;
    assert!(matches!(unknown, Err(StoreError::NoOpenEpoch { epoch: 9, .. })));
    let mut source = Source::new("s1", 1);
    store.ingest(vec![source.batch(2)]).await.unwrap();
    assert!(matches!(
        store.close_epoch("s1", 1, 3).await,
        Err(StoreError::Hole { .. })
    ));
    assert!(store.close_epoch("s1", 1, 2).await.unwrap().closed);
    let closed = store.ingest(vec![source.batch(1)]).await;
    assert!(matches!(closed, Err(StoreError::NoOpenEpoch { .. })));
}

pub(super) async fn what_is_not_accepted_has_a_record_in_its_place_and_holds_up_nothing(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    let mut source = Source::new("s1", 1);
    let mut batch = source.batch(5);
    // Number 2 is refused before it comes here, number 4 links another record than the one before it.
    let refused = RefusedRecord {
        n: 2,
        link: batch.records[1].link(),
        namespace: "default".to_owned(),
        reason: "not this sidecar's".to_owned(),
    };
    batch.records[1] = Incoming::Refused(refused);
    let mut other = Source::new("s1", 1);
    for _ in 0..3 {
        other.record(|record| record.session = Some("another".to_owned()));
    }
    batch.records[3] = other.record(|_| ()).into();
    batch.records.truncate(4);
    let mark = store.ingest(vec![batch.clone()]).await.unwrap().remove(0);
    assert_eq!(mark.committed, 4);
    // Sent again, it is there once; the epoch goes on behind it.
    store.ingest(vec![batch]).await.unwrap();
    let next = other.batch(1);
    assert_eq!(store.ingest(vec![next]).await.unwrap()[0].committed, 5);
    let acts = RecordFilter {
        kind: Some("act".into()),
        ..RecordFilter::default()
    };
    let found = store.records(acts).await.unwrap();
    let standing: Vec<_> = found
        .iter()
        .filter(|record| record.header.contains(r#""tool":"mesh.record_refused""#))
        .collect();
    assert_eq!(standing.len(), 2);
    assert!(
        standing
            .iter()
            .all(|record| record.header.contains(r#""sidecar":"s1","epoch":1"#))
    );
    verified(&**store).await;
}

pub(super) async fn a_governance_act_commits_with_its_change(fixture: &Fixture) {
    let store = &fixture.store;
    let draft = super::desired::policy("a", "{}");
    store
        .put_policy(draft.clone(), Expected::Any, act("mesh.policy_edit"))
        .await
        .unwrap();
    let acts = RecordFilter {
        kind: Some("act".into()),
        ..RecordFilter::default()
    };
    let found = store.records(acts.clone()).await.unwrap();
    assert!(found[0].header.contains(r#""tool":"mesh.policy_edit""#));
    assert!(found[0].header.contains(r#""user":"ada""#));
    assert!(found[0].payload.as_ref().unwrap().contains("a test"));
    let refused = store
        .put_policy(draft, Expected::Absent, act("mesh.policy_edit"))
        .await;
    assert!(refused.is_err());
    assert_eq!(store.records(acts).await.unwrap().len(), found.len());
    let at = store.append_act(act("mesh.login")).await.unwrap();
    assert_eq!(store.chain_head().await.unwrap().at, at);
    verified(&**store).await;
}

pub(super) async fn two_writers_make_one_chain(fixture: &Fixture) {
    let store = &fixture.store;
    let other = fixture.replica().await;
    for id in ["s1", "s2", "s3", "s4"] {
        enrolled(fixture, id).await;
    }
    let before = verified(&**store).await;
    let writers = ["s1", "s2", "s3", "s4"]
        .into_iter()
        .enumerate()
        .map(|(index, id)| {
            let store = if index % 2 == 0 {
                store.clone()
            } else {
                other.clone()
            };
            async move {
                let mut source = Source::new(id, 1);
                for _ in 0..5 {
                    store.ingest(vec![source.batch(20)]).await.unwrap();
                    store.append_act(act("mesh.note")).await.unwrap();
                }
            }
        });
    futures_util::future::join_all(writers).await;
    assert_eq!(verified(&**store).await, before + 4 * 5 * 21);
    other.close().await;
}

pub(super) async fn a_checkpoint_settles_what_it_covers(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    let mut source = Source::new("s1", 1);
    store.ingest(vec![source.batch(3)]).await.unwrap();
    let made = checkpoint(&**store).await;
    store.ingest(vec![source.batch(2)]).await.unwrap();
    let marks = store.epoch_marks("s1", vec![1, 2]).await.unwrap();
    assert_eq!(marks.len(), 1);
    assert_eq!((marks[0].committed, marks[0].settled), (5, 3));
    store.insert_checkpoint(made.clone()).await.unwrap();
    assert_eq!(store.checkpoints(10).await.unwrap(), [made]);
    checkpoint(&**store).await;
    store.close_epoch("s1", 1, 5).await.unwrap();
    assert_eq!(store.open_marks(vec!["s1".to_owned()]).await.unwrap(), []);
    assert_eq!(store.epoch_marks("s1", vec![1]).await.unwrap()[0].settled, 5);
    // A heartbeat of the log: nothing new, a later time.
    checkpoint(&**store).await;
}

pub(super) async fn a_checkpoint_that_contradicts_the_chain_is_refused(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    let first = checkpoint(&**store).await;
    store.ingest(vec![Source::new("s1", 1).batch(3)]).await.unwrap();
    let last = checkpoint(&**store).await;
    let ahead = ChainPosition {
        seq: last.at.seq + 1,
        ..last.at
    };
    let elsewhere = ChainPosition {
        generation: 9,
        ..last.at
    };
    for wrong in [
        CheckpointRow {
            at: ahead,
            ..last.clone()
        },
        CheckpointRow {
            at: elsewhere,
            ..last.clone()
        },
        CheckpointRow {
            hash: [0; 32],
            time: last.time + 1,
            ..last.clone()
        },
        CheckpointRow {
            time: first.time + 1,
            ..first
        },
    ] {
        let refused = store.insert_checkpoint(wrong).await;
        assert!(matches!(refused, Err(StoreError::Fork { .. })), "{refused:?}");
    }
}

pub(super) async fn records_are_found_by_what_they_say(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    let mut source = Source::new("s1", 1);
    let records = (0..4_i64)
        .map(|index| {
            source.record(|record| {
                record.time = Timestamp::from_micros(1_000_000 + index);
                record.agent = Some("claude".into());
                record.session = Some(if index < 3 { "chat" } else { "other" }.into());
                record.tool = Some(format!("notes.t{}", index % 2).into());
                record.action = Some(Action::Allow);
                record.trace_id = Some(format!("{index:032x}"));
            })
        })
        .collect();
    store.ingest(vec![source.of(records)]).await.unwrap();
    let calls = || RecordFilter {
        kind: Some("call".into()),
        ..RecordFilter::default()
    };
    let ids = async |filter: RecordFilter| {
        let found = store.records(filter).await.unwrap();
        found.into_iter().map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(calls()).await, ["s1-1-4", "s1-1-3", "s1-1-2", "s1-1-1"]);
    assert_eq!(
        ids(RecordFilter {
            tool: Some("notes.?0".into()),
            ..calls()
        })
        .await,
        ["s1-1-3", "s1-1-1"]
    );
    let times = RecordFilter {
        since: Some(1_000_001),
        until: Some(1_000_003),
        ..calls()
    };
    assert_eq!(ids(times).await, ["s1-1-3", "s1-1-2"]);
    assert_eq!(
        ids(RecordFilter {
            session: Some("other".into()),
            ..calls()
        })
        .await,
        ["s1-1-4"]
    );
    assert_eq!(
        ids(RecordFilter {
            agent: Some("x".into()),
            ..calls()
        })
        .await,
        [] as [&str; 0]
    );
    assert_eq!(
        ids(RecordFilter {
            text: Some("LINE\\NONE".into()),
            ..calls()
        })
        .await
        .len(),
        4
    );
    assert_eq!(
        ids(RecordFilter {
            text: Some("100%".into()),
            ..calls()
        })
        .await
        .len(),
        0
    );
    let page = store.records(RecordFilter { limit: 2, ..calls() }).await.unwrap();
    let next = RecordFilter {
        before: Some(page[1].at),
        limit: 2,
        ..calls()
    };
    assert_eq!(ids(next).await, ["s1-1-2", "s1-1-1"]);
    assert_eq!(store.record(&format!("{:032x}", 2)).await.unwrap().id, "s1-1-3");
    assert!(matches!(
        store.record("s1-1-").await,
        Err(StoreError::Ambiguous { .. })
    ));
    assert!(matches!(
        store.record("zz").await,
        Err(StoreError::NotFound { .. })
    ));
    let sessions = store.sessions(Some("default"), 10).await.unwrap();
    let chat = sessions.iter().find(|session| session.session == "chat").unwrap();
    assert_eq!(
        (chat.records, chat.tools.clone()),
        (3, vec!["notes.t0".to_owned(), "notes.t1".to_owned()])
    );
    store.erase_payload("s1-1-1", act("mesh.erase")).await.unwrap();
    assert_eq!(store.record("s1-1-1").await.unwrap().payload, None);
    verified(&**store).await;
}

pub(super) async fn any_text_survives_storage(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    let mut source = Source::new("s1", 1);
    let strange = "\\N\t\n\r\\. \u{1F600} \0 \u{7f} '\" \\x00";
    let long = "s".repeat(10_000);
    let records = vec![
        source.record(|record| record.session = Some(strange.to_owned())),
        source.record(|record| record.session = Some(long.clone())),
    ];
    store.ingest(vec![source.of(records.clone())]).await.unwrap();
    for record in &records {
        let stored = store.record(&record.record.id).await.unwrap();
        let header = chain::record::Header::decode(&stored.header).unwrap();
        assert_eq!(header.record, record.record);
        assert_eq!(stored.payload, record.payload);
    }
    verified(&**store).await;
}

pub(super) async fn an_epoch_that_never_closed_is_a_gap(fixture: &Fixture) {
    let store = &fixture.store;
    enrolled(fixture, "s1").await;
    store.ingest(vec![Source::new("s1", 1).batch(3)]).await.unwrap();
    let heartbeat = SidecarHeartbeat {
        high_water: 5,
        open_intents: 2,
        ..SidecarHeartbeat::default()
    };
    let report = SidecarReport {
        sidecar: "s1".into(),
        epoch: 1,
        heartbeat: Some(heartbeat),
        ack: None,
    };
    store.report_sidecars(vec![report]).await.unwrap();
    assert_eq!(store.gaps().await.unwrap(), []);
    store.resume(resumption("s1")).await.unwrap();
    let gap = store.gaps().await.unwrap().remove(0);
    assert_eq!((gap.sidecar.as_str(), gap.epoch), ("s1", 1));
    assert_eq!(
        gap.kind,
        GapKind::NotClosed {
            committed: 3,
            high_water: 5,
            open_intents: 2
        }
    );
}
