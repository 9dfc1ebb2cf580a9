//! JSON pointers, as references write them in a URI's fragment.

use std::borrow::Cow;

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
    for token in pointer.strip_prefix('/')?.split('/') {
        let token = decoded(token)?.replace("~1", "/").replace("~0", "~");
        at = match at.kind() {
            Kind::Object => at.get(&token)?,
            Kind::Array => at.elements().nth(token.parse().ok()?)?,
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => return None,
        };
    }
    Some(at)
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
