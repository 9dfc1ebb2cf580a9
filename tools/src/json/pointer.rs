//! JSON pointers, as references write them in a URI's fragment.

use std::borrow::Cow;
use std::collections::HashMap;

use super::Node;
use super::node::Kind;

/// What a pointer (RFC 6901), percent-encoded as in a fragment, leads to.
///
/// ```
/// use tools::json::{Document, Limits, pointed};
/// let document = Document::parse(br#"{"a/b": {"c d": [1, 2]}}"#, Limits::ARGUMENTS).unwrap();
/// assert_eq!(pointed(document.root(), "/a~1b/c%20d/1").unwrap().raw(), b"2");
/// ```
pub fn pointed<'d>(root: Node<'d>, pointer: &str) -> Option<Node<'d>> {
    if pointer.is_empty() {
        return Some(root);
    }
    let mut at = root;
    for step in pointer.strip_prefix('/')?.split('/') {
        let token = token(step)?;
        at = match at.kind() {
            Kind::Object => at.get(&token)?,
            Kind::Array => at.elements().nth(token.parse().ok()?)?,
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => return None,
        };
    }
    Some(at)
}

/// What many pointers into one document lead to: objects are searched once, however many members they have.
#[derive(Debug)]
pub(crate) struct Pointers<'d> {
    root: Node<'d>,
    /// The members of the objects that hold what was asked for, by the objects' pointers.
    members: HashMap<String, HashMap<String, Node<'d>>>,
}

impl<'d> Pointers<'d> {
    pub(crate) fn new(root: Node<'d>) -> Self {
        Self {
            root,
            members: HashMap::new(),
        }
    }

    /// As [`pointed`].
    pub(crate) fn find(&mut self, pointer: &str) -> Option<Node<'d>> {
        let Some((parent, last)) = pointer.rsplit_once('/') else {
            return pointed(self.root, pointer);
        };
        if let Some(members) = self.members.get(parent) {
            return members.get(&token(last)?).copied();
        }
        let holder = pointed(self.root, parent)?;
        if holder.kind() != Kind::Object {
            return pointed(holder, &format!("/{last}"));
        }
        let members: HashMap<String, Node<'d>> = holder
            .members()
            .map(|(name, value)| (name.into_owned(), value))
            .collect();
        let found = members.get(&token(last)?).copied();
        self.members.insert(parent.to_owned(), members);
        found
    }
}

/// One step of a pointer, decoded.
fn token(text: &str) -> Option<String> {
    Some(decoded(text)?.replace("~1", "/").replace("~0", "~"))
}

/// A percent-encoded text; none when it is malformed or not UTF-8.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
