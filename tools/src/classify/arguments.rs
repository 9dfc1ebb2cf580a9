//! Arguments that let a caller say what is to be done: the signs of a generic tool.

use std::borrow::Cow;

use crate::json::{Kind, Node};

/// Names of text arguments that hold something to run.
const TEXT_TO_RUN: [&str; 11] = [
    "code",
    "script",
    "sql",
    "command",
    "cmd",
    "statement",
    "program",
    "expression",
    "function",
    "js",
    "shell",
];
/// Words of a tool's name that make an argument named `query` something to run.
const RUNNING_WORDS: [&str; 4] = ["execute", "exec", "run", "sql"];
/// Languages whose mention in a description makes an argument named `query` something to run.
const QUERY_LANGUAGES: [&str; 3] = ["sql", "cypher", "graphql"];
/// Parts of a schema beside `properties` that declare arguments.
const BRANCHES: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const CONDITIONALS: [&str; 3] = ["if", "then", "else"];

/// Why a tool with this input schema is generic; nothing when it is not.
pub(super) fn generic_reasons(
    schema: Option<Node<'_>>,
    words: &[String],
    description: Option<&str>,
) -> Vec<String> {
    let Some(schema) = schema else {
        return Vec::new();
    };
    let mut arguments = Arguments::default();
    arguments.collect(schema);
    let mut reasons = arguments.unreadable;
    let names = arguments.names;
    let has = |name: &str| names.iter().any(|(found, _)| found == name);
    for (name, is_text) in &names {
        if *is_text && TEXT_TO_RUN.contains(&name.as_str()) {
            reasons.push(format!("argument {name:?}"));
        }
    }
    if has("query") && runs_queries(words, description) {
        reasons.push("argument \"query\"".to_owned());
    }
    if has("method") && (has("path") || has("url") || has("endpoint")) {
        reasons.push("arguments \"method\" and path".to_owned());
    }
    if has("arguments") && (has("name") || has("tool")) {
        reasons.push("arguments \"name\" and \"arguments\"".to_owned());
    }
    reasons
}

fn runs_queries(words: &[String], description: Option<&str>) -> bool {
    let says = |word: &str| RUNNING_WORDS.contains(&word);
    let mentions = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric()).any(|word| {
            QUERY_LANGUAGES
                .iter()
                .any(|language| word.eq_ignore_ascii_case(language))
        })
    };
    words.iter().any(|word| says(word)) || description.is_some_and(mentions)
}

/// The arguments that a schema declares.
#[derive(Default)]
struct Arguments {
    /// Names in lower case, and whether a string is accepted.
    names: Vec<(String, bool)>,
    /// Why more arguments than these may be meant.
    unreadable: Vec<String>,
}

impl Arguments {
    fn collect(&mut self, schema: Node<'_>) {
        if let Some(properties) = schema.get("properties") {
            for (name, declared) in properties.members() {
                self.names.push((name.to_lowercase(), accepts_text(declared)));
            }
        }
        for keyword in ["$ref", "$dynamicRef"] {
            if schema.get(keyword).is_some() {
                self.unreadable.push(format!("schema {keyword:?}"));
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
}

/// Whether a string is accepted: only a schema whose type says otherwise refuses it.
fn accepts_text(schema: Node<'_>) -> bool {
    let Some(declared) = schema.get("type") else {
        return true;
    };
    match declared.kind() {
        Kind::String => declared.as_str() == Some(Cow::Borrowed("string")),
        Kind::Array => declared
            .elements()
            .any(|one| one.as_str() == Some(Cow::Borrowed("string"))),
        Kind::Null | Kind::Bool | Kind::Number | Kind::Object => true,
    }
}
