//! Whether a call's arguments fit the input schema of its tool, and what to say to a model when they do not.
//!
//! Schemas are JSON Schema 2020-12 without the keywords that depend on what other keywords have looked at
//! (`unevaluated…`, `$dynamicRef`): a schema with one of those is refused, not half understood. Numbers are compared
//! exactly, expressions run in linear time, and one check takes a bounded number of steps whatever schema and
//! arguments are.

mod check;
mod compile;
mod keyword;
mod mistake;
mod pattern;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use keyword::Keyword;
pub use mistake::{ArgumentError, Mistake};

use crate::json::{Document, JsonError, Limits, Node};

/// The largest schema, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 1 << 20;

/// A compiled input schema.
#[derive(Debug)]
pub struct ArgumentCheck {
    schemas: Vec<Vec<Keyword>>,
}

/// Why a schema cannot be used to check arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is not acceptable JSON.
    #[error("the schema cannot be read: {0}")]
    Json(#[from] JsonError),
    /// It is too large.
    #[error("the schema is larger than {limit} {what}")]
    TooLarge {
        /// The bound.
        limit: usize,
        /// What is counted.
        what: &'static str,
    },
    /// A keyword has a value that it cannot have.
    #[error("the schema's keyword {keyword:?} has a value that it cannot have: {value}")]
    Value {
        /// The keyword.
        keyword: String,
        /// The beginning of its value.
        value: String,
    },
    /// A keyword that is not understood changes what the schema accepts.
    #[error("the schema's keyword {keyword:?} is not supported")]
    Unsupported {
        /// The keyword.
        keyword: String,
    },
    /// A reference leads nowhere, or out of the schema.
    #[error("the schema's reference {reference:?} leads to no schema within it")]
    Reference {
        /// The reference.
        reference: String,
    },
    /// An expression cannot be matched in linear time and bounded space.
    #[error("the schema's pattern {pattern:?} cannot be used: {problem}")]
    Pattern {
        /// The beginning of the expression.
        pattern: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl ArgumentCheck {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When any part of it is not understood.
    pub fn compile(schema: &str) -> Result<Self, SchemaError> {
        let limits = Limits {
            max_bytes: MAX_SCHEMA_BYTES,
            ..Limits::MESSAGE
        };
        let document = Document::parse(schema.as_bytes(), limits)?;
        Self::of(document.root())
    }

    /// Compiles a schema that stands within a document.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn of(schema: Node<'_>) -> Result<Self, SchemaError> {
        Ok(Self {
            schemas: compile::compile(schema)?,
        })
    }

    /// Checks arguments; absent ones count as an empty object.
    ///
    /// # Errors
    /// With what is wrong, as far as it fits into a message.
    pub fn check(&self, arguments: Option<Node<'_>>) -> Result<(), ArgumentError> {
        match arguments {
            Some(arguments) => check::check(&self.schemas, arguments),
            None => match Document::parse(b"{}", Limits::ARGUMENTS) {
                Ok(empty) => check::check(&self.schemas, empty.root()),
                Err(_) => Err(ArgumentError::TooComplex),
            },
        }
    }
}

/// Whether an expression can be matched in linear time and bounded space.
#[must_use]
pub fn is_usable_pattern(pattern: &str) -> bool {
    pattern::Pattern::compile(pattern).is_ok()
}

/// The check of a tool's arguments, compiled when the first call comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct LazyCheck {
    compiled: Arc<OnceLock<Result<ArgumentCheck, SchemaError>>>,
}

impl LazyCheck {
    pub(crate) fn check(&self, schema: &str, arguments: Option<Node<'_>>) -> Result<(), ArgumentError> {
        match self.compiled.get_or_init(|| ArgumentCheck::compile(schema)) {
            Ok(check) => check.check(arguments),
            Err(error) => Err(ArgumentError::Schema(error.clone())),
        }
    }
}
