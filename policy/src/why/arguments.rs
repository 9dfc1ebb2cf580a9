//! Changes of one argument.

use tools::json::{Document, Limits};

use super::edit::{Json, quoted};
use super::{ArgumentChange, MAX_CHANGES};
use crate::PolicySet;
use crate::decide::{Call, Decision};
use crate::document::{Base, Path, Scalar, Test};
use crate::explain::RuleExplanation;

/// The most edits that are tried.
const MAX_TRIED: usize = 256;

/// Every single change of an argument, taken from the tests on the path, that gives another action.
pub(super) fn changes(
    set: &PolicySet,
    call: &Call<'_>,
    decision: &Decision,
    path: &[RuleExplanation],
) -> Vec<ArgumentChange> {
    let now = call.arguments.map_or_else(Json::empty, Json::of);
    let mut found: Vec<ArgumentChange> = Vec::new();
    for (field, value) in candidates(set, path).into_iter().take(MAX_TRIED) {
        let mut changed = now.clone();
        if !changed.put(field.steps(), value.as_deref()) {
            continue;
        }
        let text = changed.text();
        let Ok(document) = Document::parse(text.as_bytes(), Limits::ARGUMENTS) else {
            continue;
        };
        let action = set
            .decide(&Call {
                arguments: Some(document.root()),
                ..*call
            })
            .action;
        let is_new = !found.iter().any(|one| {
            one.field == field.as_str() && one.action == action && one.value.is_some() == value.is_some()
        });
        if action != decision.action && is_new {
            found.push(ArgumentChange {
                field: field.as_str().to_owned(),
                value,
                action,
            });
        }
    }
    found.sort_by_key(|change| change.action);
    found.truncate(MAX_CHANGES);
    found
}

/// Fields of the tests on the path, each with values that make a test true or false, and left out.
fn candidates<'p>(set: &'p PolicySet, path: &[RuleExplanation]) -> Vec<(&'p Path, Option<String>)> {
    let mut found = Vec::new();
    for explained in path {
        for (field, test) in set.argument_tests(&explained.rule) {
            found.extend(values(test).into_iter().map(|value| (field, Some(value))));
            found.push((field, None));
        }
    }
    found
}

/// JSON values on both sides of a test.
fn values(test: &Test) -> Vec<String> {
    let mut found: Vec<String> = test
        .values
        .iter()
        .flat_map(|value| sides(test.operator.base, value))
        .collect();
    if test.operator.base == Base::Exists {
        found.push(quoted("x"));
    }
    found
}

fn sides(base: Base, value: &Scalar) -> Vec<String> {
    match value {
        Scalar::Number(number) => {
            let text = number.to_string();
            // A whole number one lower and one higher; of others the sign is enough.
            match text.parse::<i64>() {
                Ok(whole) => [whole, whole.saturating_sub(1), whole.saturating_add(1)]
                    .map(|number| number.to_string())
                    .to_vec(),
                Err(_) => {
                    let mut sides = vec![text, "0".to_owned()];
                    sides.push("1000000000000".to_owned());
                    sides
                }
            }
        }
        Scalar::String(text) => match base {
            Base::StartsWith => vec![quoted(text), quoted(&format!("x{text}"))],
            Base::EndsWith => vec![quoted(text), quoted(&format!("{text}x"))],
            _ => vec![quoted(text), quoted("x"), quoted("")],
        },
        Scalar::Boolean(truth) => vec![truth.to_string(), (!truth).to_string()],
        Scalar::Pattern(_) => vec![quoted(""), quoted("x"), quoted("0")],
    }
}
