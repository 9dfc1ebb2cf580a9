//! How a table of keys becomes a type, its reader and its description.
//!
//! `section!` declares a mapping of the configuration: each key with its type, default and meaning.
//! `choice!` declares a value out of a few words. A key's *reader* ([`Setting`]) is its type, or what
//! stands after `as` where the same type is written in several ways (seconds, bytes, names).

mod collections;
mod describe;
mod leaf;
mod macros;
mod section;

pub(crate) use collections::{Headers, Lists, Policies, StateFolder, VariableOnly};
pub(crate) use describe::{Description, KeyDescription, Kind};
pub(crate) use leaf::{ClaimPath, DatabaseUrl, HttpUrl, Leaf, Literal, Seconds, Size, Whole, Writing};
pub(crate) use macros::{choice, section};
pub(crate) use section::{Keys, variable_name};

use std::path::Path;

use policy::yaml::{Problems, Value};

use crate::Environment;

/// Reads one kind of value.
pub(crate) trait Setting {
    /// What it becomes.
    type Value;

    /// Whether it must be written where there is no default.
    const REQUIRED: bool = false;

    /// Whether an environment variable can hold it.
    const FROM_TEXT: bool = false;

    /// What it looks like, for the descriptions.
    fn kind() -> Kind;

    /// Reads what stands in the file; problems are reported and give `None`.
    fn read(value: &Value, reading: &Reading<'_>) -> Option<Self::Value>;

    /// Reads a default or what stands in an environment variable; only called where [`Self::FROM_TEXT`].
    fn from_text(text: &str) -> Result<Self::Value, String>;

    /// What it is when nothing is written and there is no default; `None` when something must be.
    fn absent(reading: &Reading<'_>) -> Option<Self::Value>;
}

/// What every reader may need.
pub(crate) struct Reading<'r> {
    /// Problems of the file.
    pub(crate) problems: &'r Problems,
    /// Problems of environment variables.
    pub(crate) environment_problems: &'r Problems,
    /// The environment.
    pub(crate) environment: &'r Environment,
    /// The folder that relative paths of the file start from.
    pub(crate) folder: &'r Path,
    /// The lists that policies may name.
    pub(crate) lists: &'r policy::document::Lists,
    /// Whether `${VAR}` is expanded: only where upstreams are used.
    pub(crate) expands: bool,
    /// The way to the section being read, as in variable names; `None` within lists and maps.
    pub(crate) prefix: Option<String>,
}

impl<'r> Reading<'r> {
    /// The same, one level further in.
    pub(crate) fn within(&self, prefix: Option<String>) -> Reading<'r> {
        Reading { prefix, ..*self }
    }
}
