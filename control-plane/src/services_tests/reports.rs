//! Records into the chain.

use crate::store::records::RecordFilter;
use chain::record::SourceRecord;
use chain::source::SourceChain;
use chain::timestamp::Timestamp;
use chain::vocabulary::{Outcome, RecordKind};
use proto::v1::reports_client::ReportsClient;
use proto::v1::reports_request::Message;
use proto::v1::{EpochEnd, Opening, Record, RecordBatch, ReportsRequest, ReportsResponse, Watermark};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use super::plane::{Enrolled, LONG, Plane};

pub(super) struct Reporter {
    requests: mpsc::Sender<ReportsRequest>,
    responses: Streaming<ReportsResponse>,
    mark: Watermark,
}

impl Reporter {
    pub(super) async fn open(plane: &Plane, enrolled: &Enrolled) -> Self {
        let (requests, receiver) = mpsc::channel(16);
        let stream = enrolled.request(ReceiverStream::new(receiver));
        let responses = ReportsClient::new(plane.channel.clone())
            .stream(stream)
            .await
            .unwrap()
            .into_inner();
        let reporter = Self {
            requests,
            responses,
            mark: Watermark::default(),
        };
        reporter
            .say(Message::Opening(Opening {
                epochs: vec![enrolled.answer.epoch],
            }))
            .await;
        reporter
    }

    pub(super) async fn send(&self, epoch: u64, records: &[Record]) {
        let records = records.to_vec();
        self.say(Message::Batch(RecordBatch { epoch, records })).await;
    }

    async fn say(&self, message: Message) {
        self.requests
            .send(ReportsRequest {
                message: Some(message),
            })
            .await
            .unwrap();
    }

    async fn next(&mut self) -> Result<(), Status> {
        let received = tokio::time::timeout(LONG, self.responses.message())
            .await
            .expect("an answer in time")?;
        for mark in received.expect("the stream goes on").watermarks {
            self.mark = mark;
        }
        Ok(())
    }

    pub(super) async fn until(&mut self, holds: impl Fn(&Watermark) -> bool) {
        while !holds(&self.mark) {
            self.next().await.unwrap();
        }
    }
}

pub(super) fn records(enrolled: &Enrolled, count: usize, agent: &str) -> Vec<Record> {
    records_of(enrolled, &vec![agent; count])
}

/// One record of each agent.
fn records_of(enrolled: &Enrolled, agents: &[&str]) -> Vec<Record> {
    let answer = &enrolled.answer;
    let mut chain = SourceChain::new(answer.sidecar_id.as_str().to_owned(), answer.epoch);
    let one = |(number, agent): (u64, &&str)| {
        let id = format!("00000000-0000-7000-8000-{number:012}");
        let mut record = SourceRecord::new(
            id,
            Timestamp::from_micros(1_700_000_000_000_000),
            RecordKind::Call,
            answer.namespace.clone(),
            Outcome::Ok,
        );
        record.agent = Some((*agent).to_owned());
        let sealed = chain.seal(&mut record).unwrap();
        Record {
            n: sealed.n,
            source: sealed.text.into(),
            payload: Vec::new().into(),
        }
    };
    (1..).zip(agents).map(one).collect()
}

async fn calls_in_the_chain(plane: &Plane) -> usize {
    let filter = RecordFilter {
        kind: Some("call".to_owned()),
        limit: 1_000,
        ..RecordFilter::default()
    };
    plane.store().records(filter).await.unwrap().len()
}

#[tokio::test]
async fn a_repeated_batch_is_in_the_chain_once_and_settles() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut reporter = Reporter::open(&plane, &sidecar).await;
    let records = records(&sidecar, 5, "a");
    let epoch = sidecar.answer.epoch;
    let batch = |records: &[Record]| {
        Message::Batch(RecordBatch {
            epoch,
            records: records.to_vec(),
        })
    };
    reporter.say(batch(&records[..3])).await;
    reporter.say(batch(&records[..3])).await;
    reporter.say(batch(&records[1..])).await;
    reporter.until(|mark| mark.committed == 5).await;
    assert_eq!(calls_in_the_chain(&plane).await, 5);
    reporter.until(|mark| mark.settled == 5).await;
    reporter.say(Message::End(EpochEnd { epoch, last: 5 })).await;
    reporter.until(|mark| mark.closed).await;
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_hole_is_refused_and_what_came_before_it_stays() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["*"]).await;
    let mut reporter = Reporter::open(&plane, &sidecar).await;
    let records = records(&sidecar, 5, "a");
    let epoch = sidecar.answer.epoch;
    reporter
        .say(Message::Batch(RecordBatch {
            epoch,
            records: records[..2].to_vec(),
        }))
        .await;
    reporter.until(|mark| mark.committed == 2).await;
    reporter
        .say(Message::Batch(RecordBatch {
            epoch,
            records: records[3..].to_vec(),
        }))
        .await;
    let end = loop {
        if let Err(status) = reporter.next().await {
            break status;
        }
    };
    assert_eq!(end.code(), Code::FailedPrecondition);
    assert_eq!(calls_in_the_chain(&plane).await, 2);
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_record_outside_the_scope_is_refused_in_its_place_and_the_others_are_stored() {
    let plane = Plane::start().await;
    let sidecar = plane.enrol("default", &["support-*"]).await;
    let mut reporter = Reporter::open(&plane, &sidecar).await;
    let epoch = sidecar.answer.epoch;
    let batch = records_of(&sidecar, &["support-1", "billing", "support-2"]);
    for _ in 0..2 {
        let records = batch.clone();
        reporter.say(Message::Batch(RecordBatch { epoch, records })).await;
    }
    reporter.until(|mark| mark.settled == 3).await;
    assert_eq!(calls_in_the_chain(&plane).await, 2);
    let filter = RecordFilter {
        kind: Some("act".to_owned()),
        ..RecordFilter::default()
    };
    let acts = plane.store().records(filter).await.unwrap();
    let is_mark = |header: &str| header.contains(r#""tool":"mesh.record_refused""#);
    let marks: Vec<_> = acts.iter().filter(|act| is_mark(&act.header)).collect();
    let [mark] = marks.as_slice() else {
        panic!("one mark: {marks:?}")
    };
    assert!(mark.payload.as_ref().unwrap().contains("billing"));
    plane.plane.shutdown().await;
}

#[tokio::test]
async fn a_later_process_delivers_what_an_earlier_one_left() {
    let plane = Plane::start().await;
    let first = plane.enrol("default", &["*"]).await;
    let left = records(&first, 3, "a");
    let second = plane.resume(&first).await.unwrap();
    assert_eq!(second.answer.open_epochs.len(), 1);
    let mut reporter = Reporter::open(&plane, &second).await;
    reporter
        .say(Message::Batch(RecordBatch {
            epoch: 1,
            records: left,
        }))
        .await;
    reporter
        .until(|mark| mark.epoch == 1 && mark.committed == 3)
        .await;
    reporter.say(Message::End(EpochEnd { epoch: 1, last: 3 })).await;
    reporter.until(|mark| mark.epoch == 1 && mark.closed).await;
    plane.plane.shutdown().await;
}
