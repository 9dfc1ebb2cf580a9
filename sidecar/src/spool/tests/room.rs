//! Bounds: what is settled goes, and what there is no room for.

use super::*;

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
