use proptest::prelude::*;

use crate::checkpoint::{Checkpoint, CheckpointError, CheckpointSigner, PublicKeys};
use crate::hash::Hash;
use crate::link::{ChainWriter, Head, MacKey, Position, split_header};
use crate::payload::{Payload, payload_digest};
use crate::record::{Approval, Header, RecordError, SourceRecord};
use crate::source::SourceChain;
use crate::timestamp::Timestamp;
use crate::vocabulary::{Outcome, Reason, RecordKind};

fn record() -> SourceRecord {
    let time = Timestamp::from_micros(1_795_996_800_000_001);
    SourceRecord::new(
        "id".to_owned(),
        time,
        RecordKind::Call,
        "default".to_owned(),
        Outcome::Ok,
    )
}

#[test]
fn the_text_of_a_record_has_its_fields_in_order_and_leaves_absent_ones_out() {
    let mut record = record();
    record.reason = Some(Reason::NoRule);
    record.tool = Some("notes.read".into());
    assert_eq!(
        record.encode().unwrap(),
        r#"{"id":"id","time":"2026-11-30T00:00:00.000001Z","kind":"call","namespace":"default","tool":"notes.read","outcome":"ok","reason":"no_rule"}"#
    );
}

#[test]
fn a_record_from_outside_must_be_its_canonical_text() {
    let mut original = record();
    original.approval = Some(Approval {
        confidence: Some(0.1),
        ..Approval::default()
    });
    let text = original.encode().unwrap();
    assert_eq!(SourceRecord::decode(text.as_bytes()).unwrap(), original);
    let spaced = text.replacen(':', ": ", 1);
    assert!(matches!(
        SourceRecord::decode(spaced.as_bytes()),
        Err(RecordError::NotCanonical)
    ));
    let extended = text.replacen('{', "{\"seq\":1,", 1);
    assert!(matches!(
        SourceRecord::decode(extended.as_bytes()),
        Err(RecordError::Decode(_))
    ));
}

#[test]
fn a_source_numbers_and_links_its_records() {
    let mut chain = SourceChain::new("sidecar", 3);
    let first = chain.seal(&mut record()).unwrap();
    let second = chain.seal(&mut record()).unwrap();
    let read = SourceRecord::decode(second.text.as_bytes()).unwrap();
    assert_eq!((read.n, read.source_prev), (Some(2), Some(first.hash)));
    assert_eq!(first.hash, Hash::of(&[first.text.as_bytes()]));
    let resumed = SourceChain::resume("sidecar", 3, 2, second.hash);
    assert_eq!(resumed, chain);
}

#[test]
fn the_chain_puts_its_numbers_before_what_the_source_said() {
    let text = record().encode().unwrap();
    let mut writer = ChainWriter::new(Head::GENESIS, MacKey::new("k", b"secret"));
    let linked = writer.append(&text).unwrap();
    assert_eq!(
        linked.header,
        text.replacen('{', "{\"generation\":1,\"seq\":1,", 1)
    );
    assert_eq!(linked.hash, Hash::of(&[&[0; 32], linked.header.as_bytes()]));
    assert!(
        MacKey::new("k", b"secret")
            .unwrap()
            .verifies(&linked.hash, &linked.mac.unwrap())
    );
    let header = Header::decode(&linked.header).unwrap();
    assert_eq!((header.generation, header.seq, header.record), (1, 1, record()));
    for text in ["", "{}", "[1]", "{\"a\":1", "{ }"] {
        assert!(writer.append(text).is_err(), "{text}");
    }
    assert_eq!(writer.head().at, linked.at);
}

#[test]
fn the_numbers_of_a_header_are_read_in_canonical_form_only() {
    let at = Position {
        generation: 2,
        seq: 10,
    };
    assert_eq!(
        split_header(r#"{"generation":2,"seq":10,"id":1}"#),
        Some((at, r#""id":1}"#))
    );
    for text in [
        r#"{"generation":02,"seq":10,"id":1}"#,
        r#"{"generation":2, "seq":10,"id":1}"#,
        r#"{"generation":2,"seq":99999999999999999999,"id":1}"#,
        r#"{"seq":10,"generation":2,"id":1}"#,
    ] {
        assert_eq!(split_header(text), None, "{text}");
    }
}

#[test]
fn a_payloads_digest_depends_on_its_salt() {
    let sealed = Payload::new([1; 16]).seal().unwrap();
    assert_eq!(payload_digest(&sealed.text).unwrap(), sealed.digest);
    assert_ne!(Payload::new([2; 16]).seal().unwrap().digest, sealed.digest);
    assert!(payload_digest("{}").is_err());
}

#[test]
fn a_checkpoint_verifies_by_the_key_that_signed_it_only() {
    let signer = CheckpointSigner::from_seed(&[1; 32]);
    let checkpoint = Checkpoint {
        origin: "here".to_owned(),
        generation: 1,
        seq: 9,
        hash: Hash::ZERO,
        time: Timestamp::from_micros(0),
    };
    let signed = signer.sign(&checkpoint).unwrap();
    let keys = PublicKeys::from_text(&format!("# key\n\n{}\n", signer.public_key())).unwrap();
    assert_eq!(keys.verify(&signed).unwrap(), checkpoint);
    let mut altered = signed.clone();
    altered.text = altered.text.replace("\"seq\":9", "\"seq\":8");
    assert!(matches!(
        keys.verify(&altered),
        Err(CheckpointError::Signature { .. })
    ));
    let other = CheckpointSigner::from_seed(&[2; 32]).sign(&checkpoint).unwrap();
    assert!(matches!(
        keys.verify(&other),
        Err(CheckpointError::UnknownKey { .. })
    ));
    let mut renamed = other;
    renamed.key_id = signed.key_id;
    assert!(matches!(
        keys.verify(&renamed),
        Err(CheckpointError::Signature { .. })
    ));
}

proptest! {
    #[test]
    fn times_survive_their_text(micros in 0i64..=253_402_300_799_999_999) {
        let time = Timestamp::from_micros(micros);
        prop_assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
    }

    #[test]
    fn hashes_survive_their_text(bytes: [u8; 32]) {
        let hash = Hash::from_bytes(bytes);
        prop_assert_eq!(hash.to_string().parse::<Hash>().unwrap(), hash);
        prop_assert!(hash.to_string().replacen(|c: char| c.is_ascii_digit(), "g", 1).parse::<Hash>().is_err()
            || !hash.to_string().contains(|c: char| c.is_ascii_digit()));
    }
}
