//! Reading a patch never panics and stays bounded; an uncertain reading names no paths and is never milder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tools::classify::Risk;
use tools::patch::read;
use tools::targets::Extent;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let reading = read(text);
    assert!(reading.risks.contains(Risk::LocalWrite) && !reading.reasons.is_empty());
    assert_eq!(reading.complete, !reading.risks.contains(Risk::Execution));
    assert_eq!(reading.deletes, reading.risks.contains(Risk::Delete));
    match &reading.paths {
        Extent::Known(paths) => {
            assert!(reading.complete && !paths.is_empty() && paths.iter().all(|path| !path.is_empty()))
        }
        Extent::Unknown => assert!(!reading.complete),
    }
});
