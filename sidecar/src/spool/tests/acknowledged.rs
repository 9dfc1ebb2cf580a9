//! Whatever happens, what was acknowledged is there.

use std::collections::BTreeMap;

use chain::vocabulary::Outcome;
use proptest::prelude::*;

use super::super::{OpenCall, Options, Spool};
use super::{crash, draft, grant, options, read, try_begin};

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
