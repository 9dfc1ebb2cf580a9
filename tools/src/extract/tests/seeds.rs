//! What fuzzing begins with, and what it found, is read by every dialect without a panic.

use std::path::Path;

use super::read;
use crate::extract::{Dialect, Extractor};
use crate::json::{Document, Limits};

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/seeds")
        .join(target);
    let files = std::fs::read_dir(&folder).unwrap();
    files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect()
}

#[test]
fn the_seeds_of_sql_are_read() {
    let seeds = seeds("sql_extract");
    assert!(seeds.len() > 10);
    for seed in seeds {
        let text = String::from_utf8_lossy(seed.get(1..).unwrap_or_default()).into_owned();
        for dialect in Dialect::ALL {
            let extraction = read(dialect, &text);
            assert!(extraction.complete || !extraction.reasons.is_empty());
        }
    }
}

#[test]
fn the_seeds_of_templates_are_read() {
    for seed in seeds("uri_template") {
        let text = String::from_utf8_lossy(&seed).into_owned();
        let (template, arguments) = text.split_once('\n').unwrap();
        let extractor = Extractor::UriTemplate {
            template: template.to_owned(),
        };
        let document = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
        let extraction = extractor.extract(Some(document.root()));
        assert!(extraction.complete || !extraction.reasons.is_empty());
    }
}
