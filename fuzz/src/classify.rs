//! What holds for the classification of any tool, and of any call of it.

use tools::classify::{Access, Classification, Family, Risk, RiskSet, classify_call};
use tools::id::UpstreamName;
use tools::json::{Document, Limits};
use tools::model::Tool;

/// The first line is a tool as its server declares it, the rest is the arguments of a call.
///
/// # Panics
/// When a classification contradicts itself.
pub fn check(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (declared, arguments) = bytes.split_at(end.unwrap_or(bytes.len()));
    let Ok(text) = std::str::from_utf8(declared) else {
        return;
    };
    let Ok(upstream) = UpstreamName::try_from("fuzz") else {
        return;
    };
    let arguments = Document::parse(arguments.trim_ascii(), Limits::ARGUMENTS).ok();
    let declared = serde_json::value::RawValue::from_string(text.trim().to_owned()).ok();
    if let Some(tool) = declared.and_then(|raw| Tool::mcp(&upstream, raw.into()).ok()) {
        judged(&tool, arguments.as_ref());
    }
    if let Ok(tool) = Tool::named(text) {
        judged(&tool, arguments.as_ref());
    }
}

fn judged(tool: &Tool, arguments: Option<&Document<'_>>) {
    let own = &tool.classification;
    let read = RiskSet::of(Risk::Read);
    consistent(own);
    assert!(own.risks.is_subset_of(own.possible_risks), "{own:?}");
    let is_plain = own.possible_risks == read && own.access == Access::Read && own.family == Family::Named;
    assert_eq!(own.plain_read, is_plain, "{own:?}");
    let claims_writing = tool.annotations.read_only == Some(false) || tool.annotations.destructive == Some(true);
    assert!(!claims_writing || own.access == Access::Write, "{own:?}");

    let call = classify_call(tool, arguments.map(Document::root)).classification;
    consistent(&call);
    assert_eq!((call.family, call.source, &call.name), (own.family, own.source, &own.name));
    if call.plain_read {
        assert_eq!((call.risks, call.access), (read, Access::Read), "{call:?}");
        assert!(!claims_writing, "{call:?}");
    }
    let empty = classify_call(tool, None).classification;
    assert!(empty.risks.is_subset_of(own.possible_risks), "{empty:?} of {own:?}");
}

fn consistent(classification: &Classification) {
    assert!(!classification.risks.is_empty(), "{classification:?}");
    assert_eq!(classification.risk, classification.risks.gravest());
    let text = serde_json::to_string(classification).unwrap_or_default();
    assert_eq!(serde_json::from_str::<Classification>(&text).ok().as_ref(), Some(classification));
}
