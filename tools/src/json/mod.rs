//! JSON as it came: one pass over raw bytes into a tape, with one reading or none.
//!
//! A message is refused when two readers could understand it differently: invalid UTF-8, duplicate keys (compared
//! after unescaping), lone surrogates, nesting beyond a limit. What is accepted keeps its exact bytes, so that what
//! was decided is byte for byte what is forwarded.

mod canonical;
mod node;
mod parse;
mod pointer;
mod text;

#[cfg(test)]
mod tests;

pub use canonical::{canonical, canonical_into, canonical_string_into};
pub use node::{Elements, Kind, Members, Node};
pub(crate) use pointer::Pointers;
pub use pointer::pointed;

use node::Entry;

/// Nesting that no limit can exceed: walks of a document recurse at most this deep.
pub const MAX_DEPTH: usize = 256;
/// Bytes that no limit can exceed.
pub const MAX_BYTES: usize = (1 << 28) - 1;

/// What a document may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes; at most [`MAX_BYTES`] whatever is given.
    pub max_bytes: usize,
    /// Arrays and objects inside each other; at most [`MAX_DEPTH`] whatever is given.
    pub max_depth: usize,
}

impl Limits {
    /// Limits for the arguments of a call: 4 MiB, 64 deep.
    pub const ARGUMENTS: Self = Self {
        max_bytes: 4 << 20,
        max_depth: 64,
    };
    /// Limits for a whole message: 16 MiB, 64 deep.
    pub const MESSAGE: Self = Self {
        max_bytes: 16 << 20,
        max_depth: 64,
    };
}

/// Why bytes are not an acceptable document, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    /// Byte position of the problem.
    pub offset: usize,
    /// The problem.
    pub kind: JsonErrorKind,
}

/// The kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// More bytes than allowed.
    #[error("the message is larger than {limit} bytes")]
    TooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// Arrays and objects nest deeper than allowed.
    #[error("nesting is deeper than {limit}")]
    TooDeep {
        /// Levels allowed.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// An object has the same key twice.
    #[error("duplicate key")]
    DuplicateKey,
    /// An escape names half of a surrogate pair.
    #[error("lone surrogate in an escape")]
    LoneSurrogate,
    /// A number's exponent has too many digits.
    #[error("number with an exponent out of range")]
    Exponent,
    /// The bytes end before the document does.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// The grammar asks for something else here.
    #[error("malformed JSON")]
    Syntax,
}

/// A parsed document: its text, and a tape of where each value begins and ends (8 bytes per value).
///
/// ```
/// use tools::json::{Document, Limits};
/// let document = Document::parse(br#"{"amount": 1e2}"#, Limits::ARGUMENTS).unwrap();
/// let amount = document.root().get("amount").unwrap();
/// assert_eq!(amount.raw(), b"1e2");
/// assert_eq!(amount.number().unwrap().to_string(), "100");
/// ```
#[derive(Debug, Clone)]
pub struct Document<'a> {
    text: &'a str,
    tape: Vec<Entry>,
}

impl<'a> Document<'a> {
    /// Parses one JSON value, with nothing but white space around it.
    ///
    /// # Errors
    /// With the first problem found. Never panics, never recurses, and takes linear time whatever the bytes are.
    pub fn parse(bytes: &'a [u8], limits: Limits) -> Result<Self, JsonError> {
        parse::parse(bytes, limits).map(|(text, tape)| Self { text, tape })
    }

    /// The document's value.
    pub fn root(&self) -> Node<'_> {
        Node::new(self.text, &self.tape, 0)
    }

    /// The document's text, as it came.
    pub fn text(&self) -> &'a str {
        self.text
    }
}
