//! Parameters in a query, in a cookie, and the fields of forms.

use super::encode::{encoded, reserved};
use super::value::{Value, json, text, value};
use super::{BuildError, guard};
use crate::json::{Kind, Node};
use crate::openapi::template::{Parameter, Style, Wire};

/// Objects inside each other in a `deepObject`.
const MAX_DEEP: usize = 16;

/// A name and a value, neither encoded yet. The value may hold separators, which stay as they are.
pub(super) struct Pair {
    pub(super) name: String,
    /// Pieces, and what stands between them.
    pub(super) pieces: Vec<String>,
    pub(super) between: &'static str,
}

impl Pair {
    fn of(name: impl Into<String>, value: String) -> Self {
        Self {
            name: name.into(),
            pieces: vec![value],
            between: "",
        }
    }

    fn written(&self, keeps_reserved: bool) -> String {
        let encode = if keeps_reserved { reserved } else { encoded };
        let pieces: Vec<String> = self.pieces.iter().map(|piece| encode(piece)).collect();
        format!("{}={}", encoded(&self.name), pieces.join(self.between))
    }
}

/// What a parameter adds to a query.
pub(super) fn written(
    parameter: &Parameter,
    node: Node<'_>,
    others: &[&str],
    out: &mut Vec<String>,
) -> Result<(), BuildError> {
    let argument = &parameter.argument;
    for pair in pairs(&parameter.name, parameter.wire, node) {
        if pair.name != parameter.name && others.contains(&pair.name.as_str()) {
            let problem = format!("its property {:?} has the name of another parameter", pair.name);
            return Err(BuildError::of(argument, problem));
        }
        checked(argument, &pair)?;
        out.push(pair.written(parameter.wire.keeps_reserved));
    }
    Ok(())
}

/// What a parameter adds to the header `cookie`.
pub(super) fn cookies(
    parameter: &Parameter,
    node: Node<'_>,
    out: &mut Vec<String>,
) -> Result<(), BuildError> {
    for pair in pairs(&parameter.name, parameter.wire, node) {
        checked(&parameter.argument, &pair)?;
        out.push(pair.written(false));
    }
    Ok(())
}

/// What a field adds to a form.
pub(super) fn field(
    argument: &str,
    name: &str,
    wire: Wire,
    node: Node<'_>,
    out: &mut Vec<String>,
) -> Result<(), BuildError> {
    for pair in pairs(name, wire, node) {
        checked(argument, &pair)?;
        out.push(pair.written(false));
    }
    Ok(())
}

fn checked(argument: &str, pair: &Pair) -> Result<(), BuildError> {
    guard::query(argument, &pair.name)?;
    pair.pieces
        .iter()
        .try_for_each(|piece| guard::query(argument, piece))
}

/// The pairs that a value becomes.
fn pairs(name: &str, wire: Wire, node: Node<'_>) -> Vec<Pair> {
    let joined = |pieces: Vec<String>, between| Pair {
        name: name.to_owned(),
        pieces,
        between,
    };
    let flat = |members: Vec<(String, String)>| {
        members
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .collect()
    };
    let between = match wire.style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::TabDelimited => "%09",
        _ => ",",
    };
    if wire.style == Style::Json {
        return vec![Pair::of(name, json(node).to_owned())];
    }
    if wire.style == Style::DeepObject && matches!(node.kind(), Kind::Object | Kind::Array) {
        let mut found = Vec::new();
        deep(name.to_owned(), node, MAX_DEEP, &mut found);
        return found;
    }
    if wire.style == Style::FormField && is_nested(node) {
        return vec![Pair::of(name, json(node).to_owned())];
    }
    match value(node) {
        Value::Text(text) => vec![Pair::of(name, text)],
        Value::List(items) if wire.explodes => items.into_iter().map(|item| Pair::of(name, item)).collect(),
        Value::List(items) if items.is_empty() => Vec::new(),
        Value::List(items) => vec![joined(items, between)],
        Value::Object(members) if wire.explodes => members
            .into_iter()
            .map(|(key, value)| Pair::of(key, value))
            .collect(),
        Value::Object(members) if members.is_empty() => Vec::new(),
        Value::Object(members) => vec![joined(flat(members), between)],
    }
}

/// Whether only JSON text says what a field of a form is.
fn is_nested(node: Node<'_>) -> bool {
    match node.kind() {
        Kind::Object => true,
        Kind::Array => node
            .elements()
            .any(|item| matches!(item.kind(), Kind::Object | Kind::Array)),
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => false,
    }
}

/// `name[key][key]=value`, and `name[0]=value` for the elements of lists.
fn deep(name: String, node: Node<'_>, left: usize, out: &mut Vec<Pair>) {
    let Some(left) = left.checked_sub(1) else {
        out.push(Pair::of(name, json(node).to_owned()));
        return;
    };
    match node.kind() {
        Kind::Object => {
            for (key, value) in node.members() {
                deep(format!("{name}[{key}]"), value, left, out);
            }
        }
        Kind::Array => {
            for (at, value) in node.elements().enumerate() {
                deep(format!("{name}[{at}]"), value, left, out);
            }
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => {
            out.extend(text(node).map(|text| Pair::of(name, text)));
        }
    }
}
