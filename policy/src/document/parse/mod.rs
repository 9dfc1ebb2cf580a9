//! YAML becomes policies; every problem is reported.

mod condition;
mod rule;
mod selector;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use tools::id::PolicyName;

use super::lists::Lists;
use super::origin::Origin;
use super::{FORMAT, Mode, Policy, PolicyKind, RateLimit};
use crate::glob::Glob;
use crate::nearest;
use crate::yaml::{self, MapReader, Problem, Problems, Value};

/// Where documents come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The configuration's `policies:`.
    Inline,
    /// A file of `policy_dir`, by its name there.
    Directory,
    /// The API.
    Api,
}

impl Source {
    fn origin(&self, file: &str, index: usize) -> Origin {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        match self {
            Self::Inline => Origin::Inline(index),
            Self::Directory => Origin::Directory(Arc::from(file), index),
            Self::Api => Origin::Api,
        }
    }
}

impl Policy {
    /// Reads every policy of a YAML text (documents separated by `---`; empty ones are skipped).
    ///
    /// # Errors
    /// Every problem in the text, with its place.
    pub fn parse_all(
        file: &str,
        text: &str,
        source: &Source,
        lists: &Lists,
    ) -> Result<Vec<Policy>, Vec<Problem>> {
        let documents = yaml::load(file, text)?;
        let problems = Problems::new(file);
        let written: Vec<&Value> = documents.iter().filter(|document| !document.is_null()).collect();
        let policies = Self::read_values(&written, source, lists, &problems);
        problems.into_result(Some(policies))
    }

    /// Reads policies from values that are part of a larger document, such as the configuration's `policies:`.
    /// Problems are reported to `problems`; only sound policies are given back.
    pub fn read_values(
        values: &[&Value],
        source: &Source,
        lists: &Lists,
        problems: &Problems,
    ) -> Vec<Policy> {
        let mut lines: HashMap<PolicyName, u32> = HashMap::new();
        let mut policies = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let origin = source.origin(problems.file(), index);
            let Some(policy) = read(value, origin, lists, problems) else {
                continue;
            };
            if let Some(line) = lines.get(&policy.name) {
                let hint = format!("the first one is on line {line}; names are unique in the installation");
                problems.at_with_hint(
                    value,
                    format!("policy \"{}\" is defined twice", policy.name),
                    hint,
                );
            }
            lines.insert(policy.name.clone(), value.line());
            policies.push(policy);
        }
        policies
    }
}

fn read(value: &Value, origin: Origin, lists: &Lists, problems: &Problems) -> Option<Policy> {
    let before = problems.len();
    if value.as_seq().is_some() {
        let hint = "write each policy as a document of its own, with `---` between them".to_owned();
        problems.at_with_hint(value, "expected a policy (a mapping), found a list", hint);
        return None;
    }
    let reader = MapReader::new(value, "a policy", problems)?;
    let name = reader
        .required("name")
        .and_then(|value| read_name(value, problems));
    let agents = reader.required("agent").and_then(|value| globs(value, problems));
    let namespaces = match reader.optional("namespace") {
        Some(value) => globs(value, problems),
        None => Some(vec![Glob::any()]),
    };
    let kinds = [
        ("standard", PolicyKind::Standard),
        ("guardrail", PolicyKind::Guardrail),
    ];
    let kind = choice(reader.optional("kind"), kinds, problems);
    let modes = [("enforce", Mode::Enforce), ("shadow", Mode::Shadow)];
    let mode = choice(reader.optional("mode"), modes, problems);
    let rate_limit = reader
        .optional("rate_limit")
        .and_then(|value| read_rate_limit(value, problems));
    let rules = reader.required("rules").and_then(|rules| {
        let rules_read = problems.sequence(rules)?;
        if rules_read.is_empty() {
            problems.at_with_hint(rules, "rules is empty", "write at least one rule".to_owned());
        }
        Some(
            rules_read
                .iter()
                .filter_map(|rule| rule::read(rule, kind, lists, problems))
                .collect::<Vec<_>>(),
        )
    });
    for key in ["namespace", "kind", "mode", "rate_limit"] {
        rule::refuse_null(&reader, key, problems);
    }
    reader.finish();
    if problems.len() > before {
        return None;
    }
    Some(Policy {
        format: FORMAT,
        name: name?,
        agents: agents?,
        namespaces: namespaces?,
        kind,
        mode,
        rate_limit,
        rules: rules?,
        origin,
        source_file: Some(Arc::from(problems.file())),
    })
}

fn read_name(value: &Value, problems: &Problems) -> Option<PolicyName> {
    match problems.string(value)?.parse() {
        Ok(name) => Some(name),
        Err(error) => {
            problems.at(value, format!("name: {error}"));
            None
        }
    }
}

/// A pattern or a list of patterns, not empty.
fn globs(value: &Value, problems: &Problems) -> Option<Vec<Glob>> {
    let texts = problems.strings(value)?;
    if texts.is_empty() {
        problems.at(
            value,
            format!("{} is empty; write \"*\" for everything", key_of(value)),
        );
        return None;
    }
    texts
        .into_iter()
        .map(|(text, place)| one(text, place, problems))
        .collect()
}

/// Parses one text, reporting its error.
fn one<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: &str,
    place: &Value,
    problems: &Problems,
) -> Option<T> {
    text.parse()
        .map_err(|error: T::Err| problems.at(place, error.to_string()))
        .ok()
}

/// One of a few words; the first is the default.
fn choice<T: Copy + Default, const N: usize>(
    value: Option<&Value>,
    choices: [(&'static str, T); N],
    problems: &Problems,
) -> T {
    let Some(value) = value else { return T::default() };
    let Some(text) = problems.string(value) else {
        return T::default();
    };
    match choices.iter().find(|(name, _)| *name == text) {
        Some((_, choice)) => *choice,
        None => {
            let hint = nearest::hint(text, choices.iter().map(|(name, _)| *name));
            problems.at_with_hint(value, format!("{} \"{text}\" is unknown", key_of(value)), hint);
            T::default()
        }
    }
}

fn read_rate_limit(value: &Value, problems: &Problems) -> Option<RateLimit> {
    let reader = MapReader::new(value, "a rate_limit", problems)?;
    let limit = |key| {
        let value = reader.optional(key)?;
        let found = value.as_u64().and_then(NonZeroU64::new);
        if found.is_none() {
            problems.at(
                value,
                format!("{key} must be a whole number from 1, found {}", value.describe()),
            );
        }
        found
    };
    let found = RateLimit {
        max_per_minute: limit("max_per_minute"),
        max_total: limit("max_total"),
    };
    if value.as_map().is_some_and(yaml::Map::is_empty) {
        problems.at(
            value,
            "rate_limit sets no limit; give max_per_minute, max_total or both",
        );
    }
    reader.finish();
    Some(found)
}

/// The key under which a value stands.
fn key_of(value: &Value) -> &str {
    let key = value.path().rsplit('.').next().unwrap_or_default();
    key.split('[').next().unwrap_or(key)
}
