//! Patterns: `*` is any characters, dots included; `?` is one character.

mod covers;
mod intersect;
mod tool;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use tool::ToolGlob;

/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 1024;

/// A pattern over names.
///
/// ```
/// let glob: policy::glob::Glob = "support-*".parse().unwrap();
/// assert!(glob.matches("support-7"));
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob {
    text: Arc<str>,
    shape: Shape,
}

/// How a pattern is matched; the common shapes need no walk.
#[derive(Debug, Clone)]
enum Shape {
    Any,
    Exact,
    Prefix(Box<str>),
    Suffix(Box<str>),
    Contains(Box<str>),
    General(Box<[Piece]>),
}

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// `*`
    Any,
    /// `?`
    One,
    /// Characters that stand for themselves.
    Text(Box<str>),
}

/// Why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// Nothing was written.
    #[error("the pattern is empty; write \"*\" for everything")]
    Empty,
    /// A character of richer pattern languages.
    #[error(
        "the pattern \"{pattern}\" has a '{character}'; patterns know only * and ?, list alternatives one by one"
    )]
    Unsupported {
        /// The pattern.
        pattern: String,
        /// The refused character.
        character: char,
    },
    /// More than [`MAX_PATTERN`] bytes.
    #[error("the pattern has {0} bytes; at most {MAX_PATTERN} are read")]
    TooLong(usize),
}

/// How closely a pattern names one thing; the greater is the more specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Specificity {
    exact: bool,
    literal: usize,
    wildcards: std::cmp::Reverse<usize>,
}

impl Glob {
    /// The pattern `*`.
    pub fn any() -> Self {
        Self {
            text: Arc::from("*"),
            shape: Shape::Any,
        }
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern is exactly `*`.
    pub fn is_any(&self) -> bool {
        &*self.text == "*"
    }

    /// The one text that the pattern matches, when it has no wildcards.
    pub fn literal(&self) -> Option<&str> {
        matches!(self.shape, Shape::Exact).then_some(&*self.text)
    }

    /// Whether the pattern covers a text as a whole.
    pub fn matches(&self, text: &str) -> bool {
        match &self.shape {
            Shape::Any => true,
            Shape::Exact => *self.text == *text,
            Shape::Prefix(prefix) => text.starts_with(&**prefix),
            Shape::Suffix(suffix) => text.ends_with(&**suffix),
            Shape::Contains(part) => text.contains(&**part),
            Shape::General(pieces) => walk(pieces, text),
        }
    }

    /// Whether there is a text that both patterns match.
    pub fn intersects(&self, other: &Glob) -> bool {
        match (self.literal(), other.literal()) {
            (Some(text), _) => other.matches(text),
            (None, Some(text)) => self.matches(text),
            (None, None) => intersect::intersects(&self.pieces(), &other.pieces()),
        }
    }

    /// How closely the pattern names one thing: an exact name, then more literal characters, then fewer wildcards.
    pub fn specificity(&self) -> Specificity {
        let pieces = self.pieces();
        let literal = pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.chars().count(),
                Piece::Any | Piece::One => 0,
            })
            .sum();
        let wildcards = pieces
            .iter()
            .filter(|piece| !matches!(piece, Piece::Text(_)))
            .count();
        Specificity {
            exact: wildcards == 0,
            literal,
            wildcards: std::cmp::Reverse(wildcards),
        }
    }

    /// The characters before the first wildcard.
    pub fn literal_prefix(&self) -> &str {
        self.text.split(['*', '?']).next().unwrap_or_default()
    }

    /// The characters after the last wildcard.
    pub fn literal_suffix(&self) -> &str {
        self.text.rsplit(['*', '?']).next().unwrap_or_default()
    }

    fn pieces(&self) -> Vec<Piece> {
        split(&self.text)
    }
}

fn split(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut literal = String::new();
    for character in text.chars() {
        let wildcard = match character {
            '*' => Piece::Any,
            '?' => Piece::One,
            other => {
                literal.push(other);
                continue;
            }
        };
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
        }
        if wildcard == Piece::One || pieces.last() != Some(&Piece::Any) {
            pieces.push(wildcard);
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal.into()));
    }
    pieces
}

impl Shape {
    fn of(pieces: Vec<Piece>) -> Self {
        match pieces.as_slice() {
            [Piece::Any] => Self::Any,
            [Piece::Text(_)] => Self::Exact,
            [Piece::Text(prefix), Piece::Any] => Self::Prefix(prefix.clone()),
            [Piece::Any, Piece::Text(suffix)] => Self::Suffix(suffix.clone()),
            [Piece::Any, Piece::Text(part), Piece::Any] => Self::Contains(part.clone()),
            _ => Self::General(pieces.into()),
        }
    }
}

/// Matches piece by piece; a mismatch goes back to the last `*`, so the work is at most pattern times text.
fn walk(pieces: &[Piece], text: &str) -> bool {
    let mut rest = text;
    let mut remaining = pieces;
    let mut retry: Option<(&[Piece], &str)> = None;
    loop {
        let advanced = match remaining.split_first() {
            None if rest.is_empty() => return true,
            None => None,
            Some((Piece::Any, after)) => {
                retry = Some((after, rest));
                Some((after, rest))
            }
            Some((Piece::One, after)) => {
                let mut characters = rest.chars();
                characters.next().map(|_| (after, characters.as_str()))
            }
            Some((Piece::Text(literal), after)) => rest.strip_prefix(&**literal).map(|tail| (after, tail)),
        };
        if let Some((after, tail)) = advanced {
            (remaining, rest) = (after, tail);
            continue;
        }
        let Some((after, from)) = retry else { return false };
        let mut characters = from.chars();
        if characters.next().is_none() {
            return false;
        }
        retry = Some((after, characters.as_str()));
        (remaining, rest) = (after, characters.as_str());
    }
}

impl std::str::FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        if text.len() > MAX_PATTERN {
            return Err(GlobError::TooLong(text.len()));
        }
        if let Some(character) = text
            .chars()
            .find(|character| matches!(character, '[' | '{' | '\\'))
        {
            return Err(GlobError::Unsupported {
                pattern: text.to_owned(),
                character,
            });
        }
        Ok(Self {
            text: Arc::from(text),
            shape: Shape::of(split(text)),
        })
    }
}

impl TryFrom<String> for Glob {
    type Error = GlobError;

    fn try_from(text: String) -> Result<Self, GlobError> {
        text.parse()
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.text.as_ref().to_owned()
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

/// A pattern is looked up by its text.
impl std::borrow::Borrow<str> for Glob {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl std::hash::Hash for Glob {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", &*self.text)
    }
}

#[cfg(test)]
mod tests;
