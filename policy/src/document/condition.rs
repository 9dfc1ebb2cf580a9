//! Conditions over the arguments of a call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tools::decimal::Decimal;

use super::field::Field;
use super::operator::Operator;
use super::pattern::Pattern;

/// A test, or several joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Every part holds. Not empty.
    All(Vec<Condition>),
    /// Some part holds. Not empty.
    Any(Vec<Condition>),
    /// The part does not hold.
    Not(Box<Condition>),
    /// One test.
    Test(Test),
}

/// One comparison of a field with any of some values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    /// What is looked at.
    pub field: Field,
    /// How it is compared.
    pub operator: Operator,
    /// What it is compared with: any of these. Empty for `exists` and `not_exists`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Scalar>,
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scalar {
    /// A string, compared by code points.
    String(Arc<str>),
    /// An exact number.
    Number(Decimal),
    /// A boolean.
    Boolean(bool),
    /// A regular expression, for `matches` and `not_matches`.
    Pattern(Pattern),
}

impl Condition {
    /// Every test in the condition, in the order of the text.
    pub fn tests(&self) -> Vec<&Test> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::tests).collect(),
            Self::Not(part) => part.tests(),
            Self::Test(test) => vec![test],
        }
    }

    /// How deep `all`, `any` and `not` are nested; a single test is 1.
    pub fn depth(&self) -> usize {
        match self {
            Self::All(parts) | Self::Any(parts) => 1 + parts.iter().map(Self::depth).max().unwrap_or(0),
            Self::Not(part) => 1 + part.depth(),
            Self::Test(_) => 1,
        }
    }
}
