//! What a table says, as data.

use serde_json::Value as Json;

/// What a value looks like.
pub(crate) enum Kind {
    /// A single value: what to call it, and its JSON Schema.
    Leaf { phrase: String, schema: Json },
    /// A list.
    List(Box<Kind>),
    /// A mapping from free names.
    Map(Box<Kind>),
    /// A mapping with known keys.
    Section(Description),
}

impl Kind {
    /// What to call it: `a duration such as 4m30s`.
    pub(crate) fn phrase(&self) -> String {
        match self {
            Self::Leaf { phrase, .. } => phrase.clone(),
            Self::List(of) if matches!(**of, Self::Section(_)) => "list of mappings, see below".to_owned(),
            Self::List(of) => format!("list: {}", of.phrase()),
            Self::Map(of) => format!("mapping of names to: {}", of.phrase()),
            Self::Section(_) => "mapping, see below".to_owned(),
        }
    }
}

/// A section's table.
pub(crate) struct Description {
    pub(crate) about: &'static str,
    pub(crate) keys: Vec<KeyDescription>,
    pub(crate) planned: &'static [&'static str],
}

/// One row.
pub(crate) struct KeyDescription {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) default: Option<&'static str>,
    pub(crate) is_required: bool,
    /// Whether an environment variable may set it.
    pub(crate) has_variable: bool,
    pub(crate) kind: Kind,
}
