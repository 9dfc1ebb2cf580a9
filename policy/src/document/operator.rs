//! The operators of conditions.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::condition::Scalar;

/// What a test compares by, without its negation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the operators")]
pub enum Base {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Contains,
    StartsWith,
    EndsWith,
    In,
    Matches,
    Exists,
}

/// An operator: a base, or the negation of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Operator {
    /// What is compared.
    pub base: Base,
    /// Whether the result is negated.
    pub negated: bool,
}

/// The text names no operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operator \"{0}\" is unknown")]
pub struct UnknownOperator(pub String);

const NAMES: [(&str, Base, bool); 18] = [
    ("<", Base::Less, false),
    ("<=", Base::LessOrEqual, false),
    (">", Base::Greater, false),
    (">=", Base::GreaterOrEqual, false),
    ("==", Base::Equal, false),
    ("!=", Base::Equal, true),
    ("contains", Base::Contains, false),
    ("not_contains", Base::Contains, true),
    ("starts_with", Base::StartsWith, false),
    ("not_starts_with", Base::StartsWith, true),
    ("ends_with", Base::EndsWith, false),
    ("not_ends_with", Base::EndsWith, true),
    ("in", Base::In, false),
    ("not_in", Base::In, true),
    ("matches", Base::Matches, false),
    ("not_matches", Base::Matches, true),
    ("exists", Base::Exists, false),
    ("not_exists", Base::Exists, true),
];

impl Operator {
    /// Every operator's name.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        NAMES.iter().map(|(name, _, _)| *name)
    }

    /// The operator's name in documents.
    pub fn as_str(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, base, negated)| *base == self.base && *negated == self.negated)
            .map_or("", |(name, _, _)| name)
    }

    /// Whether the operator can compare with these values; `is_list` says whether they were written as a list.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn accepts(self, values: &[Scalar], is_list: bool) -> Result<(), String> {
        let wants = |what: &str| Err(format!("operator \"{self}\" needs {what}"));
        if self.base == Base::Exists {
            return if values.is_empty() {
                Ok(())
            } else {
                Err(format!("operator \"{self}\" takes no value"))
            };
        }
        if values.is_empty() {
            return Err(if is_list {
                format!("operator \"{self}\" has an empty list as value")
            } else {
                format!("operator \"{self}\" needs a value")
            });
        }
        let texts = || values.iter().all(|value| matches!(value, Scalar::String(_)));
        match self.base {
            Base::Less | Base::LessOrEqual | Base::Greater | Base::GreaterOrEqual => match values {
                [Scalar::Number(_)] if !is_list => Ok(()),
                _ => wants("one number as value"),
            },
            Base::Contains | Base::StartsWith | Base::EndsWith if !texts() => {
                wants("a string, or a list of strings, as value")
            }
            Base::Matches if !values.iter().all(|value| matches!(value, Scalar::Pattern(_))) => {
                wants("a regular expression, or a list of them, as value")
            }
            Base::In if !is_list => wants("a list as value"),
            Base::Equal | Base::In if values.iter().any(|value| matches!(value, Scalar::Pattern(_))) => {
                wants("strings, numbers or booleans as value")
            }
            Base::Equal | Base::In | Base::Contains | Base::StartsWith | Base::EndsWith | Base::Matches => {
                Ok(())
            }
            Base::Exists => Ok(()),
        }
    }
}

impl std::str::FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(text: &str) -> Result<Self, UnknownOperator> {
        NAMES
            .iter()
            .find(|(name, _, _)| *name == text)
            .map(|&(_, base, negated)| Self { base, negated })
            .ok_or_else(|| UnknownOperator(text.to_owned()))
    }
}

impl TryFrom<String> for Operator {
    type Error = UnknownOperator;

    fn try_from(text: String) -> Result<Self, UnknownOperator> {
        text.parse()
    }
}

impl From<Operator> for String {
    fn from(operator: Operator) -> Self {
        operator.as_str().to_owned()
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}
