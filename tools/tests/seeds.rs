//! What fuzzing found hard to read is read, without a panic and never as milder than it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use tools::classify::{Risk, RiskSet};
use tools::{patch, shell};

/// The texts among the seeds of a fuzz target, with their names.
fn seeds(target: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/seeds")
        .join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let texts: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name()?.to_string_lossy().into_owned();
            Some((name, std::fs::read_to_string(path).ok()?))
        })
        .collect();
    assert!(texts.len() > 3, "{target}: {texts:?}");
    texts
}

#[test]
fn no_shell_text_hides_what_follows_it() {
    for (name, text) in seeds("shell_text") {
        let reading = shell::read(&text);
        assert!(!reading.risks.is_empty(), "{name}");
        assert!(
            reading.complete || reading.risks.contains(Risk::Execution),
            "{name}"
        );
        if text.ends_with('\\') || text.contains("<<") {
            // The next line may belong to this one.
            continue;
        }
        let followed = shell::read(&format!("{text}\nrm x"));
        assert!(followed.risks != RiskSet::of(Risk::Read), "{name}");
        assert!(
            followed.risks.contains(Risk::Delete) || !followed.complete,
            "{name}"
        );
    }
}

#[test]
fn a_patch_that_is_not_read_whole_may_do_anything() {
    for (name, text) in seeds("patch_text") {
        let reading = patch::read(&text);
        assert!(reading.risks.contains(Risk::LocalWrite), "{name}");
        assert_eq!(
            reading.complete,
            !reading.risks.contains(Risk::Execution),
            "{name}"
        );
    }
}
