//! `Document::parse` accepts exactly what serde_json accepts and that has one reading within the limits; the canonical
//! form means the same, parses again, and is its own canonical form.
#![no_main]

use fuzz::json::{Json, depth, is_grammatical, is_only_out_of_range, is_same, means_same};
use libfuzzer_sys::fuzz_target;
use tools::json::{Document, JsonError, JsonErrorKind, Limits, canonical};

/// Small enough for inputs to be on both sides.
const LIMITS: Limits = Limits {
    max_bytes: 2048,
    max_depth: 64,
};

fuzz_target!(|bytes: &[u8]| {
    match Document::parse(bytes, LIMITS) {
        Ok(document) => accepted(bytes, &document),
        Err(error) => refused(bytes, error),
    }
});

fn accepted(bytes: &[u8], document: &Document<'_>) {
    assert!(bytes.len() <= LIMITS.max_bytes && depth(bytes) <= LIMITS.max_depth);
    assert!(is_grammatical(bytes), "accepted what is no JSON");
    match serde_json::from_slice::<Json>(bytes) {
        Ok(json) => assert!(is_same(document.root(), &json), "read differently: {json:?}"),
        Err(error) => assert!(is_only_out_of_range(&error), "accepted in spite of: {error}"),
    }
    let first = canonical(document.root());
    let again = match Document::parse(&first, Limits::MESSAGE) {
        Ok(again) => again,
        Err(error) => panic!("the canonical form is refused: {error}"),
    };
    assert!(
        means_same(document.root(), again.root()),
        "the canonical form means something else"
    );
    assert_eq!(
        canonical(again.root()),
        first,
        "the canonical form has another canonical form"
    );
}

fn refused(bytes: &[u8], error: JsonError) {
    assert!(error.offset <= bytes.len());
    let is_right = match error.kind {
        JsonErrorKind::TooLarge { limit } => bytes.len() > limit,
        JsonErrorKind::TooDeep { limit } => depth(bytes) > limit,
        JsonErrorKind::InvalidUtf8 => std::str::from_utf8(bytes).is_err(),
        JsonErrorKind::UnexpectedEnd | JsonErrorKind::Syntax => !is_grammatical(bytes),
        JsonErrorKind::DuplicateKey | JsonErrorKind::LoneSurrogate => {
            serde_json::from_slice::<Json>(bytes).is_err()
        }
        JsonErrorKind::Exponent => bytes.iter().filter(|byte| byte.is_ascii_digit()).count() >= 18,
    };
    assert!(is_right, "refused wrongly: {error}");
}
