//! A rule's condition.

use std::sync::Arc;

use tools::decimal::Decimal;

use super::super::{Base, Condition, Field, MAX_CONDITION_DEPTH, Operator, Scalar, Test};
use crate::nearest;
use crate::yaml::{MapReader, Node, Problems, Value};

/// Reads a condition. `allows` says that the rule's action is `allow`, where `[*]` is refused.
pub(super) fn read(value: &Value, allows: bool, depth: usize, problems: &Problems) -> Option<Condition> {
    if depth > MAX_CONDITION_DEPTH {
        problems.at(
            value,
            format!("the condition is nested deeper than {MAX_CONDITION_DEPTH}"),
        );
        return None;
    }
    let Some(map) = value.as_map() else {
        problems.at(
            value,
            format!("expected a condition (a mapping), found {}", value.describe()),
        );
        return None;
    };
    let joined = map
        .entries()
        .iter()
        .find(|entry| matches!(entry.key.as_str(), "all" | "any" | "not"));
    let Some(joined) = joined else {
        return read_test(value, allows, problems);
    };
    if map.entries().len() > 1 {
        let message = format!("\"{}\" must stand alone in its mapping", joined.key);
        problems.at_with_hint(value, message, "put the other tests inside it".to_owned());
        return None;
    }
    if joined.key == "not" {
        return read_negation(&joined.value, allows, depth, problems);
    }
    let parts = problems.sequence(&joined.value)?;
    if parts.is_empty() {
        problems.at(
            &joined.value,
            format!("\"{}\" is empty; give it at least one test", joined.key),
        );
    }
    let read: Vec<_> = parts
        .iter()
        .filter_map(|part| read(part, allows, depth + 1, problems))
        .collect();
    if read.is_empty() || read.len() < parts.len() {
        return None;
    }
    Some(if joined.key == "all" {
        Condition::All(read)
    } else {
        Condition::Any(read)
    })
}

fn read_negation(value: &Value, allows: bool, depth: usize, problems: &Problems) -> Option<Condition> {
    // `not: [a]` with one part is what it looks like; with several it could mean two things.
    let part = match value.as_seq() {
        None => value,
        Some([part]) => part,
        Some(_) => {
            problems.at(
                value,
                "\"not\" takes one test; write not: {any: […]} or not: {all: […]}",
            );
            return None;
        }
    };
    read(part, allows, depth + 1, problems).map(|part| Condition::Not(Box::new(part)))
}

fn read_test(value: &Value, allows: bool, problems: &Problems) -> Option<Condition> {
    let before = problems.len();
    let reader = MapReader::new(value, "a test", problems)?;
    let field = reader
        .required("field")
        .and_then(|value| read_field(value, allows, problems));
    let operator = reader
        .required("operator")
        .and_then(|value| read_operator(value, problems));
    reader.optional("value");
    let written = value.get("value");
    // Keys of a join are offered as well: `al: […]` is rather a misspelt `all` than a test.
    for key in ["all", "any", "not"] {
        reader.optional(key);
    }
    reader.finish();
    let operator = operator?;
    let (values, is_list) = match written {
        Some(written) => (
            read_values(written, operator, problems)?,
            written.as_seq().is_some(),
        ),
        None => (Vec::new(), false),
    };
    if let Err(message) = operator.accepts(&values, is_list) {
        problems.at(written.unwrap_or(value), message);
    }
    (problems.len() == before).then_some(())?;
    Some(Condition::Test(Test {
        field: field?,
        operator,
        values,
    }))
}

fn read_field(value: &Value, allows: bool, problems: &Problems) -> Option<Field> {
    let field: Field = match problems.string(value)?.parse() {
        Ok(field) => field,
        Err(error) => {
            let error: super::super::FieldError = error;
            problems.at_with_hint(value, error.to_string(), error.hint.clone());
            return None;
        }
    };
    if allows && field.has_some() {
        let message = format!("field \"{field}\" uses [*] in a rule that allows");
        let hint = "one good element would allow all others; use [every]".to_owned();
        problems.at_with_hint(value, message, hint);
    }
    Some(field)
}

fn read_operator(value: &Value, problems: &Problems) -> Option<Operator> {
    let text = problems.string(value)?;
    match text.parse() {
        Ok(operator) => Some(operator),
        Err(error) => {
            let error: super::super::UnknownOperator = error;
            problems.at_with_hint(value, error.to_string(), nearest::hint(text, Operator::names()));
            None
        }
    }
}

fn read_values(value: &Value, operator: Operator, problems: &Problems) -> Option<Vec<Scalar>> {
    match value.as_seq() {
        Some(elements) => {
            let read: Vec<_> = elements
                .iter()
                .filter_map(|element| scalar(element, operator, problems))
                .collect();
            (read.len() == elements.len()).then_some(read)
        }
        None => scalar(value, operator, problems).map(|scalar| vec![scalar]),
    }
}

fn scalar(value: &Value, operator: Operator, problems: &Problems) -> Option<Scalar> {
    match value.node() {
        Node::String(text) if operator.base == Base::Matches => {
            super::one(text, value, problems).map(Scalar::Pattern)
        }
        Node::String(text) => Some(Scalar::String(Arc::from(text.as_str()))),
        Node::Bool(truth) => Some(Scalar::Boolean(*truth)),
        Node::Number(text) => match Decimal::parse(text) {
            Ok(number) => Some(Scalar::Number(number)),
            Err(error) => {
                problems.at(value, format!("the number {text} cannot be used: {error}"));
                None
            }
        },
        Node::Null => {
            let hint = "use exists or not_exists".to_owned();
            problems.at_with_hint(value, "a test cannot compare with null", hint);
            None
        }
        Node::NotFinite(text) => {
            problems.at(value, format!("a test cannot compare with {text}"));
            None
        }
        Node::Seq(_) | Node::Map(_) => {
            problems.at(value, format!("a test cannot compare with {}", value.describe()));
            None
        }
    }
}
