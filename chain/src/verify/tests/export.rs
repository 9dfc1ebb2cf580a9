use proptest::prelude::*;

use super::*;

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

#[test]
fn a_line_that_is_laid_out_differently_reads_the_same() {
    let signer = CheckpointSigner::from_seed(&[1; 32]);
    let text = export(&World::of(5, Some(key("k1"))), &signer);
    let expected = verify_text(&text, &signer);
    let spaced = text
        .replace("{\"header\":", "{ \"header\" : ")
        .replace("default", "\\u0064efault");
    assert_eq!(verify_text(&spaced, &signer), expected);
    assert_eq!(verify_text(&text.replace('\n', "\r\n\n"), &signer), expected);
    assert!(expected.is_intact());
}

#[test]
fn fields_that_are_not_covered_are_not_let_in() {
    let signer = CheckpointSigner::from_seed(&[1; 32]);
    let text = export(&World::of(2, None), &signer);
    let smuggled = text.replacen("{\"header\":", "{\"note\":\"x\",\"header\":", 1);
    assert_eq!(found(&verify_text(&smuggled, &signer)), (1, DamageKind::Changed));
}

proptest! {
    #[test]
    fn arbitrary_lines_never_panic(text in "(\\{\"(header|checkpoint)\":\"?[ -~\n]{0,40}){0,4}") {
        let report = verify_lines(text.as_bytes(), Verifier::new(Options::default()), |_| {}).unwrap();
        prop_assert!(report.last.is_none());
    }
}
