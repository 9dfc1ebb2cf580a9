//! What is wrong in a document, where, and what to do about it.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::value::{Mark, Value};

/// One error in a document. Displays as `claude.yaml:14:18 operator "contain" is unknown; did you mean "contains"?`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file (or other source) as it was named to the reader.
    pub file: Arc<str>,
    /// Line, from 1; 0 when the problem has no place.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// The way to the value: `rules[2].condition.operator`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file)?;
        if self.line > 0 {
            write!(out, ":{}:{}", self.line, self.column)?;
        }
        write!(out, " {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(out, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

/// Collects the problems of one file, so that all of them are reported at once.
#[derive(Debug)]
pub struct Problems {
    file: Arc<str>,
    found: RefCell<Vec<Problem>>,
}

impl Problems {
    /// An empty collection for one file.
    pub fn new(file: &str) -> Self {
        Self {
            file: Arc::from(file),
            found: RefCell::new(Vec::new()),
        }
    }

    /// The file that problems are reported for.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Reports a problem at a value.
    pub fn at(&self, value: &Value, message: impl Into<String>) {
        self.add(value.mark(), value.path(), message.into(), None);
    }

    /// Reports a problem at a value, with a hint (none when there is nothing to advise).
    pub fn at_with_hint(&self, value: &Value, message: impl Into<String>, hint: impl Into<Option<String>>) {
        self.add(value.mark(), value.path(), message.into(), hint.into());
    }

    /// Reports a problem at a place.
    pub fn add(&self, mark: Mark, path: &str, message: String, hint: Option<String>) {
        self.found.borrow_mut().push(Problem {
            file: Arc::clone(&self.file),
            line: mark.line,
            column: mark.column,
            path: path.to_owned(),
            message,
            hint,
        });
    }

    /// How many problems were reported so far.
    pub fn len(&self) -> usize {
        self.found.borrow().len()
    }

    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// The problems in the order of the text.
    pub fn into_vec(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| (problem.line, problem.column));
        found
    }

    /// `Ok(value)` when nothing was reported and there is a value.
    pub fn into_result<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.is_empty() => Ok(value),
            _ => Err(self.into_vec()),
        }
    }

    /// The text of a value that must be a string; reports and gives `None` otherwise.
    pub fn string<'v>(&self, value: &'v Value) -> Option<&'v str> {
        let text = value.as_str();
        if text.is_none() {
            self.expected(value, "a string");
        }
        text
    }

    /// A value that must be `true` or `false`.
    pub fn boolean(&self, value: &Value) -> Option<bool> {
        let found = value.as_bool();
        if found.is_none() {
            self.expected(value, "true or false");
        }
        found
    }

    /// A value that must be a whole number from 0.
    pub fn unsigned(&self, value: &Value) -> Option<u64> {
        let found = value.as_u64();
        if found.is_none() {
            self.expected(value, "a whole number from 0");
        }
        found
    }

    /// The elements of a value that must be a list.
    pub fn sequence<'v>(&self, value: &'v Value) -> Option<&'v [Value]> {
        let found = value.as_seq();
        if found.is_none() {
            self.expected(value, "a list");
        }
        found
    }

    /// The strings of a value that must be a list of strings, or one string.
    pub fn strings<'v>(&self, value: &'v Value) -> Option<Vec<(&'v str, &'v Value)>> {
        if let Some(text) = value.as_str() {
            return Some(vec![(text, value)]);
        }
        let Some(elements) = value.as_seq() else {
            self.expected(value, "a string or a list of strings");
            return None;
        };
        let texts: Vec<_> = elements
            .iter()
            .filter_map(|element| Some((self.string(element)?, element)))
            .collect();
        (texts.len() == elements.len()).then_some(texts)
    }

    /// Reports that a value is not what was expected: `expected a list, found a string "x"`.
    pub fn expected(&self, value: &Value, wanted: &str) {
        let key = value.path().rsplit('.').next().unwrap_or_default();
        let name = if key.is_empty() {
            String::new()
        } else {
            format!("{key}: ")
        };
        self.at(
            value,
            format!("{name}expected {wanted}, found {}", value.describe()),
        );
    }
}
