//! A valid export of a small chain, edits of it, and what an intact report may stand for.

use std::sync::LazyLock;

use chain::checkpoint::{Checkpoint, CheckpointSigner, PublicKeys};
use chain::hash::Hash;
use chain::link::{ChainWriter, Head, MacKey};
use chain::payload::Payload;
use chain::record::SourceRecord;
use chain::source::SourceChain;
use chain::timestamp::Timestamp;
use chain::verify::{CheckpointLine, Options, RecordLine, Report, Verifier, verify_lines};
use chain::vocabulary::{Outcome, RecordKind};
use serde_json::Value;

const RECORDS: u32 = 7;
const KEY_ID: &str = "k1";

/// A chain as the product exports it, and what somebody else keeps of it.
pub struct Export {
    /// Its lines.
    pub text: String,
    records: Vec<Kept>,
    head: Checkpoint,
    public_keys: PublicKeys,
    key: MacKey,
}

struct Kept {
    header: String,
    payload: String,
    hash: Hash,
}

/// Seven records of two sources with payloads and MACs, and a signed checkpoint after each third.
pub static EXPORT: LazyLock<Export> = LazyLock::new(Export::write);

impl Export {
    fn write() -> Self {
        let signer = CheckpointSigner::from_seed(&[1; 32]);
        let key = MacKey::new(KEY_ID, b"key").expect("a key");
        let mut writer = ChainWriter::new(Head::GENESIS, Some(key.clone()));
        let mut sources = [SourceChain::new("sidecar-a", 1), SourceChain::new("sidecar-b", 7)];
        let (mut text, mut records) = (String::new(), Vec::new());
        for number in 1..=RECORDS {
            let mut record = record(number);
            let payload = Payload::new([7; 16]).seal().expect("a payload");
            record.payload_digest = Some(payload.digest);
            let source = &mut sources[number as usize % 2];
            let sealed = source.seal(&mut record).expect("a record");
            let linked = writer.append(&sealed.text).expect("a link");
            let line = RecordLine {
                header: &linked.header,
                payload: Some(&payload.text),
                hash: linked.hash,
                mac: linked.mac,
                key_id: Some(KEY_ID),
            };
            text += &line.to_line().expect("a line");
            if number % 3 == 0 {
                let signed = signer.sign(&checkpoint(writer.head())).expect("a signature");
                text += &CheckpointLine { checkpoint: &signed }.to_line().expect("a line");
            }
            records.push(Kept {
                header: linked.header,
                payload: payload.text,
                hash: linked.hash,
            });
        }
        Self {
            text,
            records,
            head: checkpoint(writer.head()),
            public_keys: PublicKeys::from_iter([signer.public_key()]),
            key,
        }
    }

    /// Verifies lines with everything that is known about the chain.
    pub fn verify(&self, lines: &[u8]) -> Report {
        let options = Options {
            checkpoints: vec![self.head.clone()],
            public_keys: self.public_keys.clone(),
            keys: vec![self.key.clone()],
            ..Options::default()
        };
        verify_lines(lines, Verifier::new(options), |_| {}).expect("memory can be read")
    }

    /// Whether lines say what the chain says from some record on: every header, every hash, and of the payloads those
    /// that are there.
    pub fn is_told_by(&self, lines: &[u8]) -> bool {
        let lines = lines
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice::<Value>);
        let Ok(lines) = lines.collect::<Result<Vec<_>, _>>() else {
            return false;
        };
        let told: Vec<_> = lines
            .iter()
            .filter(|line| line.get("checkpoint").is_none())
            .collect();
        let Some(skipped) = self.records.len().checked_sub(told.len()) else {
            return false;
        };
        told.iter().zip(&self.records[skipped..]).all(|(line, kept)| {
            let text = |key: &str| line.get(key).and_then(Value::as_str);
            text("header") == Some(kept.header.as_str())
                && text("payload").is_none_or(|payload| payload == kept.payload)
                && text("hash").is_some_and(|hash| hash.eq_ignore_ascii_case(&kept.hash.to_string()))
        })
    }
}

fn record(number: u32) -> SourceRecord {
    let mut record = SourceRecord::new(
        format!("id-{number}"),
        Timestamp::from_micros(1_800_000_000_000_000 + i64::from(number)),
        RecordKind::Call,
        "default".to_owned(),
        Outcome::Ok,
    );
    record.agent = Some("agent \"a\"".to_owned());
    record.tool = Some("notes.read".to_owned().into());
    record
}

fn checkpoint(head: Head) -> Checkpoint {
    Checkpoint {
        origin: "fuzz".to_owned(),
        generation: head.at.generation,
        seq: head.at.seq,
        hash: head.hash,
        time: Timestamp::from_micros(1),
    }
}

/// Applies edits, five bytes each: what, where (two bytes, modulo), how far, and which byte.
pub fn edit(text: &str, edits: &[u8]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for edit in edits.chunks_exact(5).take(16) {
        let [what, high, low, far, byte] = *edit else {
            continue;
        };
        let place = usize::from(u16::from_be_bytes([high, low]));
        match what % 6 {
            0 => {
                let place = place % bytes.len().max(1);
                bytes.get_mut(place).into_iter().for_each(|old| *old = byte);
            }
            1 => bytes.insert(place % (bytes.len() + 1), byte),
            2 => {
                let start = place % (bytes.len() + 1);
                let end = (start + usize::from(far)).min(bytes.len());
                bytes.drain(start..end);
            }
            line_edit => bytes = edit_lines(&bytes, line_edit, place, usize::from(far)),
        }
    }
    bytes
}

fn edit_lines(bytes: &[u8], what: u8, one: usize, other: usize) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let (one, other) = (one % lines.len(), other % lines.len());
    match what {
        3 => lines.swap(one, other),
        4 => lines.insert(other, lines[one]),
        _ => {
            lines.remove(one);
        }
    }
    lines.join(&b'\n')
}
