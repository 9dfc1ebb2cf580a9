//! Values that hold others, and those that have rules of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use policy::document::{Lists as PolicyLists, Policy, Source};
use policy::yaml::{Map, Value};
use serde_json::json;

use super::{Kind, Leaf, Reading, Setting};
use crate::Secret;
use crate::environment::Environment;
use crate::schema::leaf::key_of;

impl<S: Setting> Setting for Option<S> {
    type Value = Option<S::Value>;
    const FROM_TEXT: bool = S::FROM_TEXT;

    fn kind() -> Kind {
        S::kind()
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<Self::Value> {
        S::read(value, reading).map(Some)
    }

    fn from_text(text: &str) -> Result<Self::Value, String> {
        S::from_text(text).map(Some)
    }

    fn absent(_: &Reading<'_>) -> Option<Self::Value> {
        Some(None)
    }
}

/// A list; in an environment variable its elements are separated by commas.
impl<S: Setting> Setting for Vec<S> {
    type Value = Vec<S::Value>;
    const FROM_TEXT: bool = S::FROM_TEXT;

    fn kind() -> Kind {
        Kind::List(Box::new(S::kind()))
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<Self::Value> {
        let inner = reading.within(None);
        let read: Vec<_> = reading
            .problems
            .sequence(value)?
            .iter()
            .map(|element| S::read(element, &inner))
            .collect();
        read.into_iter().collect()
    }

    fn from_text(text: &str) -> Result<Self::Value, String> {
        text.split(',')
            .map(|element| S::from_text(element.trim()))
            .collect()
    }

    fn absent(_: &Reading<'_>) -> Option<Self::Value> {
        Some(Vec::new())
    }
}

impl<S: Setting> Setting for BTreeMap<String, S> {
    type Value = BTreeMap<String, S::Value>;

    fn kind() -> Kind {
        Kind::Map(Box::new(S::kind()))
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<Self::Value> {
        let inner = reading.within(None);
        let entries = mapping(value, reading)?.entries();
        let read: Vec<_> = entries
            .iter()
            .map(|entry| Some((entry.key.clone(), S::read(&entry.value, &inner)?)))
            .collect();
        read.into_iter().collect()
    }

    fn from_text(_: &str) -> Result<Self::Value, String> {
        Err("expected a mapping".to_owned())
    }

    fn absent(_: &Reading<'_>) -> Option<Self::Value> {
        Some(BTreeMap::new())
    }
}

fn mapping<'v>(value: &'v Value, reading: &Reading<'_>) -> Option<&'v Map> {
    let map = value.as_map();
    if map.is_none() {
        reading.problems.expected(value, "a mapping");
    }
    map
}

/// HTTP headers. `${VAR}` in a value is replaced from the environment, here and nowhere else.
pub(crate) struct Headers;

impl Setting for Headers {
    type Value = BTreeMap<String, Secret>;

    fn kind() -> Kind {
        let phrase = "text in which `${VAR}` is expanded".to_owned();
        Kind::Map(Box::new(Kind::Leaf {
            phrase,
            schema: json!({ "type": "string" }),
        }))
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<Self::Value> {
        let read: Vec<_> = mapping(value, reading)?
            .entries()
            .iter()
            .map(|entry| {
                if http::HeaderName::from_bytes(entry.key.as_bytes()).is_err() {
                    let message = format!("\"{}\" is not a header name", entry.key);
                    reading
                        .problems
                        .add(entry.mark, entry.value.path(), message, None);
                }
                Some((entry.key.clone(), header_value(&entry.value, reading)?))
            })
            .collect();
        read.into_iter().collect()
    }

    fn from_text(_: &str) -> Result<Self::Value, String> {
        Err("expected a mapping".to_owned())
    }

    fn absent(_: &Reading<'_>) -> Option<Self::Value> {
        Some(BTreeMap::new())
    }
}

fn header_value(value: &Value, reading: &Reading<'_>) -> Option<Secret> {
    let Some(text) = value.as_str() else {
        reading.problems.at(
            value,
            format!("{}: expected a string; put it in quotes", key_of(value)),
        );
        return None;
    };
    if !reading.expands {
        return Some(Secret::new(text));
    }
    let expanded = expand(text, reading.environment).and_then(|expanded| {
        let is_header = http::HeaderValue::from_str(&expanded).is_ok();
        if is_header {
            Ok(expanded)
        } else {
            Err("the value holds characters that no header may hold".to_owned())
        }
    });
    expanded
        .map(Secret::new)
        .map_err(|message| {
            reading
                .problems
                .at(value, format!("{}: {message}", key_of(value)))
        })
        .ok()
}

/// Replaces each `${VAR}`. An unset variable is an error that names it.
fn expand(text: &str, environment: &Environment) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            return Err("a \"${\" has no closing \"}\"".to_owned());
        };
        let value = environment.get(name).ok_or_else(|| {
            format!("the environment variable {name} is not set; set it, or remove it here")
        })?;
        expanded.push_str(value);
        rest = tail;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Reusable lists of patterns.
pub(crate) struct Lists;

impl Setting for Lists {
    type Value = PolicyLists;

    fn kind() -> Kind {
        BTreeMap::<String, Vec<String>>::kind()
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<PolicyLists> {
        Some(
            BTreeMap::<String, Vec<String>>::read(value, reading)?
                .into_iter()
                .collect(),
        )
    }

    fn from_text(_: &str) -> Result<PolicyLists, String> {
        Err("expected a mapping".to_owned())
    }

    fn absent(_: &Reading<'_>) -> Option<PolicyLists> {
        Some(PolicyLists::none())
    }
}

/// Policy documents; the policy room reads them.
pub(crate) struct Policies;

impl Setting for Policies {
    type Value = Vec<Policy>;

    fn kind() -> Kind {
        let phrase = "a policy document".to_owned();
        Kind::List(Box::new(Kind::Leaf {
            phrase,
            schema: json!({ "type": "object" }),
        }))
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<Vec<Policy>> {
        let documents: Vec<&Value> = reading.problems.sequence(value)?.iter().collect();
        Some(Policy::read_values(
            &documents,
            &Source::Inline,
            reading.lists,
            reading.problems,
        ))
    }

    fn from_text(_: &str) -> Result<Vec<Policy>, String> {
        Err("expected a list of policies".to_owned())
    }

    fn absent(_: &Reading<'_>) -> Option<Vec<Policy>> {
        Some(Vec::new())
    }
}

/// A secret that only an environment variable may hold.
pub(crate) struct VariableOnly;

impl Setting for VariableOnly {
    type Value = Option<Secret>;
    const FROM_TEXT: bool = true;

    fn kind() -> Kind {
        Kind::Leaf {
            phrase: "a secret, by environment variable only".to_owned(),
            schema: json!(false),
        }
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<Self::Value> {
        let variable = super::variable_name(value.path());
        reading.problems.at(
            value,
            format!("{} may not stand in a file; set {variable}", value.path()),
        );
        None
    }

    fn from_text(text: &str) -> Result<Self::Value, String> {
        <Secret as Leaf>::parse(text, Path::new("")).map(Some)
    }

    fn absent(_: &Reading<'_>) -> Option<Self::Value> {
        Some(None)
    }
}

/// A folder for what a process keeps; by default that of the operating system's convention.
pub(crate) struct StateFolder;

impl Setting for StateFolder {
    type Value = PathBuf;
    const FROM_TEXT: bool = true;

    fn kind() -> Kind {
        <PathBuf as Setting>::kind()
    }

    fn read(value: &Value, reading: &Reading<'_>) -> Option<PathBuf> {
        <PathBuf as Setting>::read(value, reading)
    }

    fn from_text(text: &str) -> Result<PathBuf, String> {
        <PathBuf as Setting>::from_text(text)
    }

    fn absent(reading: &Reading<'_>) -> Option<PathBuf> {
        let variable = |name| {
            reading
                .environment
                .get(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let found = variable("STATE_DIRECTORY")
            .or_else(|| Some(variable("XDG_STATE_HOME")?.join("toolgate")))
            .or_else(|| Some(variable("HOME")?.join(".local/state/toolgate")));
        // Without a home the folder of the configuration is the only place that is known to be the reader's.
        Some(found.unwrap_or_else(|| reading.folder.join("toolgate-state")))
    }
}
