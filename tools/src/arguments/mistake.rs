//! What is wrong with arguments, in words that a model can act on.

use std::fmt;

use super::SchemaError;
use crate::json::{Kind, Node};

/// Mistakes that one message tells of.
const SHOWN: usize = 5;
/// The longest way to a value, and the longest name, that a message shows, in characters.
const MAX_TEXT: usize = 120;

/// Why arguments are not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// They do not fit the schema.
    #[error("{}", shown(.0))]
    Mistakes(Vec<Mistake>),
    /// They could not be checked within bounds.
    #[error(
        "the arguments are too deeply nested or too many to be checked against the tool's schema; send fewer or simpler ones"
    )]
    TooComplex,
    /// The tool's schema is not understood.
    #[error("the arguments cannot be checked: {0}")]
    Schema(SchemaError),
}

/// One value that is not as it should be. The value itself is never shown: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The way to it, as a JSON pointer; empty for the arguments as a whole.
    pub path: String,
    /// What was expected.
    pub expected: String,
    /// What kind of value was found; empty where the expectation says it all.
    pub found: String,
}

fn shown(mistakes: &[Mistake]) -> String {
    let mut texts: Vec<String> = mistakes.iter().take(SHOWN).map(ToString::to_string).collect();
    if mistakes.len() > SHOWN {
        texts.push("and more".to_owned());
    }
    texts.join("; ")
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str("the arguments: ")?;
        } else {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {}", self.expected)?;
        if self.found.is_empty() {
            Ok(())
        } else {
            write!(f, ", found {}", self.found)
        }
    }
}

/// The way to the value that is looked at.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    pub(super) const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root,
    };

    pub(super) fn key<'n>(&'n self, key: &'n str) -> Path<'n> {
        Path {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    pub(super) fn index(&'p self, index: usize) -> Path<'p> {
        Path {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    fn text(&self) -> String {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(path) = at {
            match path.step {
                Step::Root => {}
                Step::Key(key) => steps.push(cut(&key.replace('~', "~0").replace('/', "~1"))),
                Step::Index(index) => steps.push(index.to_string()),
            }
            at = path.parent;
        }
        let text: String = steps.iter().rev().flat_map(|step| ["/", step]).collect();
        cut(&text)
    }
}

/// What was found so far.
#[derive(Default)]
pub(super) struct Mistakes {
    found: Vec<Mistake>,
    count: usize,
    /// How many are kept; none: only whether there are any is asked.
    keeps: usize,
}

impl Mistakes {
    /// Keeps what a message can hold.
    pub(super) fn kept() -> Self {
        Self {
            keeps: SHOWN + 1,
            ..Self::default()
        }
    }

    /// Nothing more needs to be found out.
    pub(super) fn is_full(&self) -> bool {
        self.count > 0 && self.count >= self.keeps
    }

    pub(super) fn any(&self) -> bool {
        self.count > 0
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn into_vec(self) -> Vec<Mistake> {
        self.found
    }

    pub(super) fn add(
        &mut self,
        path: &Path<'_>,
        expected: impl FnOnce() -> String,
        value: Option<Node<'_>>,
    ) {
        self.push(path, expected, || value.map(described).unwrap_or_default());
    }

    /// A name that is not among those that are expected.
    pub(super) fn add_name(&mut self, path: &Path<'_>, expected: impl FnOnce() -> String) {
        self.push(path, expected, || "another name".to_owned());
    }

    fn push(&mut self, path: &Path<'_>, expected: impl FnOnce() -> String, found: impl FnOnce() -> String) {
        self.count += 1;
        if self.found.len() < self.keeps {
            self.found.push(Mistake {
                path: path.text(),
                expected: expected(),
                found: found(),
            });
        }
    }

    /// Takes over what another found.
    pub(super) fn take(&mut self, other: Self) {
        self.count += other.count;
        let room = self.keeps.saturating_sub(self.found.len());
        self.found.extend(other.found.into_iter().take(room));
    }
}

/// The kind of a value, and how much of it there is.
fn described(value: Node<'_>) -> String {
    match value.kind() {
        Kind::Null => "null".to_owned(),
        Kind::Bool => "a boolean".to_owned(),
        Kind::Number => "a number".to_owned(),
        Kind::String => {
            let length = value.as_str().map_or(0, |text| text.chars().count());
            format!("a string of {length} characters")
        }
        Kind::Array => format!("an array of {} items", value.len()),
        Kind::Object => "an object".to_owned(),
    }
}

/// The beginning of a text that may be long.
pub(super) fn cut(text: &str) -> String {
    let is_plain = |letter: &char| !letter.is_control();
    let mut shown: String = text.chars().filter(is_plain).take(MAX_TEXT).collect();
    if text.chars().count() > MAX_TEXT {
        shown.push('…');
    }
    shown
}
