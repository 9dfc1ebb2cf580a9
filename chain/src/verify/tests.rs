use proptest::prelude::*;

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

#[test]
fn an_untouched_chain_is_intact_and_counted() {
    let world = World::of(10, Some(key("k1")));
    let mut options = with_keys(&["k1"]);
    options.checkpoints = vec![world.checkpoint()];
    let report = verify_with(&world.records, options);
    assert_eq!(report.damage, None);
    assert_eq!(
        (report.records, report.payloads, report.macs, report.checkpoints),
        (10, 10, 10, 1)
    );
    assert_eq!((report.sources, report.generations, report.lost), (2, 1, 0));
    assert_eq!(
        report.last,
        Some(Position {
            generation: 1,
            seq: 10
        })
    );
    assert_eq!(report.head, Some(world.writer.head().hash));
}

#[test]
fn an_erased_payload_leaves_the_chain_whole_and_a_changed_one_does_not() {
    let mut world = World::of(5, None);
    world.records[2].payload = None;
    let report = verify(&world.records);
    assert!(report.is_intact());
    assert_eq!((report.payloads, report.payloads_erased), (4, 1));
    world.records[3].payload = Some(Payload::new([8; 16]).seal().unwrap().text);
    assert_eq!(found(&verify(&world.records)), (4, DamageKind::Changed));
}

#[test]
fn a_chain_that_was_cut_is_found_by_a_checkpoint_that_somebody_kept() {
    let world = World::of(8, None);
    let kept = vec![world.checkpoint()];
    assert!(verify(&world.records[..5]).is_intact());
    let report = verify_with(&world.records[..5], with_checkpoints(kept));
    assert_eq!(found(&report), (6, DamageKind::Truncated));
}

#[test]
fn a_rewritten_chain_is_found_by_a_checkpoint_that_somebody_kept() {
    let kept = vec![World::of(6, None).checkpoint()];
    let mut rewritten = World::new(None);
    for number in 1..=8 {
        let tool = if number == 4 { "notes.other" } else { "notes.read" };
        rewritten.add(record(number, tool));
    }
    assert!(verify(&rewritten.records).is_intact());
    let report = verify_with(&rewritten.records, with_checkpoints(kept));
    assert_eq!(found(&report), (6, DamageKind::Forked));
}

#[test]
fn a_removed_record_is_found_by_its_source_when_the_chain_was_linked_anew() {
    let mut world = World::new(None);
    let mut source = SourceChain::new("sidecar-a", 1);
    for number in 1..=5 {
        let text = source.seal(&mut record(number, "t.t")).unwrap().text;
        if number != 3 {
            world.append(&text, None);
        }
    }
    let report = verify(&world.records);
    assert_eq!(found(&report), (3, DamageKind::Missing));
}

#[test]
fn a_record_that_was_rehashed_without_the_key_is_found() {
    let mut world = World::of(6, Some(key("k1")));
    let altered = world.records[2].header.replace("notes.read", "notes.evil");
    world.records[2].hash = crate::link::link(&world.records[1].hash, altered.as_bytes());
    world.records[2].header = altered;
    assert_eq!(
        found(&verify_with(&world.records, with_keys(&["k1"]))),
        (3, DamageKind::WrongKey)
    );
    assert_eq!(found(&verify(&world.records)).0, 4);
}

#[test]
fn a_key_change_must_be_announced_under_the_old_key() {
    let mut world = World::of(3, Some(key("k1")));
    let mut change = record(4, KEY_CHANGE);
    change.kind = RecordKind::Act;
    world.add(change);
    world.writer.change_key(key("k2"));
    world.add(record(5, "notes.read"));
    assert!(verify_with(&world.records, with_keys(&["k1", "k2"])).is_intact());
    assert!(verify(&world.records).is_intact());
    world.writer.change_key(key("k3"));
    world.add(record(6, "notes.read"));
    let report = verify_with(&world.records, with_keys(&["k1", "k2", "k3"]));
    assert_eq!(found(&report), (6, DamageKind::WrongKey));
}

#[test]
fn a_chain_without_any_mac_is_a_downgrade_when_a_key_was_given() {
    let world = World::of(3, None);
    assert_eq!(
        found(&verify_with(&world.records, with_keys(&["k1"]))),
        (1, DamageKind::Downgraded)
    );
}

/// A chain whose database lost the records after 6, and that goes on in generation 2 after `linked`.
fn restored(linked: u64) -> (World, Checkpoint) {
    let mut world = World::of(8, None);
    let newest = world.checkpoint();
    let hash = world.records[usize::try_from(linked).unwrap() - 1].hash;
    world.records.truncate(6);
    world.writer = ChainWriter::new(Head::of_generation(2, hash), None);
    world.sources = [SourceChain::new("sidecar-c", 1), SourceChain::new("sidecar-d", 1)];
    world.add(record(9, "notes.read"));
    world.add(record(10, "notes.read"));
    (world, newest)
}

#[test]
fn a_new_generation_links_the_last_trusted_checkpoint() {
    let (world, newest) = restored(8);
    let report = verify_with(&world.records, with_checkpoints(vec![newest]));
    assert_eq!((report.damage, report.lost, report.generations), (None, 2, 2));
    assert_eq!(
        report.last,
        Some(Position {
            generation: 2,
            seq: 2
        })
    );
    assert_eq!(found(&verify(&world.records)), (1, DamageKind::Forked));
}

#[test]
fn a_new_generation_that_forgets_a_checkpoint_is_a_truncation() {
    let (world, newest) = restored(6);
    assert!(verify(&world.records).is_intact());
    let report = verify_with(&world.records, with_checkpoints(vec![newest]));
    assert_eq!(found(&report), (7, DamageKind::Truncated));
}

#[test]
fn a_kept_part_is_verified_from_the_checkpoint_before_it() {
    let mut world = World::of(4, None);
    let start = world.checkpoint();
    for number in 5..=7 {
        world.add(record(number, "notes.read"));
    }
    let options = Options {
        start: Some(start.clone()),
        ..Options::default()
    };
    let report = verify_with(&world.records[4..], options);
    assert_eq!((report.damage, report.start), (None, Some(start.position())));
    assert_eq!(found(&verify(&world.records[4..])), (1, DamageKind::Missing));
}

/// The export of a world, with a signed checkpoint after each third record.
fn export(world: &World, signer: &CheckpointSigner) -> String {
    let mut text = String::new();
    for stored in &world.records {
        text += &stored.line().to_line().unwrap();
        let (at, _) = crate::link::split_header(&stored.header).unwrap();
        if at.seq % 3 == 0 {
            let head = Head {
                at,
                hash: stored.hash,
            };
            let signed = signer.sign(&checkpoint(head)).unwrap();
            text += &CheckpointLine { checkpoint: &signed }.to_line().unwrap();
        }
    }
    text
}

fn verify_text(text: &str, signer: &CheckpointSigner) -> Report {
    let options = Options {
        public_keys: PublicKeys::from_iter([signer.public_key()]),
        ..Options::default()
    };
    verify_lines(text.as_bytes(), Verifier::new(options), |_| {}).unwrap()
}

#[test]
fn an_export_is_verified_line_by_line() {
    let signer = CheckpointSigner::from_seed(&[1; 32]);
    let text = export(&World::of(10, Some(key("k1"))), &signer);
    let report = verify_text(&text, &signer);
    assert_eq!((report.damage, report.records), (None, 10));
    assert_eq!(
        (report.checkpoints, report.signatures, report.macs_unchecked),
        (3, 3, 10)
    );
}

#[test]
fn a_checkpoint_by_another_key_or_with_another_text_is_found() {
    let world = World::of(4, None);
    let text = export(&world, &CheckpointSigner::from_seed(&[1; 32]));
    let report = verify_text(&text, &CheckpointSigner::from_seed(&[2; 32]));
    assert_eq!(found(&report), (3, DamageKind::WrongKey));
    let signer = CheckpointSigner::from_seed(&[1; 32]);
    let report = verify_text(
        &text.replace(r#"\"origin\":\"test\""#, r#"\"origin\":\"text\""#),
        &signer,
    );
    assert_eq!(found(&report), (3, DamageKind::WrongKey));
}

#[test]
fn lines_that_cannot_be_read_are_damage_at_their_place() {
    let signer = CheckpointSigner::from_seed(&[1; 32]);
    let text = export(&World::of(5, None), &signer);
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1] = "{\"header\": 3}".to_owned();
    assert_eq!(
        found(&verify_text(&lines.join("\n"), &signer)),
        (2, DamageKind::Changed)
    );
}

#[test]
fn an_export_may_begin_after_a_signed_checkpoint() {
    let signer = CheckpointSigner::from_seed(&[1; 32]);
    let text = export(&World::of(7, None), &signer);
    let rest: Vec<_> = text.lines().skip(3).collect();
    let report = verify_text(&rest.join("\n"), &signer);
    assert_eq!((report.damage, report.records), (None, 4));
    assert_eq!(report.start.unwrap().seq, 3);
}

proptest! {
    #[test]
    fn a_changed_byte_is_found_at_its_record(length in 2u64..30, place: prop::sample::Index, byte: prop::sample::Index, new in b'#'..b'z') {
        let mut world = World::of(length, None);
        let place = place.index(world.records.len() - 1);
        let header = &mut world.records[place].header;
        let byte = byte.index(header.len());
        prop_assume!(header.as_bytes()[byte] != new);
        header.replace_range(byte..=byte, char::from(new).encode_utf8(&mut [0; 4]));
        prop_assert_eq!(found(&verify(&world.records)), (place as u64 + 1, DamageKind::Changed));
    }

    #[test]
    fn a_changed_hash_is_found_at_its_record(length in 1u64..30, place: prop::sample::Index) {
        let mut world = World::of(length, None);
        let place = place.index(world.records.len());
        world.records[place].hash = Hash::ZERO;
        prop_assert_eq!(found(&verify(&world.records)), (place as u64 + 1, DamageKind::Changed));
    }

    #[test]
    fn removed_records_are_found_at_the_first_of_them(length in 2u64..30, place: prop::sample::Index, count in 1usize..5) {
        let mut world = World::of(length, None);
        let place = place.index(world.records.len() - 1);
        let end = (place + count).min(world.records.len() - 1);
        world.records.drain(place..end);
        prop_assert_eq!(found(&verify(&world.records)), (place as u64 + 1, DamageKind::Missing));
    }

    #[test]
    fn moved_records_are_found_at_the_first_bad_place(length in 2u64..30, from: prop::sample::Index, to: prop::sample::Index) {
        let mut world = World::of(length, None);
        let (from, to) = (from.index(world.records.len()), to.index(world.records.len()));
        prop_assume!(from != to);
        let moved = world.records.remove(from);
        world.records.insert(to, moved);
        prop_assert_eq!(found(&verify(&world.records)), (from.min(to) as u64 + 1, DamageKind::Reordered));
    }

    #[test]
    fn a_copied_record_is_found_where_it_stands(length in 2u64..30, from: prop::sample::Index, to: prop::sample::Index) {
        let mut world = World::of(length, None);
        let (from, to) = (from.index(world.records.len()), to.index(world.records.len()));
        let copy = world.records[from].clone();
        world.records.insert(to, copy);
        let place = if from < to { from } else { to + usize::from(from == to) * (from - to) };
        prop_assert_eq!(found(&verify(&world.records)), (place as u64 + 1, DamageKind::Inserted));
    }

    #[test]
    fn a_forged_record_is_found_whether_or_not_it_is_linked(length in 2u64..30, place: prop::sample::Index, linked: bool) {
        let mut world = World::of(length, None);
        let place = place.index(world.records.len());
        let mut forged = world.records[place].clone();
        forged.header = forged.header.replace("notes.read", "notes.evil");
        if linked {
            let prev = place.checked_sub(1).map_or(Hash::ZERO, |before| world.records[before].hash);
            forged.hash = crate::link::link(&prev, forged.header.as_bytes());
        }
        world.records.insert(place, forged);
        prop_assert_eq!(found(&verify(&world.records)), (place as u64 + 1, DamageKind::Inserted));
    }

    #[test]
    fn a_wrong_key_is_found_where_it_begins(length in 1u64..30, place: prop::sample::Index) {
        let mut world = World::of(length, Some(key("k1")));
        let place = place.index(world.records.len());
        let forger = MacKey::new("k1", b"guessed").unwrap();
        for stored in &mut world.records[place..] {
            stored.mac = Some(forger.tag(&stored.hash));
        }
        prop_assert_eq!(found(&verify_with(&world.records, with_keys(&["k1"]))), (place as u64 + 1, DamageKind::WrongKey));
    }

    #[test]
    fn a_downgrade_is_found_where_it_begins(length in 2u64..30, place: prop::sample::Index) {
        let mut world = World::of(length, Some(key("k1")));
        let place = 1 + place.index(world.records.len() - 1);
        for stored in &mut world.records[place..] {
            (stored.mac, stored.key_id) = (None, None);
        }
        prop_assert_eq!(found(&verify(&world.records)), (place as u64 + 1, DamageKind::Downgraded));
    }

    #[test]
    fn a_truncation_is_found_at_the_first_missing_record(length in 2u64..30, place: prop::sample::Index) {
        let mut world = World::of(length, None);
        let kept = vec![world.checkpoint()];
        let place = place.index(world.records.len());
        world.records.truncate(place);
        prop_assert_eq!(found(&verify_with(&world.records, with_checkpoints(kept))), (place as u64 + 1, DamageKind::Truncated));
    }

    #[test]
    fn arbitrary_lines_never_panic(text in "(\\{\"(header|checkpoint)\":\"?[ -~\n]{0,40}){0,4}") {
        let report = verify_lines(text.as_bytes(), Verifier::new(Options::default()), |_| {}).unwrap();
        prop_assert!(report.last.is_none());
    }
}
