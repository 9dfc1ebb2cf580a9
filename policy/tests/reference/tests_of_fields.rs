//! One test on one field, as the sections "Documents" and "Three values" say it.

use policy::Call;
use policy::document::{Field, Scalar, Step, Test};
use policy::evaluate::Truth;
use tools::json::{Kind, Node};

/// Where a path leads.
enum Place<'d> {
    Value(Node<'d>),
    Missing,
    /// A sibling key is equal when letter case is ignored.
    Folded,
    /// Some of these, or every one of these.
    Each(Vec<Place<'d>>, Step),
}

pub fn test_truth(test: &Test, call: &Call<'_>) -> Truth {
    let caller = |name: Option<&str>| match name {
        Some(name) => whole(test, Some(Seen::Text(name.to_owned()))),
        None => whole(test, None),
    };
    match &test.field {
        Field::Agent => caller(Some(call.agent.as_str())),
        Field::User => caller(call.user.map(|user| user.as_str())),
        Field::Session => caller(call.session.map(|session| session.as_str())),
        Field::Argument(path) => match call.arguments {
            None => whole(test, None),
            Some(arguments) => place_truth(test, &place(arguments, path.steps())),
        },
    }
}

fn place<'d>(node: Node<'d>, steps: &[Step]) -> Place<'d> {
    let Some((first, rest)) = steps.split_first() else {
        return Place::Value(node);
    };
    match first {
        Step::Key(key) => {
            let members: Vec<(String, Node<'d>)> = node
                .members()
                .map(|(name, value)| (name.into_owned(), value))
                .collect();
            let folded = |text: &str| text.to_lowercase().to_uppercase().to_lowercase();
            if members
                .iter()
                .any(|(name, _)| *name != **key && folded(name) == folded(key))
            {
                return Place::Folded;
            }
            match members.iter().find(|(name, _)| *name == **key) {
                Some((_, value)) => place(*value, rest),
                None => Place::Missing,
            }
        }
        Step::Index(index) => match node.elements().nth(*index) {
            Some(element) => place(element, rest),
            None => Place::Missing,
        },
        Step::Some | Step::Every => {
            if node.kind() != Kind::Array {
                return Place::Missing;
            }
            Place::Each(
                node.elements().map(|element| place(element, rest)).collect(),
                first.clone(),
            )
        }
    }
}

fn place_truth(test: &Test, place: &Place<'_>) -> Truth {
    match place {
        Place::Folded => Truth::Undecided,
        Place::Missing => whole(test, None),
        Place::Value(node) => whole(test, seen(*node)),
        Place::Each(places, quantifier) => {
            let truths: Vec<Truth> = places.iter().map(|place| place_truth(test, place)).collect();
            match quantifier {
                Step::Some => super::any(&truths),
                _ if truths.is_empty() => Truth::False,
                _ => super::all(&truths),
            }
        }
    }
}

/// A value that is present and not null.
enum Seen {
    Text(String),
    Number(tools::decimal::Decimal),
    Truth(bool),
    Compound,
}

fn seen(node: Node<'_>) -> Option<Seen> {
    match node.kind() {
        Kind::Null => None,
        Kind::Bool => Some(Seen::Truth(node.as_bool().unwrap())),
        Kind::Number => Some(Seen::Number(node.number().unwrap())),
        Kind::String => Some(Seen::Text(node.as_str().unwrap().into_owned())),
        Kind::Array | Kind::Object => Some(Seen::Compound),
    }
}

/// The test with its negation, on a value or on nothing.
fn whole(test: &Test, value: Option<Seen>) -> Truth {
    let name = test.operator.as_str();
    let (plain, negated) = match name {
        "!=" => ("==", true),
        other => match other.strip_prefix("not_") {
            Some(plain) => (plain, true),
            None => (other, false),
        },
    };
    let truth = match (plain, value) {
        ("exists", value) => value.is_some().into(),
        (_, None) => Truth::Undecided,
        (plain, Some(value)) => {
            let truths: Vec<Truth> = test
                .values
                .iter()
                .map(|wanted| compare(plain, &value, wanted))
                .collect();
            super::any(&truths)
        }
    };
    match (negated, truth) {
        (true, Truth::True) => Truth::False,
        (true, Truth::False) => Truth::True,
        _ => truth,
    }
}

fn compare(operator: &str, value: &Seen, wanted: &Scalar) -> Truth {
    match (operator, value, wanted) {
        ("<", Seen::Number(value), Scalar::Number(wanted)) => (value < wanted).into(),
        ("<=", Seen::Number(value), Scalar::Number(wanted)) => (value <= wanted).into(),
        (">", Seen::Number(value), Scalar::Number(wanted)) => (value > wanted).into(),
        (">=", Seen::Number(value), Scalar::Number(wanted)) => (value >= wanted).into(),
        ("==" | "in", Seen::Number(value), Scalar::Number(wanted)) => (value == wanted).into(),
        ("==" | "in", Seen::Text(value), Scalar::String(wanted)) => (*value == **wanted).into(),
        ("==" | "in", Seen::Truth(value), Scalar::Boolean(wanted)) => (value == wanted).into(),
        ("contains", Seen::Text(value), Scalar::String(wanted)) => value.contains(&**wanted).into(),
        ("starts_with", Seen::Text(value), Scalar::String(wanted)) => value.starts_with(&**wanted).into(),
        ("ends_with", Seen::Text(value), Scalar::String(wanted)) => value.ends_with(&**wanted).into(),
        ("matches", Seen::Text(value), Scalar::Pattern(wanted)) => {
            wanted.is_found_in(value).map_or(Truth::Undecided, Truth::from)
        }
        _ => Truth::Undecided,
    }
}
