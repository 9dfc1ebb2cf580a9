//! Regular expressions that run in linear time and bounded space.

use std::fmt;
use std::sync::Arc;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde::{Deserialize, Serialize};

/// The longest expression, in bytes.
const MAX_LENGTH: usize = 4096;
/// The largest compiled expression, in bytes.
const MAX_COMPILED: usize = 512 << 10;
/// The longest text that is searched, in bytes; a longer one leaves the test undecided.
pub const MAX_INPUT: usize = 64 << 10;

/// A compiled regular expression. It is searched for anywhere in the text; `^` and `$` anchor it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    text: Arc<str>,
    regex: Regex,
}

/// Why a text is no usable expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the regular expression \"{pattern}\" cannot be used: {reason}")]
pub struct PatternError {
    pattern: String,
    reason: String,
}

impl Pattern {
    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the expression is found in a text; `None` when the text is over [`MAX_INPUT`].
    pub fn is_found_in(&self, text: &str) -> Option<bool> {
        (text.len() <= MAX_INPUT).then(|| self.regex.is_match(text))
    }
}

impl std::str::FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let refused = |reason: String| {
            let pattern: String = text.chars().take(80).collect();
            PatternError { pattern, reason }
        };
        if text.len() > MAX_LENGTH {
            return Err(refused(format!(
                "it has {} bytes; at most {MAX_LENGTH} are read",
                text.len()
            )));
        }
        let config = Regex::config()
            .nfa_size_limit(Some(MAX_COMPILED))
            .onepass_size_limit(Some(MAX_COMPILED / 2))
            .hybrid_cache_capacity(MAX_COMPILED);
        let regex = Regex::builder()
            .configure(config)
            .syntax(syntax::Config::new().nest_limit(64))
            .build(text)
            .map_err(|error| match error.syntax_error() {
                Some(syntax) => refused(last_line(&syntax.to_string())),
                None => refused(error.to_string()),
            })?;
        Ok(Self {
            text: Arc::from(text),
            regex,
        })
    }
}

/// The last line of a syntax error, which says what is wrong (the others draw the place).
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text.as_ref().to_owned()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "/{}/", self.text)
    }
}
