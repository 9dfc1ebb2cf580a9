//! Arguments that name a file to write to.

use super::schema::{Arguments, Property};
use super::words::{self, Texts};

/// Words that say where something goes, and words that say that this is a file.
const TARGETS: [&str; 8] = [
    "output", "out", "save", "saved", "download", "export", "local", "response",
];
const FILES: [&str; 8] = [
    "file",
    "filename",
    "filepath",
    "path",
    "dir",
    "directory",
    "folder",
    "filepaths",
];
/// Names that say both.
const WHOLE: [&str; 6] = ["outfile", "saveto", "saveas", "outdir", "writeto", "outputfile"];
/// Names that say a file; their description says whether it is written.
const MAYBE: [&str; 8] = [
    "filename",
    "filepath",
    "file",
    "path",
    "output",
    "out",
    "outputdirpath",
    "dest",
];
/// Words of an argument's description that say that the file is written.
const WRITTEN: [&str; 8] = [
    "save", "saves", "saved", "saving", "write", "written", "writes", "output",
];

/// Whether an argument names a file to write to.
pub(super) fn is_output(property: &Property<'_>) -> bool {
    if !property.accepts_text() || property.values().is_some() {
        return false;
    }
    if WHOLE.contains(&property.key.as_str()) {
        return true;
    }
    let words = words::split(&property.name).unwrap_or_default();
    let says = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    if says(&TARGETS) && says(&FILES) {
        return true;
    }
    MAYBE.contains(&property.key.as_str()) && property.description().is_some_and(|text| says_written(&text))
}

fn says_written(description: &str) -> bool {
    Texts::words(Texts::first_sentence(description))
        .any(|word| WRITTEN.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// The keys of the arguments that name a file to write to.
pub(super) fn outputs(arguments: &Arguments<'_>) -> Vec<(String, String)> {
    arguments
        .properties
        .iter()
        .filter(|property| is_output(property))
        .map(|property| (property.key.clone(), property.name.to_string()))
        .collect()
}
