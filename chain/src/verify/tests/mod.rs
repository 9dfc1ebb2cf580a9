mod cases;
mod export;
mod random;

use super::*;
use crate::checkpoint::{Checkpoint, CheckpointSigner, PublicKeys};
use crate::hash::Hash;
use crate::link::{ChainWriter, Head, KEY_CHANGE, MacKey, Position};
use crate::payload::Payload;
use crate::record::SourceRecord;
use crate::source::SourceChain;
use crate::timestamp::Timestamp;
use crate::vocabulary::{Outcome, RecordKind};

#[derive(Debug, Clone)]
struct Stored {
    header: String,
    payload: Option<String>,
    hash: Hash,
    mac: Option<Hash>,
    key_id: Option<String>,
}

impl Stored {
    fn line(&self) -> RecordLine<'_> {
        RecordLine {
            header: &self.header,
            payload: self.payload.as_deref(),
            hash: self.hash,
            mac: self.mac,
            key_id: self.key_id.as_deref(),
        }
    }
}

fn key(id: &str) -> MacKey {
    MacKey::new(id, id.as_bytes()).unwrap()
}

fn record(number: u64, tool: &str) -> SourceRecord {
    let time = Timestamp::from_micros(1_800_000_000_000_000 + i64::try_from(number).unwrap());
    let mut record = SourceRecord::new(
        format!("id-{number}"),
        time,
        RecordKind::Call,
        "default".to_owned(),
        Outcome::Ok,
    );
    record.agent = Some("agent \"a\"".to_owned());
    record.tool = Some(tool.to_owned().into());
    record
}

/// Writes chains as the product does: two sources, each record with a payload.
struct World {
    writer: ChainWriter,
    sources: [SourceChain; 2],
    records: Vec<Stored>,
}

impl World {
    fn new(key: Option<MacKey>) -> Self {
        Self {
            writer: ChainWriter::new(Head::GENESIS, key),
            sources: [SourceChain::new("sidecar-a", 1), SourceChain::new("sidecar-b", 7)],
            records: Vec::new(),
        }
    }

    fn of(length: u64, key: Option<MacKey>) -> Self {
        let mut world = Self::new(key);
        for number in 1..=length {
            world.add(record(number, "notes.read"));
        }
        world
    }

    fn add(&mut self, mut record: SourceRecord) {
        let source = &mut self.sources[self.records.len() % 3 % 2];
        let payload = Payload::new([7; 16]).seal().unwrap();
        record.payload_digest = Some(payload.digest);
        let sealed = source.seal(&mut record).unwrap();
        self.append(&sealed.text, Some(payload.text));
    }

    fn append(&mut self, text: &str, payload: Option<String>) {
        let linked = self.writer.append(text).unwrap();
        self.records.push(Stored {
            header: linked.header,
            payload,
            hash: linked.hash,
            mac: linked.mac,
            key_id: linked.mac.and_then(|_| self.writer.key_id().map(str::to_owned)),
        });
    }

    fn checkpoint(&self) -> Checkpoint {
        checkpoint(self.writer.head())
    }
}

fn checkpoint(head: Head) -> Checkpoint {
    Checkpoint {
        origin: "test".to_owned(),
        generation: head.at.generation,
        seq: head.at.seq,
        hash: head.hash,
        time: Timestamp::from_micros(1),
    }
}

fn verify_with(records: &[Stored], options: Options) -> Report {
    let mut verifier = Verifier::new(options);
    records.iter().for_each(|record| verifier.record(&record.line()));
    verifier.finish()
}

fn verify(records: &[Stored]) -> Report {
    verify_with(records, Options::default())
}

fn with_checkpoints(checkpoints: Vec<Checkpoint>) -> Options {
    Options {
        checkpoints,
        ..Options::default()
    }
}

fn with_keys(keys: &[&str]) -> Options {
    Options {
        keys: keys.iter().map(|id| key(id)).collect(),
        ..Options::default()
    }
}

fn found(report: &Report) -> (u64, DamageKind) {
    let damage = report.damage.as_ref().expect("damage");
    (damage.at.seq, damage.kind)
}
