//! What the tables say, for editors and for readers.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::Config;
use crate::model::ALIASES;
use crate::schema::{Description, KeyDescription, Kind, Setting, variable_name};

/// The JSON Schema of the configuration, for editors.
pub fn json_schema() -> Json {
    let mut schema = schema_of(&Config::kind());
    if let Some(root) = schema.as_object_mut() {
        root.insert(
            "$schema".to_owned(),
            json!("https://json-schema.org/draft/2020-12/schema"),
        );
        root.insert("title".to_owned(), json!("Toolgate configuration"));
    }
    schema
}

fn schema_of(kind: &Kind) -> Json {
    match kind {
        Kind::Leaf { schema, .. } => schema.clone(),
        Kind::List(of) => json!({ "type": "array", "items": schema_of(of) }),
        Kind::Map(of) => json!({ "type": "object", "additionalProperties": schema_of(of) }),
        Kind::Section(section) => section_schema(section),
    }
}

fn section_schema(section: &Description) -> Json {
    let properties: Map<String, Json> = section
        .keys
        .iter()
        .map(|key| {
            let mut schema = schema_of(&key.kind);
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".to_owned(), json!(key.about.trim()));
                if let Some(default) = key.default {
                    schema.insert("default".to_owned(), default_json(default));
                }
            }
            (key.name.to_owned(), schema)
        })
        .collect();
    let required: Vec<_> = section
        .keys
        .iter()
        .filter(|key| key.is_required)
        .map(|key| key.name)
        .collect();
    json!({
        "type": "object",
        "description": section.about.trim(),
        "additionalProperties": false,
        "properties": properties,
        "required": required,
    })
}

/// Numbers and flags as such, everything else as text.
fn default_json(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(value @ (Json::Number(_) | Json::Bool(_))) => value,
        _ => json!(text),
    }
}

/// The reference page, as `docs/configuration.md` holds it.
pub fn reference_markdown() -> String {
    let mut page = Page {
        text: INTRODUCTION.to_owned(),
        later: Vec::new(),
    };
    if let Kind::Section(root) = Config::kind() {
        page.section("", Some(""), &root);
    }
    page.text.push_str(
        "\n## Not available in this version\n\nThese keys are errors, so that nobody relies on them: ",
    );
    page.text.push_str(
        &page
            .later
            .iter()
            .map(|key| format!("`{key}`"))
            .collect::<Vec<_>>()
            .join(", "),
    );
    page.text.push_str(".\n");
    page.text
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Written from the tables in config/src/model by a test; change them, not this page. -->

One YAML file configures `toolgate`, `toolgate-control-plane` and `toolgate-sidecar`; each uses its part. Check one
with `toolgate config check FILE`. Every error names its line, and the nearest valid key where a key is unknown.

A key that has a variable can be set, or overridden, by that environment variable; lists are separated by commas
there. Durations are written `4m30s`, sizes `16MiB`. Relative paths start from the file's folder. `${VAR}` is
replaced in `headers`, and nowhere else.
";

struct Page {
    text: String,
    later: Vec<String>,
}

impl Page {
    /// `path` is the section's key; `variables` its way in variable names, where it has one.
    fn section(&mut self, path: &str, variables: Option<&str>, section: &Description) {
        let title = if path.is_empty() {
            "Top level".to_owned()
        } else {
            format!("`{path}`")
        };
        let _ = write!(self.text, "\n## {title}\n\n{}\n\n", section.about.trim());
        self.text
            .push_str("| key | value | default | meaning | variable |\n|---|---|---|---|---|\n");
        for key in &section.keys {
            let variable = variables
                .filter(|_| key.has_variable)
                .map(|prefix| join(prefix, key.name));
            self.row(key, variable.as_deref());
        }
        self.later
            .extend(section.planned.iter().map(|name| join(path, name)));
        for key in &section.keys {
            let inner = join(path, key.name);
            match &key.kind {
                Kind::Section(section) => {
                    self.section(&inner, variables.map(|_| inner.as_str()), section);
                }
                Kind::List(of) => {
                    if let Kind::Section(section) = of.as_ref() {
                        self.section(&format!("{inner}[]"), None, section);
                    }
                }
                Kind::Leaf { .. } | Kind::Map(_) => {}
            }
        }
    }

    fn row(&mut self, key: &KeyDescription, variable: Option<&str>) {
        let default = match (key.default, key.is_required) {
            (Some(default), _) => format!("`{default}`"),
            (None, true) => "required".to_owned(),
            (None, false) => String::new(),
        };
        let names = variable.map(variable_names).unwrap_or_default();
        let _ = writeln!(
            self.text,
            "| `{}` | {} | {default} | {}{} | {names} |",
            key.name,
            key.kind.phrase(),
            key.about.trim(),
            meanings(&key.kind),
        );
    }
}

/// What the words of a choice mean, from its schema.
fn meanings(kind: &Kind) -> String {
    let Kind::Leaf { schema, .. } = kind else {
        return String::new();
    };
    let choices = schema
        .get("oneOf")
        .and_then(Json::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let meaning = |choice: &Json| {
        let word = choice.get("const")?.as_str()?;
        Some(format!("<br>`{word}`: {}", choice.get("description")?.as_str()?))
    };
    choices.iter().filter_map(meaning).collect()
}

fn variable_names(path: &str) -> String {
    let aliases = ALIASES
        .iter()
        .filter(|(key, _)| *key == path)
        .map(|(_, name)| (*name).to_owned());
    let names = std::iter::once(variable_name(path)).chain(aliases);
    names
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
