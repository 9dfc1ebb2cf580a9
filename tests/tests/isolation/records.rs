//! Records in the name of another namespace or agent.

use chain::record::SourceRecord;
use chain::source::SourceChain;
use chain::timestamp::Timestamp;
use chain::vocabulary::{Outcome, RecordKind};
use proto::v1::reports_request::Message as Report;
use proto::v1::{Opening, Record, RecordBatch, ReportsRequest};
use serde_json::json;
use tests::fleet::Fleet;
use tests::raw::RawSidecar;
use tonic::Code;

use super::{LASTING, red};

/// The next record of the sidecar's own chain, about a call of `agent` in `namespace`.
fn batch(chain: &mut SourceChain, namespace: &str, agent: &str) -> RecordBatch {
    let time = Timestamp::from_micros(1_700_000_000_000_000);
    let id = format!("00000000-0000-7000-8000-{:012}", chain.last());
    let mut record = SourceRecord::new(id, time, RecordKind::Call, namespace.to_owned(), Outcome::Ok);
    record.agent = Some(agent.to_owned());
    record.tool = Some("forged.tool".into());
    let sealed = chain.seal(&mut record).unwrap();
    RecordBatch {
        epoch: chain.epoch(),
        records: vec![Record {
            n: sealed.n,
            source: sealed.text.into_bytes().into(),
            payload: Vec::new().into(),
        }],
    }
}

/// What became of a batch: how far records were committed, or why the stream was ended.
async fn reported(red: &RawSidecar, batch: RecordBatch) -> Result<u64, tonic::Status> {
    let through = batch.records.last().map_or(0, |record| record.n);
    let opening = Opening {
        epochs: vec![red.enrolled.epoch],
    };
    let messages = [Report::Opening(opening), Report::Batch(batch)].map(|message| ReportsRequest {
        message: Some(message),
    });
    let (say, said) = tokio::sync::mpsc::channel(4);
    for message in messages {
        say.send(message).await.unwrap();
    }
    let request = red.request(tokio_stream::wrappers::ReceiverStream::new(said));
    let mut stream = red.reports().stream(request).await?.into_inner();
    loop {
        let Some(answer) = stream.message().await? else {
            panic!("the stream ended without a reason");
        };
        if let Some(mark) = answer.watermarks.iter().find(|mark| mark.committed >= through) {
            return Ok(mark.committed);
        }
    }
}

#[tokio::test]
async fn records_of_a_foreign_namespace_or_agent_are_refused_and_not_stored() {
    let fleet = Fleet::on_sqlite(LASTING).await;
    let operator = fleet.operator();
    let red = red(&fleet).await;
    let mut chain = SourceChain::new(red.enrolled.sidecar_id.clone(), red.enrolled.epoch);
    for (namespace, agent) in [
        ("blue", "red-1"),
        ("red", "blue-1"),
        ("blue", "blue-1"),
        ("default", "red-1"),
    ] {
        let forged = batch(&mut chain, namespace, agent);
        let n = chain.last();
        // Its number is taken, so that it holds up nothing; what is stored in its place says that it was refused.
        assert_eq!(reported(&red, forged).await.unwrap(), n, "{namespace} {agent}");
    }
    assert_eq!(operator.get("/traces?tool=forged.tool").await, json!([]));
    let refused = operator.records("tool=mesh.record_refused", 4).await;
    for record in &refused {
        assert_eq!(record["namespace"], json!("red"), "{record}");
    }
    let own = batch(&mut chain, "red", "red-1");
    assert_eq!(reported(&red, own).await.unwrap(), 5);
    let stored = operator.records("tool=forged.tool", 1).await;
    assert_eq!(
        (&stored[0]["namespace"], &stored[0]["agent_id"]),
        (&json!("red"), &json!("red-1"))
    );

    let wide = fleet.join_token("red", &["red-*".to_owned()]).await;
    let refused = RawSidecar::enrol(&fleet, &wide, &["*".to_owned()])
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
}
