//! Delivery of records.

use chain::record::SourceRecord;
use chain::timestamp::Timestamp;
use chain::vocabulary::{Outcome, RecordKind};
use proto::v1;
use proto::v1::reports_request::Message;

use super::plane::ReportStream;
use super::*;
use crate::spool::Draft;

fn draft(id: &str) -> Draft {
    let time = Timestamp::from_micros(0);
    Draft {
        source: SourceRecord::new(
            id.into(),
            time,
            RecordKind::Call,
            "default".into(),
            Outcome::Denied,
        ),
        payload: None,
    }
}

fn answer(epoch: u64, committed: u64, settled: u64, generation: u64) -> v1::ReportsResponse {
    v1::ReportsResponse {
        watermarks: vec![v1::Watermark {
            epoch,
            committed,
            settled,
            generation,
            closed: false,
        }],
        window: 100,
    }
}

async fn said(stream: &mut ReportStream) -> Message {
    stream.next().await.expect("the stream ended").message.unwrap()
}

async fn opening(stream: &mut ReportStream) -> Vec<u64> {
    match said(stream).await {
        Message::Opening(opening) => opening.epochs,
        other => panic!("{other:?}"),
    }
}

/// Numbers of the records that come until `last` is among them.
async fn numbers(stream: &mut ReportStream, last: u64) -> Vec<u64> {
    let mut all = Vec::new();
    while all.last() != Some(&last) {
        match said(stream).await {
            Message::Batch(batch) => all.extend(batch.records.iter().map(|record| record.n)),
            other => panic!("{other:?}"),
        }
    }
    all
}

async fn enrolled() -> (Rig, ReportStream) {
    let rig = Rig::start().await;
    let mut stream = rig.plane.reports().await;
    assert_eq!(opening(&mut stream).await, [1]);
    stream.tell(answer(1, 0, 0, 1)).await;
    (rig, stream)
}

#[tokio::test]
async fn records_are_delivered_and_forgotten_once_settled() {
    let (rig, mut stream) = enrolled().await;
    for id in ["a", "b", "c"] {
        rig.spool.record(draft(id)).unwrap();
    }
    assert_eq!(numbers(&mut stream, 3).await, [1, 2, 3]);
    stream.tell(answer(1, 3, 2, 1)).await;
    until("two are settled", || rig.spool.epochs()[0].settled == 2).await;
    rig.spool.record(draft("d")).unwrap();
    assert_eq!(numbers(&mut stream, 4).await, [4]);
}

#[tokio::test]
async fn what_was_not_committed_is_sent_again_on_the_next_stream() {
    let (rig, mut stream) = enrolled().await;
    for id in ["a", "b", "c"] {
        rig.spool.record(draft(id)).unwrap();
    }
    numbers(&mut stream, 3).await;
    stream.end(tonic::Status::unavailable("going down")).await;
    let mut stream = rig.plane.reports().await;
    opening(&mut stream).await;
    stream.tell(answer(1, 1, 0, 1)).await;
    assert_eq!(numbers(&mut stream, 3).await, [2, 3]);
}

#[tokio::test]
async fn a_new_generation_of_the_chain_gets_everything_unsettled_again() {
    let (rig, mut stream) = enrolled().await;
    for id in ["a", "b", "c"] {
        rig.spool.record(draft(id)).unwrap();
    }
    numbers(&mut stream, 3).await;
    stream.tell(answer(1, 3, 1, 1)).await;
    stream.tell(answer(1, 0, 0, 2)).await;
    assert_eq!(numbers(&mut stream, 3).await, [2, 3]);
}

#[tokio::test]
async fn no_more_than_the_window_is_under_way() {
    let rig = Rig::start().await;
    let mut stream = rig.plane.reports().await;
    opening(&mut stream).await;
    for n in 0..10 {
        rig.spool.record(draft(&n.to_string())).unwrap();
    }
    let narrow = |committed| v1::ReportsResponse {
        window: 4,
        ..answer(1, committed, 0, 1)
    };
    stream.tell(narrow(0)).await;
    assert_eq!(numbers(&mut stream, 4).await, [1, 2, 3, 4]);
    stream.tell(narrow(4)).await;
    assert_eq!(numbers(&mut stream, 8).await, [5, 6, 7, 8]);
}

#[tokio::test]
async fn an_older_epoch_is_delivered_and_ended_by_the_next_process() {
    let (rig, stream) = enrolled().await;
    rig.spool.record(draft("a")).unwrap();
    drop(stream);
    let plane = plane::Plane::with(plane::Script {
        epoch: 1.into(),
        ..plane::Script::default()
    });
    let rig = rig.restart(plane).await;
    let mut stream = rig.plane.reports().await;
    assert_eq!(opening(&mut stream).await, [1, 2]);
    let mut both = answer(1, 0, 0, 1);
    both.watermarks.extend(answer(2, 0, 0, 1).watermarks);
    stream.tell(both).await;
    assert_eq!(numbers(&mut stream, 1).await, [1]);
    assert_eq!(
        said(&mut stream).await,
        Message::End(v1::EpochEnd { epoch: 1, last: 1 })
    );
    let mut closed = answer(1, 1, 1, 1);
    closed.watermarks[0].closed = true;
    stream.tell(closed).await;
    until("the old epoch is forgotten", || rig.spool.epochs().len() == 1).await;
}

#[tokio::test]
async fn a_shutdown_delivers_the_rest_and_ends_the_epoch() {
    let (rig, mut stream) = enrolled().await;
    rig.spool.record(draft("a")).unwrap();
    assert_eq!(numbers(&mut stream, 1).await, [1]);
    let plane = async {
        assert_eq!(
            said(&mut stream).await,
            Message::End(v1::EpochEnd { epoch: 1, last: 1 })
        );
        let mut closed = answer(1, 1, 1, 1);
        closed.watermarks[0].closed = true;
        stream.tell(closed).await;
    };
    tokio::join!(rig.control.shutdown(Duration::from_secs(10)), plane);
    assert_eq!(rig.spool.epochs(), []);
}
