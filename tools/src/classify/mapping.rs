//! Explicit mappings: what a named tool does, said by a person.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Risk, RiskSet};

/// What one tool does, depending on its arguments.
///
/// An operator writes it as JSON; the built-in ones are in `data/mappings.txt`.
///
/// ```
/// use tools::classify::{Mapping, Risk};
/// let mapping: Mapping = serde_json::from_str(
///     r#"{"capability": "file.read", "risks": ["READ"], "arguments": {"path": "path"},
///         "actions": {"action": {"remove": {"capability": "file.delete", "risks": ["DELETE"]}}}}"#,
/// )
/// .unwrap();
/// assert!(mapping.risks.contains(Risk::Read));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// What is done, such as `file.read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The risks of a call, where no argument says otherwise.
    pub risks: RiskSet,
    /// What arguments hold, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Role>,
    /// Arguments whose value says what is done: by name, then by value. These replace `risks`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, BTreeMap<String, Effect>>,
    /// Arguments whose presence adds to `risks`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub presence: BTreeMap<String, Effect>,
}

/// What a call does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// What is done, such as `file.read`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Its risks.
    pub risks: RiskSet,
}

/// What an argument holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Text for a shell.
    Shell,
    /// A patch, in V4A or unified form.
    Patch,
    /// SQL.
    Sql,
    /// A file path, or a list of them.
    Path,
    /// A URL, or a list of them: their hosts are reached.
    Url,
    /// A host name, or a list of them.
    Host,
    /// An address of somebody, or a list of them.
    Recipient,
    /// Data, whatever the argument's name sounds like.
    Data,
}

impl Role {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "shell" => Self::Shell,
            "patch" => Self::Patch,
            "sql" => Self::Sql,
            "path" => Self::Path,
            "url" => Self::Url,
            "host" => Self::Host,
            "recipient" => Self::Recipient,
            "data" => Self::Data,
            _ => return None,
        })
    }
}

/// Why a mapping cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// No risk is given.
    #[error("a mapping has no risks for {what}: name at least one class, such as READ")]
    NoRisk {
        /// The part without risks.
        what: String,
    },
    /// Too much is given.
    #[error("a mapping has {count} {what}, and at most {max} can be: leave some out")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
}

impl Mapping {
    /// Names and values in one mapping.
    const MAX_ENTRIES: usize = 256;

    /// Whether the mapping says something about every case that it names.
    ///
    /// # Errors
    /// With the first part that has no risks, or when there are too many entries.
    pub fn check(&self) -> Result<(), MappingError> {
        let values = self.actions.values().map(BTreeMap::len).sum();
        for (what, count) in [
            ("arguments", self.arguments.len()),
            ("action values", values),
            ("arguments that count by presence", self.presence.len()),
        ] {
            if count > Self::MAX_ENTRIES {
                let max = Self::MAX_ENTRIES;
                return Err(MappingError::TooMany { what, count, max });
            }
        }
        let no_risk = |what: String| Err(MappingError::NoRisk { what });
        if self.risks.is_empty() {
            return no_risk("the tool".to_owned());
        }
        for (argument, values) in &self.actions {
            if let Some((value, _)) = values.iter().find(|(_, effect)| effect.risks.is_empty()) {
                return no_risk(format!("{argument} = {value:?}"));
            }
        }
        match self.presence.iter().find(|(_, effect)| effect.risks.is_empty()) {
            Some((argument, _)) => no_risk(format!("{argument} given")),
            None => Ok(()),
        }
    }

    /// The risks when nothing is given, of the worst of the declared actions where there are any.
    pub(super) fn worst(&self) -> RiskSet {
        self.actions
            .values()
            .flat_map(BTreeMap::values)
            .fold(RiskSet::EMPTY, |all, effect| all.union(effect.risks))
    }

    /// Takes one indented line of the text form:
    ///
    /// ```text
    /// ARGUMENT is ROLE
    /// ARGUMENT given: CAPABILITY RISK
    /// ARGUMENT = VALUE VALUE: CAPABILITY RISK
    /// ```
    pub(super) fn line(&mut self, line: &str) -> Option<()> {
        if let Some((argument, role)) = line.split_once(" is ") {
            self.arguments
                .insert(argument.trim().to_owned(), Role::named(role.trim())?);
            return Some(());
        }
        let (head, effect) = line.split_once(": ")?;
        let effect = Effect::parse(effect)?;
        if let Some(argument) = head.strip_suffix(" given") {
            self.presence.insert(argument.trim().to_owned(), effect);
            return Some(());
        }
        let (argument, values) = head.split_once(" = ")?;
        let table = self.actions.entry(argument.trim().to_owned()).or_default();
        for value in values.split_whitespace() {
            table.insert(value.to_owned(), effect.clone());
        }
        Some(())
    }
}

impl Effect {
    /// `CAPABILITY RISK RISK`
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let capability = words.next()?.to_owned();
        let risks: Option<RiskSet> = words.map(Risk::from_name).collect();
        Some(Self {
            capability: Some(capability),
            risks: risks.filter(|risks| !risks.is_empty())?,
        })
    }
}
