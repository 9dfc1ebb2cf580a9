use proptest::prelude::*;

use super::*;

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
}
