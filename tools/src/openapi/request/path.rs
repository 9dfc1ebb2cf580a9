//! Parameters within a path: `simple`, `label`, `matrix`.

use super::encode::encoded;
use super::value::{Value, json, value};
use super::{BuildError, guard};
use crate::json::Node;
use crate::openapi::template::{Parameter, Style};

/// What a parameter becomes in its path.
pub(super) fn written(parameter: &Parameter, node: Option<Node<'_>>) -> Result<String, BuildError> {
    let argument = &parameter.argument;
    let node =
        node.ok_or_else(|| BuildError::of(argument, "it is a part of the path and has to be given"))?;
    let style = parameter.wire.style;
    let value = match style {
        Style::Json => Value::Text(json(node).to_owned()),
        _ => value(node),
    };
    checked(argument, &value)?;
    let name = encoded(&parameter.name);
    let explodes = parameter.wire.explodes;
    Ok(match (style, value) {
        (Style::Label, Value::Text(text)) => format!(".{}", encoded(&text)),
        (Style::Label, Value::List(items)) => {
            format!(".{}", items_joined(&items, if explodes { "." } else { "," }))
        }
        (Style::Label, Value::Object(members)) if explodes => {
            format!(".{}", members_joined(&members, "=", "."))
        }
        (Style::Label, Value::Object(members)) => format!(".{}", members_joined(&members, ",", ",")),
        (Style::Matrix, Value::Text(text)) => format!(";{name}={}", encoded(&text)),
        (Style::Matrix, Value::List(items)) if explodes => items
            .iter()
            .map(|item| format!(";{name}={}", encoded(item)))
            .collect(),
        (Style::Matrix, Value::List(items)) => format!(";{name}={}", items_joined(&items, ",")),
        (Style::Matrix, Value::Object(members)) if explodes => {
            format!(";{}", members_joined(&members, "=", ";"))
        }
        (Style::Matrix, Value::Object(members)) => format!(";{name}={}", members_joined(&members, ",", ",")),
        (_, Value::Text(text)) => encoded(&text),
        (_, Value::List(items)) => items_joined(&items, ","),
        (_, Value::Object(members)) if explodes => members_joined(&members, "=", ","),
        (_, Value::Object(members)) => members_joined(&members, ",", ","),
    })
}

fn checked(argument: &str, value: &Value) -> Result<(), BuildError> {
    let nothing = || {
        BuildError::of(
            argument,
            "an empty list or object would change the path; send a value",
        )
    };
    match value {
        Value::Text(text) => guard::path(argument, text),
        Value::List(items) if items.is_empty() => Err(nothing()),
        Value::List(items) => items.iter().try_for_each(|item| guard::path(argument, item)),
        Value::Object(members) if members.is_empty() => Err(nothing()),
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            guard::path(argument, key)?;
            guard::path(argument, value)
        }),
    }
}

pub(super) fn items_joined(items: &[String], between: &str) -> String {
    let items: Vec<String> = items.iter().map(|item| encoded(item)).collect();
    items.join(between)
}

pub(super) fn members_joined(members: &[(String, String)], inside: &str, between: &str) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{}{inside}{}", encoded(key), encoded(value)))
        .collect();
    members.join(between)
}
