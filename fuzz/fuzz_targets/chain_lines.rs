//! `verify_lines` never panics, and an edited export is intact only where it still says what the chain says.
//!
//! The first byte chooses: even, the rest are lines; odd, the rest are edits of a valid export.
#![no_main]

use fuzz::export::{EXPORT, edit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else {
        assert!(EXPORT.verify(EXPORT.text.as_bytes()).is_intact());
        return;
    };
    let lines = if choice % 2 == 0 {
        rest.to_vec()
    } else {
        edit(&EXPORT.text, rest)
    };
    let report = EXPORT.verify(&lines);
    assert!(
        !report.is_intact() || EXPORT.is_told_by(&lines),
        "called intact:\n{}\n{report:?}",
        String::from_utf8_lossy(&lines)
    );
});
