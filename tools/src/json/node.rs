//! The tape's entries, and the view of one value.

use std::borrow::Cow;
use std::fmt;

use super::text::unescape;
use crate::decimal::{Decimal, scan};

const START_BITS: u32 = 28;
const START_MASK: u32 = (1 << START_BITS) - 1;
const ESCAPED: u32 = 1 << START_BITS;
const KIND_SHIFT: u32 = 29;

/// One entry of the tape.
///
/// A scalar has one: where it begins, and where it ends. An array or object has two: the first holds where it
/// begins and the index of the second, which holds where it ends and how many elements or members it has.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Kind in the upper 3 bits, then the escape flag, then the position.
    head: u32,
    value: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Tag {
    Null = 0,
    Bool = 1,
    Number = 2,
    String = 3,
    Array = 4,
    Object = 5,
    Close = 6,
}

impl Entry {
    /// INVARIANT: `start` is at most [`super::MAX_BYTES`].
    pub(super) fn new(tag: Tag, start: usize, value: usize) -> Self {
        Self {
            head: ((tag as u32) << KIND_SHIFT) | (narrow(start) & START_MASK),
            value: narrow(value),
        }
    }

    pub(super) fn with_escapes(self, escaped: bool) -> Self {
        let flag = if escaped { ESCAPED } else { 0 };
        Self {
            head: self.head | flag,
            ..self
        }
    }

    pub(super) fn start(self) -> usize {
        (self.head & START_MASK) as usize
    }

    pub(super) fn value(self) -> usize {
        self.value as usize
    }

    pub(super) fn escaped(self) -> bool {
        self.head & ESCAPED != 0
    }

    fn tag(self) -> Tag {
        match self.head >> KIND_SHIFT {
            0 => Tag::Null,
            1 => Tag::Bool,
            2 => Tag::Number,
            3 => Tag::String,
            4 => Tag::Array,
            5 => Tag::Object,
            _ => Tag::Close,
        }
    }

    fn is_container(self) -> bool {
        matches!(self.tag(), Tag::Array | Tag::Object)
    }

    /// The inside of a string or key, escapes as written.
    pub(super) fn inside(self, text: &str) -> &str {
        text.get(self.start() + 1..self.value().saturating_sub(1))
            .unwrap_or_default()
    }

    /// A string's value.
    pub(super) fn string(self, text: &str) -> Cow<'_, str> {
        if self.escaped() {
            unescape(self.inside(text))
        } else {
            Cow::Borrowed(self.inside(text))
        }
    }

    /// Whether a string's value is `other`, without building it when nothing is escaped.
    pub(super) fn string_is(self, text: &str, other: &str) -> bool {
        if self.escaped() {
            unescape(self.inside(text)) == other
        } else {
            self.inside(text) == other
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.head >> KIND_SHIFT, self.start(), self.value)
    }
}

fn narrow(value: usize) -> u32 {
    // INVARIANT: positions and tape indices of a document within MAX_BYTES fit.
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number
    Number,
    /// A string
    String,
    /// An array
    Array,
    /// An object
    Object,
}

impl Kind {
    /// The kind's name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// One value of a document. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Node<'d> {
    text: &'d str,
    tape: &'d [Entry],
    index: usize,
}

impl<'d> Node<'d> {
    pub(super) fn new(text: &'d str, tape: &'d [Entry], index: usize) -> Self {
        Self { text, tape, index }
    }

    fn entry(self) -> Entry {
        // INVARIANT: nodes are made for indices of the tape only.
        self.tape
            .get(self.index)
            .copied()
            .unwrap_or(Entry::new(Tag::Null, 0, 0))
    }

    /// What kind of value this is.
    pub fn kind(self) -> Kind {
        match self.entry().tag() {
            Tag::Null | Tag::Close => Kind::Null,
            Tag::Bool => Kind::Bool,
            Tag::Number => Kind::Number,
            Tag::String => Kind::String,
            Tag::Array => Kind::Array,
            Tag::Object => Kind::Object,
        }
    }

    /// The value's exact source text.
    pub fn raw_str(self) -> &'d str {
        let entry = self.entry();
        let end = if entry.is_container() {
            self.tape.get(entry.value()).map_or(0, |close| close.start())
        } else {
            entry.value()
        };
        self.text.get(entry.start()..end).unwrap_or_default()
    }

    /// The value's exact source bytes.
    pub fn raw(self) -> &'d [u8] {
        self.raw_str().as_bytes()
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The value of a boolean.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.raw() == b"true")
    }

    /// The value of a string, unescaped.
    pub fn as_str(self) -> Option<Cow<'d, str>> {
        (self.kind() == Kind::String).then(|| self.entry().string(self.text))
    }

    /// The exact value of a number.
    pub fn number(self) -> Option<Decimal> {
        let text = self.number_text()?;
        scan(text.as_bytes())
            .ok()
            .map(|parts| Decimal::from_parts(&parts))
    }

    /// The text of a number, as it came.
    pub fn number_text(self) -> Option<&'d str> {
        (self.kind() == Kind::Number).then(|| self.raw_str())
    }

    /// How many elements or members an array or object has; 0 for anything else.
    pub fn len(self) -> usize {
        let entry = self.entry();
        if !entry.is_container() {
            return 0;
        }
        self.tape.get(entry.value()).map_or(0, |close| close.value())
    }

    /// Whether this has no elements or members.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The member of an object with this key (compared after unescaping).
    pub fn get(self, key: &str) -> Option<Node<'d>> {
        let mut members = self.members();
        while let Some((name, value)) = members.step() {
            if name.string_is(self.text, key) {
                return Some(value);
            }
        }
        None
    }

    /// The members of an object, in source order; none for anything else.
    pub fn members(self) -> Members<'d> {
        let is_object = self.kind() == Kind::Object;
        Members {
            inner: self.children(is_object),
        }
    }

    /// The elements of an array, in source order; none for anything else.
    pub fn elements(self) -> Elements<'d> {
        let is_array = self.kind() == Kind::Array;
        Elements {
            inner: self.children(is_array),
        }
    }

    fn children(self, present: bool) -> Children<'d> {
        Children {
            text: self.text,
            tape: self.tape,
            next: self.index + 1,
            end: if present { self.entry().value() } else { 0 },
        }
    }

    /// Whether this is a string in whose source nothing is escaped.
    pub(super) fn is_plain_string(self) -> bool {
        self.kind() == Kind::String && !self.entry().escaped()
    }
}

impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.raw_str())
    }
}

#[derive(Debug, Clone)]
struct Children<'d> {
    text: &'d str,
    tape: &'d [Entry],
    next: usize,
    end: usize,
}

impl<'d> Children<'d> {
    fn key(&mut self) -> Option<Entry> {
        if self.next >= self.end {
            return None;
        }
        let key = self.tape.get(self.next).copied()?;
        self.next += 1;
        Some(key)
    }

    fn node(&mut self) -> Option<Node<'d>> {
        if self.next >= self.end {
            return None;
        }
        let node = Node::new(self.text, self.tape, self.next);
        let entry = node.entry();
        self.next = if entry.is_container() {
            entry.value() + 1
        } else {
            self.next + 1
        };
        Some(node)
    }
}

/// The members of an object.
#[derive(Debug, Clone)]
pub struct Members<'d> {
    inner: Children<'d>,
}

impl<'d> Members<'d> {
    fn step(&mut self) -> Option<(Entry, Node<'d>)> {
        Some((self.inner.key()?, self.inner.node()?))
    }
}

impl<'d> Iterator for Members<'d> {
    type Item = (Cow<'d, str>, Node<'d>);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.inner.text;
        self.step().map(|(key, value)| (key.string(text), value))
    }
}

/// The elements of an array.
#[derive(Debug, Clone)]
pub struct Elements<'d> {
    inner: Children<'d>,
}

impl<'d> Iterator for Elements<'d> {
    type Item = Node<'d>;

    fn next(&mut self) -> Option<Node<'d>> {
        self.inner.node()
    }
}
