//! Arguments as texts.

use crate::json::{Kind, Node};

/// An argument as requests write it.
pub(super) enum Value {
    Text(String),
    List(Vec<String>),
    /// Keys and values, in the order of the argument.
    Object(Vec<(String, String)>),
}

/// The text, the list of texts or the object of texts that an argument is. `null` within it stands for nothing, as in
/// RFC 6570; what nests deeper is JSON text.
pub(super) fn value(node: Node<'_>) -> Value {
    match node.kind() {
        Kind::Array => Value::List(node.elements().filter_map(text).collect()),
        Kind::Object => Value::Object(
            node.members()
                .filter_map(|(key, value)| Some((key.into_owned(), text(value)?)))
                .collect(),
        ),
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => Value::Text(text(node).unwrap_or_default()),
    }
}

/// One value as text; none for `null`.
pub(super) fn text(node: Node<'_>) -> Option<String> {
    match node.kind() {
        Kind::Null => None,
        Kind::String => node.as_str().map(std::borrow::Cow::into_owned),
        Kind::Number => Some(number(node)),
        Kind::Bool | Kind::Array | Kind::Object => Some(node.raw_str().to_owned()),
    }
}

/// A number as it came, or without its exponent: every digit is kept.
fn number(node: Node<'_>) -> String {
    let raw = node.raw_str();
    if raw.contains(['e', 'E']) {
        return node
            .number()
            .map_or_else(|| raw.to_owned(), |number| number.to_string());
    }
    match raw.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => raw.to_owned(),
    }
}

/// The JSON text of an argument, as it came.
pub(super) fn json<'d>(node: Node<'d>) -> &'d str {
    node.raw_str()
}
