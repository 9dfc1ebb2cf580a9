//! The arguments that a tool declares.

use std::borrow::Cow;

use crate::json::{Kind, Node};

/// Parts of a schema beside `properties` that declare arguments.
const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const CONDITIONALS: [&str; 3] = ["if", "then", "else"];
/// Arguments beyond these are not looked at one by one; the tool counts as one whose schema cannot be read.
const MAX_PROPERTIES: usize = 2048;

/// One declared argument.
pub(super) struct Property<'a> {
    pub(super) name: Cow<'a, str>,
    /// The name in lower case, letters and digits only: `subCommand` and `sub_command` are one.
    pub(super) key: String,
    pub(super) schema: Node<'a>,
}

/// The arguments that a schema declares.
#[derive(Default)]
pub(super) struct Arguments<'a> {
    pub(super) properties: Vec<Property<'a>>,
    /// Why more arguments than these may be meant.
    pub(super) unreadable: Vec<String>,
}

/// A name of an argument as it is compared.
pub(super) fn key(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

impl<'a> Arguments<'a> {
    pub(super) fn of(schema: Option<Node<'a>>) -> Self {
        let mut arguments = Self::default();
        if let Some(schema) = schema {
            arguments.collect(schema);
        }
        arguments
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.named(key).is_some()
    }

    pub(super) fn named(&self, key: &str) -> Option<&Property<'a>> {
        self.properties.iter().find(|property| property.key == key)
    }

    fn collect(&mut self, schema: Node<'a>) {
        if let Some(properties) = schema.get("properties") {
            for (name, schema) in properties.members() {
                if self.properties.len() >= MAX_PROPERTIES {
                    self.unreadable("more arguments than can be looked at");
                    return;
                }
                let key = key(&name);
                self.properties.push(Property { name, key, schema });
            }
        }
        for keyword in ["$ref", "$dynamicRef"] {
            if schema.get(keyword).is_some() {
                self.unreadable(&format!("schema {keyword:?}"));
            }
        }
        // INVARIANT: documents nest at most json::MAX_DEPTH deep.
        for keyword in BRANCHES {
            if let Some(branches) = schema.get(keyword) {
                branches.elements().for_each(|branch| self.collect(branch));
            }
        }
        for keyword in CONDITIONALS {
            if let Some(branch) = schema.get(keyword) {
                self.collect(branch);
            }
        }
        if let Some(dependent) = schema.get("dependentSchemas") {
            dependent.members().for_each(|(_, branch)| self.collect(branch));
        }
    }

    fn unreadable(&mut self, reason: &str) {
        if !self.unreadable.iter().any(|known| known == reason) {
            self.unreadable.push(reason.to_owned());
        }
    }
}

impl<'a> Property<'a> {
    /// Whether a string, or a list of strings, is accepted: only a schema whose type says otherwise refuses them.
    pub(super) fn accepts_text(&self) -> bool {
        let Some(declared) = self.schema.get("type") else {
            return true;
        };
        let is_text = |node: Node<'_>| {
            node.as_str()
                .is_some_and(|name| name == "string" || (name == "array" && self.lists_text()))
        };
        match declared.kind() {
            Kind::String => is_text(declared),
            Kind::Array => declared.elements().any(is_text),
            Kind::Null | Kind::Bool | Kind::Number | Kind::Object => true,
        }
    }

    fn lists_text(&self) -> bool {
        self.schema
            .get("items")
            .and_then(|items| items.get("type"))
            .and_then(Node::as_str)
            .is_some_and(|name| name == "string")
    }

    /// The strings that are declared as the only ones; none where any string will do.
    pub(super) fn values(&self) -> Option<Vec<String>> {
        let mut values = Vec::new();
        let is_closed = closed_values(self.schema, &mut values);
        is_closed.then_some(values)
    }

    /// The value of an absent argument.
    pub(super) fn default_text(&self) -> Option<String> {
        self.schema.get("default")?.as_str().map(Cow::into_owned)
    }

    pub(super) fn description(&self) -> Option<Cow<'a, str>> {
        self.schema.get("description")?.as_str()
    }
}

/// Collects the strings that a schema allows; whether it allows these only.
fn closed_values(schema: Node<'_>, values: &mut Vec<String>) -> bool {
    if let Some(listed) = schema.get("enum") {
        values.extend(listed.elements().filter_map(Node::as_str).map(Cow::into_owned));
        return true;
    }
    if let Some(constant) = schema.get("const") {
        values.extend(constant.as_str().map(Cow::into_owned));
        return true;
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(branches) = schema.get(keyword).filter(|branches| !branches.is_empty()) else {
            continue;
        };
        return branches.elements().all(|branch| {
            let type_name = branch.get("type").and_then(Node::as_str);
            let is_no_text = type_name.is_some_and(|name| name != "string");
            closed_values(branch, values) || is_no_text
        });
    }
    false
}
