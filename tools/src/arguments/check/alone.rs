//! What a schema asks of a value alone, without what is inside.

use super::super::keyword::{Bound, Keyword, Properties, Types};
use super::super::mistake::{Mistakes, Path, cut};
use crate::json::{Kind, Node};

/// Names that a message lists.
const SHOWN_NAMES: usize = 20;

pub(super) fn known_names(properties: &Properties) -> String {
    let names = properties.named.iter().take(SHOWN_NAMES);
    let mut names: Vec<String> = names.map(|(name, _)| cut(name)).collect();
    if properties.named.len() > SHOWN_NAMES {
        names.push("…".to_owned());
    }
    if names.is_empty() {
        "no properties here".to_owned()
    } else {
        format!("one of the properties {}", names.join(", "))
    }
}

pub(super) fn requires(names: &[Box<str>], value: Node<'_>, path: &Path<'_>, found: &mut Mistakes) {
    for name in names {
        if value.get(name).is_none() {
            found.add(
                path,
                || format!("the property {:?}, which is missing", cut(name)),
                None,
            );
        }
    }
}

pub(super) fn has_type(types: Types, value: Node<'_>, path: &Path<'_>, found: &mut Mistakes) {
    let is_integer = || value.number().is_some_and(|number| number.is_integer());
    if !types.has(value.kind(), is_integer) {
        found.add(path, || types.words(), Some(value));
    }
}

/// Items of a list, and properties of an object.
pub(super) fn size(keyword: &Keyword, kind: Kind, value: Node<'_>, path: &Path<'_>, found: &mut Mistakes) {
    let length = value.len() as u64;
    let expected = match (kind, keyword) {
        (Kind::Array, Keyword::MinItems(least)) if length < *least => format!("at least {least} items"),
        (Kind::Array, Keyword::MaxItems(most)) if length > *most => format!("at most {most} items"),
        (Kind::Object, Keyword::MinProperties(least)) if length < *least => {
            format!("at least {least} properties")
        }
        (Kind::Object, Keyword::MaxProperties(most)) if length > *most => {
            format!("at most {most} properties")
        }
        _ => return,
    };
    found.add(path, || expected, Some(value));
}

pub(super) fn number(keyword: &Keyword, value: Node<'_>, path: &Path<'_>, found: &mut Mistakes) {
    let Some(number) = value.number() else { return };
    let words = |bound: &Bound, at: &str, beyond: &str| {
        let word = if bound.is_exclusive { beyond } else { at };
        format!("a number {word} {}", bound.limit)
    };
    match keyword {
        Keyword::Minimum(bound) if number < bound.limit || (bound.is_exclusive && number == bound.limit) => {
            found.add(path, || words(bound, "of at least", "greater than"), Some(value));
        }
        Keyword::Maximum(bound) if number > bound.limit || (bound.is_exclusive && number == bound.limit) => {
            found.add(path, || words(bound, "of at most", "less than"), Some(value));
        }
        Keyword::MultipleOf(step) if !number.is_multiple_of(step) => {
            found.add(path, || format!("a multiple of {step}"), Some(value));
        }
        _ => {}
    }
}

pub(super) fn string(keyword: &Keyword, value: Node<'_>, path: &Path<'_>, found: &mut Mistakes) {
    let Some(text) = value.as_str() else { return };
    let length = || text.chars().count() as u64;
    match keyword {
        Keyword::MinLength(least) if length() < *least => {
            found.add(
                path,
                || format!("a string of at least {least} characters"),
                Some(value),
            );
        }
        Keyword::MaxLength(most) if length() > *most => {
            found.add(
                path,
                || format!("a string of at most {most} characters"),
                Some(value),
            );
        }
        Keyword::Pattern(pattern) if !pattern.is_found_in(&text) => {
            found.add(
                path,
                || format!("a string that matches {}", cut(&pattern.text)),
                Some(value),
            );
        }
        _ => {}
    }
}
