//! What holds for every extractor and all arguments.

use serde_json::json;
use tools::classify::Risk;
use tools::extract::{Dialect, Extraction, Extractor, MAX_MEMBERS, MAX_URI};
use tools::json::{Document, Limits};
use tools::targets::Extent;

/// The first byte chooses the dialect, the rest is the text.
pub fn sql(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let dialect = Dialect::ALL[usize::from(*first) % Dialect::ALL.len()];
    let alone = read(dialect, text);
    check(&alone);
    let more = read(dialect, &format!("{text}\n;DELETE FROM another"));
    check(&more);
    if alone.risks.is_some() {
        assert!(
            more.risks.is_none_or(|risks| risks.contains(Risk::Delete)),
            "a statement is lost after: {text:?}"
        );
        assert!(grows(&more.resources, &alone.resources), "{text:?}");
        assert!(grows(&more.columns, &alone.columns), "{text:?}");
    }
}

fn read(dialect: Dialect, text: &str) -> Extraction {
    let extractor = Extractor::Sql {
        argument: "q".to_owned(),
        dialect,
        schema: None,
        functions: Vec::new(),
    };
    extract(&extractor, &json!({"q": text}).to_string())
}

fn extract(extractor: &Extractor, arguments: &str) -> Extraction {
    match Document::parse(arguments.as_bytes(), Limits::ARGUMENTS) {
        Ok(document) => extractor.extract(Some(document.root())),
        Err(_) => extractor.extract(None),
    }
}

fn check(extraction: &Extraction) {
    for extent in [&extraction.resources, &extraction.columns] {
        match extent {
            Extent::Known(members) => {
                assert!(extraction.complete && members.len() <= MAX_MEMBERS);
                assert!(members.iter().all(|member| !member.chars().any(char::is_control)));
            }
            Extent::Unknown => {}
        }
    }
    assert!(extraction.complete || !extraction.reasons.is_empty());
    assert!(extraction.reasons.len() <= 17);
    assert!(extraction.risks.is_none_or(|risks| !risks.is_empty()));
}

fn grows(more: &Extent, less: &Extent) -> bool {
    match (more, less) {
        (Extent::Unknown, _) => true,
        (Extent::Known(_), Extent::Unknown) => false,
        (Extent::Known(more), Extent::Known(less)) => less.iter().all(|member| more.contains(member)),
    }
}

/// The text before the first line's end is the template, the rest are arguments.
pub fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (template, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    let extractor = Extractor::UriTemplate {
        template: template.to_owned(),
    };
    let extraction = extract(&extractor, arguments);
    let Extent::Known(members) = &extraction.resources else { return };
    assert!(extractor.check().is_ok());
    let [uri] = members.as_slice() else { panic!("several URIs") };
    assert!(uri.len() <= MAX_URI + 16 && uri.is_ascii());
    // Values are between the literals and hold no sign that a URI is divided by.
    let fixed = |c: char| template.chars().filter(|other| *other == c).count();
    for sign in ['/', '?', '#', ':', '@'] {
        assert_eq!(uri.chars().filter(|c| *c == sign).count(), fixed(sign), "{uri}");
    }
}
