//! What a process or a machine that dies leaves.

use super::*;

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
