//! Characters that are not what they look like.

use super::{Finding, Lint, Place};
use crate::document::{Condition, Policy, Scalar, Selector};
use crate::glob::Glob;

/// Letters of other scripts that look like Latin ones, each with that one.
const LOOKALIKES: &[(char, char)] = &[
    ('а', 'a'),
    ('А', 'A'),
    ('В', 'B'),
    ('с', 'c'),
    ('С', 'C'),
    ('ԁ', 'd'),
    ('е', 'e'),
    ('Е', 'E'),
    ('ё', 'e'),
    ('һ', 'h'),
    ('Н', 'H'),
    ('і', 'i'),
    ('І', 'I'),
    ('ї', 'i'),
    ('ј', 'j'),
    ('Ј', 'J'),
    ('К', 'K'),
    ('к', 'k'),
    ('ӏ', 'l'),
    ('М', 'M'),
    ('м', 'm'),
    ('о', 'o'),
    ('О', 'O'),
    ('р', 'p'),
    ('Р', 'P'),
    ('ԛ', 'q'),
    ('г', 'r'),
    ('ѕ', 's'),
    ('Ѕ', 'S'),
    ('Т', 'T'),
    ('т', 't'),
    ('ѵ', 'v'),
    ('ԝ', 'w'),
    ('х', 'x'),
    ('Х', 'X'),
    ('у', 'y'),
    ('У', 'Y'),
    ('α', 'a'),
    ('Α', 'A'),
    ('Β', 'B'),
    ('ε', 'e'),
    ('Ε', 'E'),
    ('Η', 'H'),
    ('ι', 'i'),
    ('Ι', 'I'),
    ('κ', 'k'),
    ('Κ', 'K'),
    ('Μ', 'M'),
    ('Ν', 'N'),
    ('ν', 'v'),
    ('ο', 'o'),
    ('Ο', 'O'),
    ('ρ', 'p'),
    ('Ρ', 'P'),
    ('Τ', 'T'),
    ('τ', 't'),
    ('υ', 'u'),
    ('χ', 'x'),
    ('Χ', 'X'),
    ('Υ', 'Y'),
    ('Ζ', 'Z'),
    ('ı', 'i'),
    ('ɡ', 'g'),
    ('օ', 'o'),
    ('ո', 'n'),
    ('ս', 'u'),
    ('հ', 'h'),
    ('‐', '-'),
    ('‑', '-'),
    ('–', '-'),
    ('−', '-'),
    ('․', '.'),
    ('∗', '*'),
    ('＊', '*'),
    ('？', '?'),
    ('⁄', '/'),
    ('∕', '/'),
    ('：', ':'),
];

fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// What a letter looks like; full-width forms are their plain ones.
fn looks_like(letter: char) -> Option<char> {
    if let Some((_, plain)) = LOOKALIKES.iter().find(|(strange, _)| *strange == letter) {
        return Some(*plain);
    }
    match u32::from(letter) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0),
        _ => None,
    }
}

/// The text as it looks: hidden characters gone, look-alikes replaced.
pub fn plain_form(text: &str) -> String {
    text.chars()
        .filter(|letter| !is_hidden(*letter))
        .map(|letter| looks_like(letter).unwrap_or(letter))
        .collect()
}

/// The characters of a text that are not seen, or that look like a Latin letter beside Latin letters.
pub fn strange_characters(text: &str) -> Vec<char> {
    if text.is_ascii() {
        return text.chars().filter(|letter| letter.is_control()).collect();
    }
    let has_latin = text.chars().any(|letter| letter.is_ascii_alphabetic());
    let mut found: Vec<char> = text
        .chars()
        .filter(|letter| {
            is_hidden(*letter) || (looks_like(*letter).is_some() && (has_latin || !letter.is_alphabetic()))
        })
        .collect();
    // A whole word of look-alikes reads as a Latin word.
    let letters = || text.chars().filter(|letter| letter.is_alphabetic());
    if found.is_empty() && letters().count() > 1 && letters().all(|letter| looks_like(letter).is_some()) {
        found = letters().collect();
    }
    found.dedup();
    found
}

fn describe(what: &str, text: &str) -> Option<String> {
    let strange = strange_characters(text);
    if strange.is_empty() {
        return None;
    }
    let codes: Vec<String> = strange
        .iter()
        .take(4)
        .map(|letter| format!("U+{:04X}", u32::from(*letter)))
        .collect();
    Some(format!(
        "{what} \"{}\" has {} and reads as \"{}\"",
        text.escape_default(),
        codes.join(", "),
        plain_form(text)
    ))
}

const HINT: &str = "write it anew if that was not meant";

pub(super) fn of_policy(policy: &Policy, findings: &mut Vec<Finding>) {
    let globs = |what: &str, globs: &[Glob]| -> Vec<Option<String>> {
        globs.iter().map(|glob| describe(what, glob.as_str())).collect()
    };
    let mut said = vec![describe("the name", policy.name.as_str())];
    said.extend(globs("the agent", &policy.agents));
    said.extend(globs("the namespace", &policy.namespaces));
    for message in said.into_iter().flatten() {
        findings.push(Finding::of_policy(policy, Lint::Confusable, message).with_hint(HINT));
    }
}

pub(super) fn of_rule(place: Place<'_>, findings: &mut Vec<Finding>) {
    let rule = place.rule;
    let mut said = Vec::new();
    for glob in rule.tools.iter().flatten().chain(&rule.except) {
        said.extend(describe("the pattern", glob.as_str()));
    }
    for selector in &rule.selectors {
        match selector {
            Selector::Capability(globs) | Selector::User(globs) | Selector::Targets(_, globs) => {
                said.extend(
                    globs
                        .iter()
                        .filter_map(|glob| describe(selector.key(), glob.as_str())),
                );
            }
            Selector::Tags(tags) => said.extend(tags.iter().filter_map(|tag| describe("the tag", tag))),
            Selector::Risk(_) | Selector::Access(_) | Selector::Family(_) | Selector::SideEffect(_) => {}
        }
    }
    for test in rule.condition.iter().flat_map(Condition::tests) {
        said.extend(describe("the field", test.field.as_str()));
        for value in &test.values {
            if let Scalar::String(text) = value {
                said.extend(describe("the value", text));
            }
        }
    }
    for message in said {
        findings.push(place.finding(Lint::Confusable, message).with_hint(HINT));
    }
}
