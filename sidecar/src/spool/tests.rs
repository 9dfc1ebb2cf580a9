use std::collections::BTreeMap;
use std::path::Path;

use chain::payload::Payload;
use chain::record::SourceRecord;
use chain::timestamp::Timestamp;
use chain::vocabulary::{Outcome, RecordKind};
use proptest::prelude::*;

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

#[tokio::test]
async fn a_crash_leaves_open_calls_interrupted_under_their_own_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(4)).unwrap();
    spool.record(draft("a", Outcome::Denied)).unwrap();
    let cut_off = begin(&spool, "b").await;
    begin(&spool, "c").await.finish(draft("c", Outcome::Ok)).unwrap();
    crash(spool, vec![cut_off]);

    let spool = open(dir.path());
    let expected = [
        (1, "a".to_owned(), Outcome::Denied),
        (2, "c".to_owned(), Outcome::Ok),
        (3, "b".to_owned(), Outcome::Interrupted),
    ];
    assert_eq!(ids(&spool, 4).await, expected);
    spool.open_epoch(&grant(5)).unwrap();
    let epochs = spool.epochs();
    assert_eq!((epochs[0].epoch, epochs[0].last, epochs[0].ended), (4, 3, true));
    assert_eq!((epochs[1].epoch, epochs[1].last, epochs[1].ended), (5, 0, false));
    assert_linked(&spool, 4).await;
}

#[tokio::test]
async fn without_a_control_plane_the_next_process_goes_on_in_the_last_epoch() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(1)).unwrap();
    spool.record(draft("a", Outcome::Denied)).unwrap();
    crash(spool, vec![]);
    let spool = open(dir.path());
    assert_eq!(spool.record(draft("b", Outcome::Denied)).unwrap().n, 2);
    assert_linked(&spool, 1).await;
}

#[tokio::test]
async fn after_a_power_failure_the_old_epoch_takes_no_more_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let spool = Spool::open(&options).unwrap();
    spool.open_epoch(&grant(1)).unwrap();
    spool.record(draft("a", Outcome::Denied)).unwrap();
    let cut_off = begin(&spool, "b").await;
    crash(spool, vec![cut_off]);

    options.clock.reboot("another boot");
    let spool = Spool::open(&options).unwrap();
    assert_eq!(spool.record(draft("c", Outcome::Denied)).unwrap().epoch, None);
    let ahead = EpochGrant {
        open_epochs: vec![(1, 7), (2, 0)],
        ..grant(2)
    };
    spool.open_epoch(&ahead).unwrap();
    let status = spool.epochs();
    assert_eq!((status[0].epoch, status[0].last, status[0].ended), (1, 7, true));
    let expected = [
        (1, "b".to_owned(), Outcome::Interrupted),
        (2, "c".to_owned(), Outcome::Denied),
    ];
    assert_eq!(ids(&spool, 2).await, expected);
}

#[tokio::test]
async fn before_the_first_enrolment_refusals_wait_for_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    assert_eq!(
        spool.record(draft("a", Outcome::Denied)).unwrap(),
        Recorded { epoch: None, n: 0 }
    );
    crash(spool, vec![]);
    let spool = open(dir.path());
    spool.record(draft("b", Outcome::Denied)).unwrap();
    spool.open_epoch(&grant(1)).unwrap();
    let found = ids(&spool, 1).await;
    assert_eq!(
        found
            .iter()
            .map(|(n, id, _)| (*n, id.as_str()))
            .collect::<Vec<_>>(),
        [(1, "a"), (2, "b")]
    );
    assert_linked(&spool, 1).await;
}

#[tokio::test]
async fn a_torn_end_costs_only_the_entry_that_was_being_written() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    spool.open_epoch(&grant(1)).unwrap();
    spool.record(draft("a", Outcome::Denied)).unwrap();
    let before = spool.with_log(|log| log.active.len());
    spool.record(draft("b", Outcome::Denied)).unwrap();
    let (id, after) = spool.with_log(|log| (log.active.id, log.active.len()));
    crash(spool, vec![]);
    let whole = std::fs::read(segment::path(dir.path(), id)).unwrap();
    assert_eq!(whole.len() as u64, after);
    for end in before..=after {
        let copy = tempfile::tempdir().unwrap();
        std::fs::write(segment::path(copy.path(), id), &whole[..end as usize]).unwrap();
        let spool = open(copy.path());
        let expected = if end == after { 2 } else { 1 };
        assert_eq!(read(&spool, 1, 1).await.len(), expected, "cut at {end}");
        assert_eq!(
            spool.record(draft("c", Outcome::Denied)).unwrap().n,
            expected as u64 + 1
        );
        assert_linked(&spool, 1).await;
    }
}

#[tokio::test]
async fn settled_segments_go_and_numbers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        max_bytes: 512 * 1024,
        ..options(dir.path())
    };
    let spool = Spool::open(&options).unwrap();
    spool.open_epoch(&grant(1)).unwrap();
    let long = begin(&spool, "long").await;
    let mut last = 0;
    for round in 0..20 {
        for _ in 0..50 {
            last = spool.record(draft("x", Outcome::Denied)).unwrap().n;
        }
        spool.settle(1, last);
        assert!(segment::list(dir.path()).unwrap().len() <= 5, "round {round}");
    }
    assert_eq!(last, 1000);
    crash(spool, vec![long]);
    let spool = Spool::open(&options).unwrap();
    let status = spool.epochs()[0];
    assert_eq!((status.settled, status.last), (1000, 1001));
    let record = read(&spool, 1, 1001).await.remove(0).1;
    assert_eq!(
        (record.id.as_str(), record.outcome),
        ("long", Outcome::Interrupted)
    );
}

#[tokio::test]
async fn a_full_spool_begins_nothing_and_still_takes_the_records_of_what_has_begun() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        max_bytes: 64 * 1024,
        ..options(dir.path())
    };
    let spool = Spool::open(&options).unwrap();
    spool.open_epoch(&grant(1)).unwrap();
    let mut open = Vec::new();
    let refused = loop {
        match try_begin(&spool, "x").await {
            Ok(call) => open.push(call),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, SpoolError::Full { .. }), "{refused}");
    assert!(!open.is_empty() && !spool.has_room());
    let count = open.len() as u64;
    for call in open {
        call.finish(draft("x", Outcome::Ok)).unwrap();
    }
    let refusals = (0..200)
        .take_while(|_| spool.record(draft("y", Outcome::Denied)).is_ok())
        .count();
    assert!(refusals < 200);
    assert!(spool.status().used <= options.max_bytes);
    spool.settle(1, count + refusals as u64);
    assert!(spool.has_room());
}

#[tokio::test]
async fn refusals_beyond_their_share_leave_room_for_calls_and_are_summed_up_in_one_record() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        max_bytes: 256 * 1024,
        ..options(dir.path())
    };
    let spool = Spool::open(&options).unwrap();
    spool.open_epoch(&grant(1)).unwrap();
    let kept = (0..2_000)
        .filter(|_| spool.record(draft("refused", Outcome::Denied)).is_ok())
        .count() as u64;
    assert!(kept < 2_000);
    assert!(spool.has_room());
    let call = try_begin(&spool, "allowed").await.unwrap();
    call.finish(draft("allowed", Outcome::Ok)).unwrap();
    spool.settle(1, kept);
    spool.retry_writes();
    let read = spool.reader().read(1, kept + 1, ALL).await.unwrap();
    assert_eq!(read.len(), 2);
    let summary = String::from_utf8(read[1].payload.to_vec()).unwrap();
    let left_out = 2_000 - kept;
    assert!(
        summary.contains(&format!("{left_out} refusals since")),
        "{summary}"
    );
    // It is said once.
    spool.retry_writes();
    assert_eq!(spool.status().high_water, kept + 2);
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

#[derive(Clone, Debug)]
enum Act {
    Begin,
    Finish(usize),
    Drop(usize),
    Record,
    Settle(u64),
    Crash,
    Enrol,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Begin),
        4 => (0..4_usize).prop_map(Act::Finish),
        1 => (0..4_usize).prop_map(Act::Drop),
        3 => Just(Act::Record),
        1 => (0..40_u64).prop_map(Act::Settle),
        1 => Just(Act::Crash),
        1 => Just(Act::Enrol),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens in between: each call that was begun and each refusal that was taken has exactly one record in the end, with the
    /// outcome that was acknowledged, in contiguous linked numbers.
    #[test]
    fn what_is_recovered_is_what_was_acknowledged(acts in prop::collection::vec(act(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(replay(acts));
    }
}

async fn replay(acts: Vec<Act>) {
    let dir = tempfile::tempdir().unwrap();
    // Segments of 4 KiB, so that they change often.
    let options = Options {
        max_bytes: 64 * 1024,
        ..options(dir.path())
    };
    let mut spool = Spool::open(&options).unwrap();
    let mut open_calls: Vec<(String, OpenCall)> = Vec::new();
    let mut expected: BTreeMap<String, Outcome> = BTreeMap::new();
    let mut seen: BTreeMap<String, Outcome> = BTreeMap::new();
    let mut epoch = 0;
    let mut next_id = 0;
    let mut fresh = || {
        next_id += 1;
        format!("c{next_id}")
    };
    for act in acts {
        match act {
            Act::Begin => {
                let id = fresh();
                if let Ok(call) = try_begin(&spool, &id).await {
                    open_calls.push((id, call));
                }
            }
            Act::Finish(at) if at < open_calls.len() => {
                let (id, call) = open_calls.remove(at);
                call.finish(draft(&id, Outcome::Ok)).unwrap();
                expected.insert(id, Outcome::Ok);
            }
            Act::Drop(at) if at < open_calls.len() => {
                let (id, call) = open_calls.remove(at);
                drop(call);
                expected.insert(id, Outcome::Interrupted);
            }
            Act::Finish(_) | Act::Drop(_) => {}
            Act::Record => {
                let id = fresh();
                if spool.record(draft(&id, Outcome::Denied)).is_ok() {
                    expected.insert(id, Outcome::Denied);
                }
            }
            Act::Settle(n) => {
                collect(&spool, &mut seen).await;
                if epoch > 0 {
                    spool.settle(epoch, n);
                }
            }
            Act::Crash => {
                for (id, _) in &open_calls {
                    expected.insert(id.clone(), Outcome::Interrupted);
                }
                let calls = std::mem::take(&mut open_calls)
                    .into_iter()
                    .map(|(_, call)| call)
                    .collect();
                crash(spool, calls);
                spool = Spool::open(&options).unwrap();
            }
            Act::Enrol => {
                epoch += 1;
                spool.open_epoch(&grant(epoch)).unwrap();
            }
        }
    }
    for (id, call) in open_calls {
        drop(call);
        expected.insert(id, Outcome::Interrupted);
    }
    spool.open_epoch(&grant(epoch + 1)).unwrap();
    collect(&spool, &mut seen).await;
    // Refusals that were not taken are summed up in records of their own.
    seen.retain(|id, _| id.starts_with('c'));
    assert_eq!(seen, expected);
}

/// Takes every record that is not settled.
async fn collect(spool: &Spool, seen: &mut BTreeMap<String, Outcome>) {
    for status in spool.epochs() {
        let records = read(spool, status.epoch, status.settled + 1).await;
        assert_eq!(records.len() as u64, status.last - status.settled, "{status:?}");
        for (n, (number, record)) in (status.settled + 1..).zip(records) {
            assert_eq!(n, number);
            let before = seen.insert(record.id.clone(), record.outcome);
            assert!(
                before.is_none_or(|before| before == record.outcome),
                "{}",
                record.id
            );
        }
    }
}
