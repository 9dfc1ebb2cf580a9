//! Conditions on a call's arguments and caller.

use std::borrow::Cow;

use tools::decimal::Decimal;
use tools::json::{Kind, Node};

use super::fold::equal_when_folded;
use super::truth::Truth;
use crate::decide::Call;
use crate::document::{Base, Condition, Field, Path, Scalar, Step, Test};

/// Whether a condition holds for a call.
pub(crate) fn condition_truth(condition: &Condition, call: &Call<'_>) -> Truth {
    match condition {
        Condition::All(parts) => Truth::all(parts.iter().map(|part| condition_truth(part, call))),
        Condition::Any(parts) => Truth::any(parts.iter().map(|part| condition_truth(part, call))),
        Condition::Not(part) => !condition_truth(part, call),
        Condition::Test(test) => test_truth(test, call),
    }
}

/// Whether one test holds for a call.
pub(crate) fn test_truth(test: &Test, call: &Call<'_>) -> Truth {
    match &test.field {
        Field::Agent => named(test, Some(call.agent.as_str())),
        Field::User => named(test, call.user.map(|user| user.as_str())),
        Field::Session => named(test, call.session.map(|session| session.as_str())),
        Field::Argument(path) => at_path(test, path, call.arguments),
    }
}

fn named(test: &Test, name: Option<&str>) -> Truth {
    match name {
        Some(name) => at_value(test, &Found::String(Cow::Borrowed(name))),
        None => absent(test),
    }
}

fn at_path(test: &Test, path: &Path, arguments: Option<Node<'_>>) -> Truth {
    match arguments {
        Some(arguments) => walk(test, path.steps(), arguments),
        None => absent(test),
    }
}

/// Follows the steps; `[*]` and `[every]` ask the whole test, its negation included, of the elements.
fn walk(test: &Test, steps: &[Step], node: Node<'_>) -> Truth {
    let Some((step, rest)) = steps.split_first() else {
        return at_node(test, node);
    };
    match step {
        Step::Key(key) => match member(node, key) {
            Member::Found(value) => walk(test, rest, value),
            Member::Absent => absent(test),
            Member::Ambiguous => Truth::Undecided,
        },
        Step::Index(index) => match node.elements().nth(*index) {
            Some(element) => walk(test, rest, element),
            None => absent(test),
        },
        Step::Some | Step::Every if node.kind() != Kind::Array => absent(test),
        Step::Some => Truth::any(node.elements().map(|element| walk(test, rest, element))),
        Step::Every if node.is_empty() => Truth::False,
        Step::Every => Truth::all(node.elements().map(|element| walk(test, rest, element))),
    }
}

enum Member<'d> {
    Found(Node<'d>),
    Absent,
    /// A sibling's key is equal under case folding; a server may read that one.
    Ambiguous,
}

fn member<'d>(node: Node<'d>, key: &str) -> Member<'d> {
    let mut found = Member::Absent;
    for (name, value) in node.members() {
        if *name == *key {
            found = Member::Found(value);
        } else if equal_when_folded(&name, key) {
            return Member::Ambiguous;
        }
    }
    found
}

/// The field is missing or null.
fn absent(test: &Test) -> Truth {
    if test.operator.base == Base::Exists {
        Truth::from(test.operator.negated)
    } else {
        Truth::Undecided
    }
}

fn at_node(test: &Test, node: Node<'_>) -> Truth {
    match node.kind() {
        Kind::Null => absent(test),
        Kind::String => match node.as_str() {
            Some(text) => at_value(test, &Found::String(text)),
            None => at_value(test, &Found::Other),
        },
        Kind::Number => match node.number() {
            Some(number) => at_value(test, &Found::Number(number)),
            None => at_value(test, &Found::Other),
        },
        Kind::Bool => match node.as_bool() {
            Some(truth) => at_value(test, &Found::Boolean(truth)),
            None => at_value(test, &Found::Other),
        },
        Kind::Array | Kind::Object => at_value(test, &Found::Other),
    }
}

/// A value that is there.
enum Found<'d> {
    String(Cow<'d, str>),
    Number(Decimal),
    Boolean(bool),
    Other,
}

fn at_value(test: &Test, found: &Found<'_>) -> Truth {
    let holds = match test.operator.base {
        Base::Exists => Truth::True,
        base => Truth::any(test.values.iter().map(|value| compare(base, found, value))),
    };
    if test.operator.negated { !holds } else { holds }
}

fn compare(base: Base, found: &Found<'_>, value: &Scalar) -> Truth {
    match (found, value) {
        (Found::Number(found), Scalar::Number(value)) => match base {
            Base::Less => (found < value).into(),
            Base::LessOrEqual => (found <= value).into(),
            Base::Greater => (found > value).into(),
            Base::GreaterOrEqual => (found >= value).into(),
            Base::Equal | Base::In => (found == value).into(),
            Base::Contains | Base::StartsWith | Base::EndsWith | Base::Matches | Base::Exists => {
                Truth::Undecided
            }
        },
        (Found::String(found), Scalar::String(value)) => match base {
            Base::Equal | Base::In => (**found == **value).into(),
            Base::Contains => found.contains(&**value).into(),
            Base::StartsWith => found.starts_with(&**value).into(),
            Base::EndsWith => found.ends_with(&**value).into(),
            Base::Less
            | Base::LessOrEqual
            | Base::Greater
            | Base::GreaterOrEqual
            | Base::Matches
            | Base::Exists => Truth::Undecided,
        },
        (Found::String(found), Scalar::Pattern(pattern)) => match base {
            Base::Matches => pattern.is_found_in(found).map_or(Truth::Undecided, Truth::from),
            _ => Truth::Undecided,
        },
        (Found::Boolean(found), Scalar::Boolean(value)) => match base {
            Base::Equal | Base::In => (found == value).into(),
            _ => Truth::Undecided,
        },
        (Found::String(_) | Found::Number(_) | Found::Boolean(_) | Found::Other, _) => Truth::Undecided,
    }
}
