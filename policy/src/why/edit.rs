//! Arguments with one value changed.

use tools::json::{Kind, Node};

use crate::document::Step;

/// JSON in which single values can be replaced; numbers and strings keep their text.
#[derive(Debug, Clone)]
pub(super) enum Json {
    Raw(String),
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
}

impl Json {
    pub(super) fn of(node: Node<'_>) -> Self {
        match node.kind() {
            Kind::Object => Self::Object(
                node.members()
                    .map(|(key, value)| (key.into_owned(), Self::of(value)))
                    .collect(),
            ),
            Kind::Array => Self::Array(node.elements().map(Self::of).collect()),
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => Self::Raw(node.raw_str().to_owned()),
        }
    }

    pub(super) fn empty() -> Self {
        Self::Object(Vec::new())
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Raw(text) => text.clone(),
            Self::Object(members) => {
                let inner: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{}:{}", quoted(key), value.text()))
                    .collect();
                format!("{{{}}}", inner.join(","))
            }
            Self::Array(elements) => {
                let inner: Vec<String> = elements.iter().map(Self::text).collect();
                format!("[{}]", inner.join(","))
            }
        }
    }

    /// Puts a value (or nothing) at a path; every element of a list for `[*]` and `[every]`. Says whether it could.
    pub(super) fn put(&mut self, steps: &[Step], value: Option<&str>) -> bool {
        let Some((step, rest)) = steps.split_first() else {
            if let Some(value) = value {
                *self = Self::Raw(value.to_owned());
            }
            return value.is_some();
        };
        match step {
            Step::Key(key) => self.put_member(key, rest, value),
            Step::Index(index) => match self {
                Self::Array(elements) => match elements.get_mut(*index) {
                    Some(element) => element.put(rest, value),
                    None => false,
                },
                Self::Raw(_) | Self::Object(_) => false,
            },
            Step::Some | Step::Every => {
                let Self::Array(elements) = self else {
                    let Some(value) = value else { return false };
                    let mut element = if rest.is_empty() {
                        Self::Raw(value.to_owned())
                    } else {
                        Self::empty()
                    };
                    let is_put = rest.is_empty() || element.put(rest, Some(value));
                    *self = Self::Array(vec![element]);
                    return is_put;
                };
                if elements.is_empty() {
                    elements.push(Self::empty());
                }
                let mut is_put = true;
                for element in elements {
                    is_put &= element.put(rest, value);
                }
                is_put
            }
        }
    }

    fn put_member(&mut self, key: &str, rest: &[Step], value: Option<&str>) -> bool {
        let Self::Object(members) = self else { return false };
        let at = members.iter().position(|(name, _)| name == key);
        match (at, value, rest) {
            (Some(at), None, []) => {
                members.remove(at);
                true
            }
            (None, None, _) => false,
            (Some(at), _, _) => members
                .get_mut(at)
                .is_some_and(|(_, inner)| inner.put(rest, value)),
            (None, Some(value), _) => {
                let mut inner = Self::empty();
                let is_put = inner.put(rest, Some(value));
                members.push((key.to_owned(), inner));
                is_put
            }
        }
    }
}

/// A text as JSON writes it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}
