//! The tree that a YAML text becomes.

use std::sync::Arc;

/// A place in a text; both count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A scalar without quotes; a value that is not written at all is one too.
    Plain,
    /// A scalar in single or double quotes.
    Quoted,
    /// A scalar of whole lines, behind `|` or `>`. It ends where the text after it starts, or its line does.
    Lines,
    /// A list or mapping by indentation. It ends where what it holds ends.
    Block,
    /// A list or mapping in brackets.
    Flow,
    /// `*name`: what is inside stands elsewhere.
    Alias,
}

/// Where a value ends, and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Behind its last character; says nothing for [`Style::Block`].
    pub end: Mark,
    /// How it is written.
    pub style: Style,
    /// Whether it has an anchor or a tag.
    pub is_decorated: bool,
}

/// A value with its place and the way to it.
#[derive(Debug, Clone)]
pub struct Value {
    pub(super) node: Node,
    pub(super) mark: Mark,
    pub(super) layout: Layout,
    pub(super) path: Arc<str>,
}

/// What a value is.
#[derive(Debug, Clone)]
pub enum Node {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number, as the text of a JSON number.
    Number(String),
    /// `.nan`, `.inf` or `-.inf`, as written.
    NotFinite(String),
    /// A string.
    String(String),
    /// A list.
    Seq(Vec<Value>),
    /// A mapping.
    Map(Map),
}

/// The kind of a value, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it; `Node` describes them")]
pub enum Kind {
    Null,
    Bool,
    Number,
    NotFinite,
    String,
    Seq,
    Map,
}

/// A mapping, in the order of the text; keys are unique.
#[derive(Debug, Clone, Default)]
pub struct Map {
    pub(super) entries: Vec<Entry>,
}

/// One key with its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub mark: Mark,
    /// What it maps to.
    pub value: Value,
}

impl Map {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.value)
    }

    /// The entries in the order of the text.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Value {
    /// Where the value starts.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Where the value ends, and how it is written.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The line on which the value starts, from 1.
    pub fn line(&self) -> u32 {
        self.mark.line
    }

    /// The way from the document to this value (`rules[2].action`); empty for the document itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the value is.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        match &self.node {
            Node::Null => Kind::Null,
            Node::Bool(_) => Kind::Bool,
            Node::Number(_) => Kind::Number,
            Node::NotFinite(_) => Kind::NotFinite,
            Node::String(_) => Kind::String,
            Node::Seq(_) => Kind::Seq,
            Node::Map(_) => Kind::Map,
        }
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.node {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// A boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.node {
            Node::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text of a number, as JSON would write it.
    pub fn as_number(&self) -> Option<&str> {
        match &self.node {
            Node::Number(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number from 0.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.parse().ok()
    }

    /// A whole number.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_number()?.parse().ok()
    }

    /// A number as a binary floating point value; not for policy values, which compare exactly.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.parse().ok()
    }

    /// The elements of a list.
    pub fn as_seq(&self) -> Option<&[Value]> {
        match &self.node {
            Node::Seq(elements) => Some(elements),
            _ => None,
        }
    }

    /// The entries of a mapping.
    pub fn as_map(&self) -> Option<&Map> {
        match &self.node {
            Node::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The value of a key, when this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// A short description for messages; long texts are cut.
    pub fn describe(&self) -> String {
        match &self.node {
            Node::Null => "nothing".to_owned(),
            Node::Bool(value) => value.to_string(),
            Node::Number(text) | Node::NotFinite(text) => format!("the number {}", cut(text)),
            Node::String(text) => format!("the string \"{}\"", cut(text)),
            Node::Seq(_) => "a list".to_owned(),
            Node::Map(_) => "a mapping".to_owned(),
        }
    }
}

fn cut(text: &str) -> String {
    const SHOWN: usize = 40;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN).collect();
    format!("{head}…")
}
