mod acknowledged;
mod crashes;
mod room;

use std::path::Path;

use chain::payload::Payload;
use chain::record::SourceRecord;
use chain::timestamp::Timestamp;
use chain::vocabulary::{Outcome, RecordKind};

use super::*;

const ALL: ReadLimit = ReadLimit {
    records: usize::MAX,
    bytes: usize::MAX,
};

fn options(dir: &Path) -> Options {
    Options {
        sync: SyncMode::Process,
        clock: Clock::manual(),
        ..Options::new(dir)
    }
}

fn open(dir: &Path) -> Spool {
    Spool::open(&options(dir)).unwrap()
}

fn grant(epoch: u64) -> EpochGrant {
    EpochGrant {
        sidecar: "s1".into(),
        namespace: "default".into(),
        epoch,
        agents: vec!["a-*".into()],
        open_epochs: vec![],
    }
}

fn draft(id: &str, outcome: Outcome) -> Draft {
    let mut payload = Payload::new([7; 16]);
    payload.error = Some(format!("about {id}"));
    Draft {
        source: SourceRecord::new(
            id.to_owned(),
            Timestamp::from_micros(1_767_225_600_000_000),
            RecordKind::Call,
            "default".into(),
            outcome,
        ),
        payload: Some(payload),
    }
}

async fn try_begin(spool: &Spool, id: &str) -> Result<OpenCall, SpoolError> {
    let Draft { mut source, payload } = draft(id, Outcome::Ok);
    let intent = Intent {
        source: &mut source,
        payload: &payload.unwrap(),
        plain_read: false,
    };
    spool.begin(intent).await
}

async fn begin(spool: &Spool, id: &str) -> OpenCall {
    try_begin(spool, id).await.unwrap()
}

/// What a crash does: nothing is ended, the lock goes.
fn crash(spool: Spool, open: Vec<OpenCall>) {
    open.into_iter().for_each(std::mem::forget);
    let lock = spool.inner._lock.try_clone().unwrap();
    lock.unlock().unwrap();
    std::mem::forget(spool);
}

async fn read(spool: &Spool, epoch: u64, from: u64) -> Vec<(u64, SourceRecord)> {
    let mut reader = spool.reader();
    let mut next = from;
    let mut all = Vec::new();
    loop {
        let records = reader.read(epoch, next, ALL).await.unwrap();
        let Some(last) = records.last() else { return all };
        next = last.n + 1;
        all.extend(
            records
                .iter()
                .map(|record| (record.n, SourceRecord::decode(&record.source).unwrap())),
        );
    }
}

async fn ids(spool: &Spool, epoch: u64) -> Vec<(u64, String, Outcome)> {
    let records = read(spool, epoch, 1).await;
    records
        .into_iter()
        .map(|(n, record)| (n, record.id, record.outcome))
        .collect()
}

/// Numbers are contiguous and each record links the one before.
async fn assert_linked(spool: &Spool, epoch: u64) {
    let mut reader = spool.reader();
    let mut previous = chain::hash::Hash::ZERO;
    let mut next = 1;
    loop {
        let records = reader.read(epoch, next, ALL).await.unwrap();
        if records.is_empty() {
            return;
        }
        for stored in records {
            let record = SourceRecord::decode(&stored.source).unwrap();
            assert_eq!(
                (stored.n, record.n, record.epoch),
                (next, Some(next), Some(epoch))
            );
            assert_eq!(record.source_prev, Some(previous), "record {next}");
            let payload = std::str::from_utf8(&stored.payload).unwrap();
            assert_eq!(
                record.payload_digest,
                Some(chain::payload::payload_digest(payload).unwrap())
            );
            previous = chain::hash::Hash::of(&[&stored.source]);
            next += 1;
        }
    }
}

#[tokio::test]
async fn a_call_leaves_one_record_with_the_next_number() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(1)).unwrap();
    let call = begin(&spool, "a").await;
    let refused = spool.record(draft("b", Outcome::Denied)).unwrap();
    let ended = call.finish(draft("a", Outcome::Ok)).unwrap();
    assert_eq!((refused.n, ended.n, ended.epoch), (1, 2, Some(1)));
    assert_linked(&spool, 1).await;
    let record = read(&spool, 1, 2).await.remove(0).1;
    assert_eq!(record.sidecar.as_deref(), Some("s1"));
    assert_eq!(spool.status().open_intents, 0);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(1)).unwrap();
    drop(begin(&spool, "a").await);
    assert_eq!(ids(&spool, 1).await, [(1, "a".to_owned(), Outcome::Interrupted)]);
}

#[test]
fn two_processes_never_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let second = Spool::open(&options(dir.path()));
    assert!(matches!(second, Err(SpoolError::Locked { .. })));
    drop(first);
    open(dir.path());
}

#[tokio::test]
async fn an_epoch_that_was_used_is_not_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(3)).unwrap();
    let again = spool.open_epoch(&grant(3));
    assert!(matches!(
        again,
        Err(SpoolError::EpochUsed { given: 3, highest: 3 })
    ));
}

#[tokio::test]
async fn an_agent_outside_the_scope_is_not_named_to_the_control_plane() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(1)).unwrap();
    for agent in ["a-1", "stranger"] {
        let mut refused = draft(agent, Outcome::Denied);
        refused.source.agent = Some(agent.to_owned());
        spool.record(refused).unwrap();
    }
    let records = read(&spool, 1, 1).await;
    assert_eq!(records[0].1.agent.as_deref(), Some("a-1"));
    assert_eq!(records[1].1.agent, None);
}

#[tokio::test]
async fn a_sidecar_with_a_new_id_numbers_its_unsettled_records_anew() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(7)).unwrap();
    for id in ["a", "b", "c"] {
        spool.record(draft(id, Outcome::Denied)).unwrap();
    }
    spool.settle(7, 1);
    let another = EpochGrant {
        sidecar: "s2".into(),
        ..grant(1)
    };
    spool.open_epoch(&another).unwrap();
    let records = read(&spool, 1, 1).await;
    let named: Vec<_> = records
        .iter()
        .map(|(n, record)| (*n, record.id.as_str()))
        .collect();
    assert_eq!(named, [(1, "b"), (2, "c")]);
    assert_eq!(records[0].1.sidecar.as_deref(), Some("s2"));
    assert_linked(&spool, 1).await;
    drop(spool);
    assert_eq!(ids(&open(dir.path()), 1).await.len(), 2);
}

#[tokio::test]
async fn a_closed_and_settled_epoch_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(1)).unwrap();
    spool.record(draft("a", Outcome::Denied)).unwrap();
    assert!(spool.end_epoch().unwrap());
    spool.close_epoch(1);
    assert_eq!(spool.epochs().len(), 1);
    spool.settle(1, 1);
    assert_eq!(spool.epochs(), []);
    drop(spool);
    assert_eq!(open(dir.path()).epochs(), []);
}

#[tokio::test]
async fn one_flush_serves_all_calls_that_wait() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        sync: SyncMode::Disk,
        ..options(dir.path())
    };
    let spool = Spool::open(&options).unwrap();
    spool.open_epoch(&grant(1)).unwrap();
    let begun = futures_util::future::join_all((0..64).map(|_| begin(&spool, "x"))).await;
    for call in begun {
        call.finish(draft("x", Outcome::Ok)).unwrap();
    }
    assert_linked(&spool, 1).await;
}

#[tokio::test]
async fn what_fell_out_of_memory_is_read_from_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(1)).unwrap();
    for n in 0..500 {
        spool.record(draft(&n.to_string(), Outcome::Denied)).unwrap();
    }
    let before = ids(&spool, 1).await;
    spool.with_log(|log| log.tail = tail::Tail::default());
    assert_eq!(ids(&spool, 1).await, before);
    let mut reader = spool.reader();
    let few = ReadLimit {
        records: 7,
        bytes: usize::MAX,
    };
    let first = reader.read(1, 100, few).await.unwrap();
    let then = reader.read(1, 107, few).await.unwrap();
    assert_eq!((first[0].n, first.len(), then[0].n), (100, 7, 107));
}
