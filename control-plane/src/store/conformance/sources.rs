//! Records as sources make them, and the chain as an export of it is verified.

use chain::{
    checkpoint::{Checkpoint, CheckpointSigner, SignedCheckpoint},
    hash::Hash,
    payload::Payload,
    record::SourceRecord,
    source::SourceChain,
    timestamp::Timestamp,
    verify::{Options, RecordLine, Verifier},
    vocabulary::{Outcome, RecordKind},
};

use crate::store::{
    Store,
    records::{ChainPosition, CheckpointRow, Incoming, IncomingRecord, IngestBatch},
};

/// Makes the records of one epoch.
pub(super) struct Source {
    chain: SourceChain,
    sidecar: String,
}

impl Source {
    pub(super) fn new(sidecar: &str, epoch: u64) -> Self {
        Self {
            chain: SourceChain::new(sidecar.to_owned(), epoch),
            sidecar: sidecar.to_owned(),
        }
    }

    pub(super) fn record(&mut self, change: impl FnOnce(&mut SourceRecord)) -> IncomingRecord {
        let id = format!(
            "{}-{}-{}",
            self.sidecar,
            self.chain.epoch(),
            self.chain.last() + 1
        );
        let mut record = SourceRecord::new(
            id,
            Timestamp::from_micros(1_000_000),
            RecordKind::Call,
            "default".into(),
            Outcome::Ok,
        );
        let mut payload = Payload::new([3; 16]);
        payload.error = Some("line\none\t\\ \"two\"".to_owned());
        let payload = payload.seal().unwrap();
        record.payload_digest = Some(payload.digest);
        change(&mut record);
        let sealed = self.chain.seal(&mut record).unwrap();
        IncomingRecord::decode(sealed.n, sealed.text.into(), payload.text.into()).unwrap()
    }

    pub(super) fn batch(&mut self, count: usize) -> IngestBatch {
        let records = (0..count).map(|_| self.record(|_| ())).collect();
        self.of(records)
    }

    pub(super) fn of(&self, records: Vec<IncomingRecord>) -> IngestBatch {
        IngestBatch {
            sidecar: self.sidecar.clone(),
            epoch: self.chain.epoch(),
            records: records.into_iter().map(Incoming::from).collect(),
        }
    }
}

const START: ChainPosition = ChainPosition {
    generation: 0,
    seq: 0,
};

fn signer() -> CheckpointSigner {
    CheckpointSigner::from_seed(&[9; 32])
}

/// Verifies the whole chain as an export of it is verified; answers how many records it has.
pub(super) async fn verified(store: &dyn Store) -> usize {
    let records = store.records_after(START, 100_000).await.unwrap();
    let checkpoints = store.checkpoints(1000).await.unwrap();
    let mut verifier = Verifier::new(Options {
        public_keys: [signer().public_key()].into_iter().collect(),
        ..Options::default()
    });
    for record in &records {
        verifier.record(&RecordLine {
            header: &record.header,
            payload: record.payload.as_deref(),
            hash: record.hash.into(),
            mac: record.mac.map(Hash::from),
            key_id: Some(record.key_id.as_str()).filter(|id| !id.is_empty()),
        });
        for row in checkpoints.iter().filter(|row| row.at == record.at) {
            verifier.checkpoint(&SignedCheckpoint::from_parts(
                row.text.clone(),
                &row.signature,
                row.key_id.clone(),
            ));
        }
    }
    let report = verifier.finish();
    assert!(report.is_intact(), "{report:?}");
    let head = store.chain_head().await.unwrap();
    let last = records.last().unwrap();
    assert_eq!((head.at, head.hash), (last.at, last.hash));
    records.len()
}

/// States the head, as the checkpoint service does.
pub(super) async fn checkpoint(store: &dyn Store) -> CheckpointRow {
    let head = store.chain_head().await.unwrap();
    let statement = Checkpoint {
        origin: "test".to_owned(),
        generation: head.at.generation,
        seq: head.at.seq,
        hash: head.hash.into(),
        time: Timestamp::from_micros(head.database_time),
    };
    let signed = signer().sign(&statement).unwrap();
    let row = CheckpointRow {
        at: head.at,
        hash: head.hash,
        time: head.database_time,
        signature: signed.signature_bytes().unwrap().to_vec(),
        text: signed.text,
        key_id: signed.key_id,
    };
    store.insert_checkpoint(row.clone()).await.unwrap();
    row
}
