//! The way to the value that a test looks at.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most steps of one path.
const MAX_STEPS: usize = 32;

/// What a test looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Field {
    /// `$agent`
    Agent,
    /// `$user`
    User,
    /// `$session`
    Session,
    /// A path into the arguments.
    Argument(Path),
}

/// A path into the arguments, split once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    text: Arc<str>,
    steps: Box<[Step]>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The member of an object.
    Key(Box<str>),
    /// `[n]`: one element of an array, from 0.
    Index(usize),
    /// `[*]`: some element satisfies the whole test.
    Some,
    /// `[every]`: every element does; false for an empty array.
    Every,
}

/// Why a text is no field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field \"{field}\" {reason}")]
pub struct FieldError {
    field: String,
    reason: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Path {
    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The steps from the arguments on. Not empty; the first is a key.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether some step is `[*]`.
    pub fn has_some(&self) -> bool {
        self.steps.contains(&Step::Some)
    }
}

impl Field {
    /// The field as it was written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent => "$agent",
            Self::User => "$user",
            Self::Session => "$session",
            Self::Argument(path) => &path.text,
        }
    }

    /// Whether some step is `[*]`.
    pub fn has_some(&self) -> bool {
        match self {
            Self::Argument(path) => path.has_some(),
            Self::Agent | Self::User | Self::Session => false,
        }
    }
}

fn parse_steps(text: &str) -> Result<Vec<Step>, String> {
    let inner = match text.strip_prefix("params.") {
        Some(rest) if !rest.is_empty() => rest,
        _ => text,
    };
    let mut steps = Vec::new();
    for segment in inner.split('.') {
        let (key, mut brackets) = match segment.find('[') {
            Some(at) => segment.split_at(at),
            None => (segment, ""),
        };
        if key.is_empty() {
            return Err("has an empty key; write keys separated by single dots".to_owned());
        }
        if key.contains(']') {
            return Err("has a ']' without its '['".to_owned());
        }
        steps.push(Step::Key(key.into()));
        while !brackets.is_empty() {
            let (inside, rest) = brackets
                .strip_prefix('[')
                .and_then(|rest| rest.split_once(']'))
                .ok_or("has brackets that do not close, or text behind them")?;
            steps.push(index(inside)?);
            brackets = rest;
        }
    }
    if steps.len() > MAX_STEPS {
        return Err(format!("has more than {MAX_STEPS} steps"));
    }
    Ok(steps)
}

fn index(inside: &str) -> Result<Step, String> {
    match inside {
        "*" => Ok(Step::Some),
        "every" => Ok(Step::Every),
        number if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => number
            .parse()
            .map(Step::Index)
            .map_err(|_| format!("has the index {number}, which is too large")),
        other => Err(format!("has [{other}]; an index is a number, * (some) or every")),
    }
}

impl std::str::FromStr for Field {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let refused = |reason: &str, hint: Option<String>| FieldError {
            field: text.to_owned(),
            reason: reason.to_owned(),
            hint,
        };
        match text {
            "" => Err(refused("is empty", None)),
            "$agent" => Ok(Self::Agent),
            "$user" => Ok(Self::User),
            "$session" => Ok(Self::Session),
            other if other.starts_with('$') => Err(refused(
                "is unknown",
                crate::nearest::hint(other, ["$agent", "$user", "$session"]),
            )),
            path => {
                let steps = parse_steps(path).map_err(|reason| refused(&reason, None))?;
                Ok(Self::Argument(Path {
                    text: Arc::from(path),
                    steps: steps.into(),
                }))
            }
        }
    }
}

impl TryFrom<String> for Field {
    type Error = FieldError;

    fn try_from(text: String) -> Result<Self, FieldError> {
        text.parse()
    }
}

impl From<Field> for String {
    fn from(field: Field) -> Self {
        field.as_str().to_owned()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}
