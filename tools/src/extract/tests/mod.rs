//! Rows of what is read from which arguments.

mod hostile;
mod properties;
mod seeds;
mod sql;
mod templates;

use serde_json::json;

use super::{Dialect, Extraction, Extractor};
use crate::json::{Document, Limits};
use crate::targets::Extent;

/// What an extractor reads from these arguments.
pub(super) fn extract(extractor: &Extractor, arguments: &serde_json::Value) -> Extraction {
    let text = arguments.to_string();
    let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS).unwrap();
    extractor.extract(Some(document.root()))
}

/// What is read from an SQL text.
pub(super) fn read(dialect: Dialect, text: &str) -> Extraction {
    let extractor = Extractor::Sql {
        argument: "query".to_owned(),
        dialect,
        schema: None,
        functions: Vec::new(),
    };
    extract(&extractor, &json!({"query": text}))
}

/// The members of a set, between spaces; `?` when it is unknown.
pub(super) fn shown(extent: &Extent) -> String {
    match extent {
        Extent::Known(members) => members.join(" "),
        Extent::Unknown => "?".to_owned(),
    }
}

/// The risks, between spaces; `?` when the text was not parsed.
pub(super) fn risks(extraction: &Extraction) -> String {
    match extraction.risks {
        Some(risks) => risks.iter().map(|risk| risk.name()).collect::<Vec<_>>().join(" "),
        None => "?".to_owned(),
    }
}
