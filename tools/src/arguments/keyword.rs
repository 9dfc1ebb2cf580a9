//! What a compiled schema consists of.

use crate::decimal::Decimal;
use crate::json::Kind;

use super::pattern::Pattern;

/// The place of a compiled schema among all of them; 0 is the whole.
pub(super) type SchemaId = usize;

/// One thing that a value is asked for.
#[derive(Debug)]
pub(super) enum Keyword {
    /// Nothing is accepted.
    Never,
    Type(Types),
    /// Canonical JSON of each value, and what a message says about them.
    Enum {
        values: Vec<Vec<u8>>,
        shown: String,
    },
    Minimum(Bound),
    Maximum(Bound),
    MultipleOf(Decimal),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Pattern),
    Items {
        prefix: Vec<SchemaId>,
        rest: Option<SchemaId>,
    },
    Contains {
        schema: SchemaId,
        least: u64,
        most: Option<u64>,
    },
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Properties(Box<Properties>),
    PropertyNames(SchemaId),
    Required(Vec<Box<str>>),
    DependentRequired(Vec<(Box<str>, Vec<Box<str>>)>),
    DependentSchemas(Vec<(Box<str>, SchemaId)>),
    MinProperties(u64),
    MaxProperties(u64),
    AllOf(Vec<SchemaId>),
    AnyOf(Vec<SchemaId>),
    OneOf(Vec<SchemaId>),
    Not(SchemaId),
    If {
        test: SchemaId,
        then: Option<SchemaId>,
        otherwise: Option<SchemaId>,
    },
    Reference(SchemaId),
}

/// A bound of a number.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) limit: Decimal,
    pub(super) is_exclusive: bool,
}

/// What is asked of the members of an object.
#[derive(Debug, Default)]
pub(super) struct Properties {
    /// By name, sorted.
    pub(super) named: Vec<(Box<str>, SchemaId)>,
    pub(super) patterns: Vec<(Pattern, SchemaId)>,
    /// Of all others.
    pub(super) additional: Option<SchemaId>,
    /// Whether there may be no others.
    pub(super) is_closed: bool,
}

impl Properties {
    pub(super) fn named(&self, name: &str) -> Option<SchemaId> {
        let at = self
            .named
            .binary_search_by(|(known, _)| known.as_ref().cmp(name))
            .ok()?;
        self.named.get(at).map(|(_, schema)| *schema)
    }
}

/// The types of `type`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Types {
    bits: u8,
}

/// The words of `type`, each with its bit.
const TYPES: [(&str, u8); 7] = [
    ("null", 1),
    ("boolean", 2),
    ("number", 4),
    ("integer", 8),
    ("string", 16),
    ("array", 32),
    ("object", 64),
];

impl Types {
    /// Adds a type by its word; says whether there is one.
    pub(super) fn add(&mut self, word: &str) -> bool {
        let bit = TYPES.iter().find(|(known, _)| *known == word);
        self.bits |= bit.map_or(0, |(_, bit)| *bit);
        bit.is_some()
    }

    /// Whether a value of this kind is one of them; `is_integer` is about numbers.
    pub(super) fn has(self, kind: Kind, is_integer: impl FnOnce() -> bool) -> bool {
        let bit = match kind {
            Kind::Null => 1,
            Kind::Bool => 2,
            Kind::Number if self.bits & 4 != 0 => return true,
            Kind::Number => return self.bits & 8 != 0 && is_integer(),
            Kind::String => 16,
            Kind::Array => 32,
            Kind::Object => 64,
        };
        self.bits & bit != 0
    }

    /// The words, as in "integer or null".
    pub(super) fn words(self) -> String {
        let words: Vec<&str> = TYPES
            .iter()
            .filter(|(_, bit)| self.bits & bit != 0)
            .map(|(word, _)| *word)
            .collect();
        words.join(" or ")
    }
}
