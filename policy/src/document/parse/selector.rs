//! The selectors of a rule.

use std::sync::Arc;

use tools::classify::{Access, Family, Risk, RiskSet, SideEffectKind};

use super::super::selector::{Selector, TargetKind};
use super::{Lists, one, rule::refuse_null};
use crate::glob::{Glob, ToolGlob};
use crate::nearest;
use crate::yaml::{MapReader, Problems, Value};

const ACCESS: [(&str, Access); 3] = [
    ("read", Access::Read),
    ("write", Access::Write),
    ("unknown", Access::Unknown),
];
const FAMILY: [(&str, Family); 2] = [("named", Family::Named), ("generic", Family::Generic)];
const SIDE_EFFECT: [(&str, SideEffectKind); 4] = [
    ("read", SideEffectKind::Read),
    ("write", SideEffectKind::Write),
    ("delete", SideEffectKind::Delete),
    ("admin", SideEffectKind::Admin),
];
const TARGETS: [(&str, TargetKind); 5] = [
    ("resources", TargetKind::Resources),
    ("columns", TargetKind::Columns),
    ("hosts", TargetKind::Hosts),
    ("paths", TargetKind::Paths),
    ("recipients", TargetKind::Recipients),
];

/// Reads every selector but `tools` and `except`.
pub(super) fn read(
    reader: &MapReader<'_, '_>,
    has_tools: bool,
    lists: &Lists,
    problems: &Problems,
) -> Vec<Selector> {
    let mut selectors = Vec::new();
    let texts = |key: &'static str| {
        refuse_null(reader, key, problems);
        reader.optional(key).map(|value| entries(value, lists, problems))
    };
    if let Some(entries) = texts("risk") {
        let mut risks = RiskSet::EMPTY;
        let all = Risk::ALL.map(|risk| (risk.name(), risk));
        words("risk", &entries, &all, problems)
            .into_iter()
            .for_each(|risk| risks.insert(risk));
        selectors.push(Selector::Risk(risks));
    }
    if let Some(entries) = texts("access") {
        selectors.push(Selector::Access(words("access", &entries, &ACCESS, problems)));
    }
    if let Some(entries) = texts("family") {
        selectors.push(Selector::Family(words("family", &entries, &FAMILY, problems)));
    }
    if let Some(entries) = texts("side_effect") {
        selectors.push(Selector::SideEffect(words(
            "side_effect",
            &entries,
            &SIDE_EFFECT,
            problems,
        )));
    }
    if let Some(entries) = texts("capability") {
        selectors.push(Selector::Capability(parsed(&entries, problems)));
    }
    if let Some(entries) = texts("tags") {
        selectors.push(Selector::Tags(
            entries
                .iter()
                .map(|entry| Arc::from(entry.text.as_str()))
                .collect(),
        ));
    }
    if let Some(entries) = texts("user") {
        selectors.push(Selector::User(parsed(&entries, problems)));
    }
    for (key, kind) in TARGETS {
        let Some(mut entries) = texts(key) else { continue };
        if !has_tools && matches!(kind, TargetKind::Resources | TargetKind::Columns) {
            let hint = "name the tools that it selects on".to_owned();
            problems.at_with_hint(
                reader.value(),
                format!("{key} needs tools in the same rule"),
                hint,
            );
        }
        if kind == TargetKind::Hosts {
            entries
                .iter_mut()
                .for_each(|entry| entry.text = entry.text.to_lowercase());
        }
        selectors.push(Selector::Targets(kind, parsed::<Glob>(&entries, problems)));
    }
    selectors
}

/// The patterns of `tools` or `except`.
pub(super) fn tool_globs(value: &Value, lists: &Lists, problems: &Problems) -> Vec<ToolGlob> {
    parsed(&entries(value, lists, problems), problems)
}

/// One entry of a selector, with its place.
struct Listed<'v> {
    text: String,
    place: &'v Value,
}

/// The entries of a selector, `@name` replaced by that list's.
fn entries<'v>(value: &'v Value, lists: &Lists, problems: &Problems) -> Vec<Listed<'v>> {
    let written = problems.strings(value).unwrap_or_default();
    if value.as_seq().is_some_and(<[Value]>::is_empty) {
        let key = super::key_of(value);
        let hint = "give at least one entry or remove the key".to_owned();
        problems.at_with_hint(value, format!("{key} is empty"), hint);
    }
    let mut found = Vec::new();
    for (text, place) in written {
        let Some(name) = text.strip_prefix('@') else {
            found.push(Listed {
                text: text.to_owned(),
                place,
            });
            continue;
        };
        match lists.get(name) {
            Some(list) => found.extend(list.iter().map(|text| Listed {
                text: text.clone(),
                place,
            })),
            None => {
                let hint = nearest::nearest(name, lists.names())
                    .map(|name| format!("did you mean \"@{name}\"?"))
                    .unwrap_or_else(|| "define it under lists: in the configuration".to_owned());
                problems.at_with_hint(place, format!("list \"@{name}\" is not defined"), hint);
            }
        }
    }
    found
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    entries: &[Listed<'_>],
    problems: &Problems,
) -> Vec<T> {
    entries
        .iter()
        .filter_map(|entry| one(&entry.text, entry.place, problems))
        .collect()
}

fn words<T: Copy>(
    key: &str,
    entries: &[Listed<'_>],
    known: &[(&'static str, T)],
    problems: &Problems,
) -> Vec<T> {
    let mut found = Vec::new();
    for Listed { text, place } in entries {
        match known.iter().find(|(name, _)| name == text) {
            Some((_, word)) => found.push(*word),
            None => {
                let hint = nearest::hint(text, known.iter().map(|(name, _)| *name));
                problems.at_with_hint(place, format!("{key} \"{text}\" is unknown"), hint);
            }
        }
    }
    found
}
