//! Reading shell text never panics and stays bounded; a reading is never empty, an uncertain one is never a plain read and
//! says nothing about targets; and what follows on a line of its own is not lost.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tools::classify::{Risk, RiskSet};
use tools::shell::{ShellReading, read};
use tools::targets::Extent;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let reading = read(text);
    check(&reading);
    if is_plain_read(&reading) {
        assert!(
            !text.contains(['`', '\r', '\0']) || text.contains(['\'', '#', '\\']),
            "{text:?}"
        );
    }
    if text.ends_with('\\') || text.contains("<<") {
        // The next line may belong to this one, or be what a here-document ends with.
        return;
    }
    let followed = read(&format!("{text}\nrm x"));
    check(&followed);
    assert!(!is_plain_read(&followed), "{text:?}");
    assert!(
        followed.risks.contains(Risk::Delete) || !followed.complete,
        "{text:?}"
    );
    let wrapped = read(&format!("sudo {text}"));
    check(&wrapped);
});

fn is_plain_read(reading: &ShellReading) -> bool {
    reading.risks == RiskSet::of(Risk::Read)
}

fn check(reading: &ShellReading) {
    assert!(!reading.risks.is_empty() && !reading.reasons.is_empty());
    if !reading.complete {
        assert!(reading.risks.contains(Risk::Execution));
        for extent in [&reading.hosts, &reading.paths, &reading.recipients] {
            assert_eq!(*extent, Extent::Unknown);
        }
    }
}
