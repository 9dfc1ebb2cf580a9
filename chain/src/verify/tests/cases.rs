use super::*;

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

/// Appends records of an epoch whose first two are not in the chain.
fn add_headless_epoch(world: &mut World) {
    let mut source = SourceChain::new("sidecar-e", 1);
    for number in 20..=23 {
        let text = source.seal(&mut record(number, "notes.read")).unwrap().text;
        if number > 21 {
            world.append(&text, None);
        }
    }
}

#[test]
fn an_epoch_whose_first_records_were_lost_by_a_restore_goes_on_in_the_next_generation() {
    let (mut world, newest) = restored(8);
    add_headless_epoch(&mut world);
    let report = verify_with(&world.records, with_checkpoints(vec![newest]));
    assert_eq!((report.damage, report.generations), (None, 2));
}

#[test]
fn an_epoch_that_begins_in_its_middle_without_a_restore_misses_records() {
    let mut world = World::of(3, None);
    add_headless_epoch(&mut world);
    assert_eq!(found(&verify(&world.records)), (4, DamageKind::Missing));
}
