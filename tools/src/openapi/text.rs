//! Small helpers around text and JSON that is written.

use crate::json::Node;

/// The beginning of a text, at most so many characters.
pub(super) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The text of a member; empty ones do not count.
pub(super) fn text_of(node: Node<'_>, key: &str) -> Option<String> {
    let text = node.get(key)?.as_str()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether a member is `true`.
pub(super) fn is_true(node: Node<'_>, key: &str) -> bool {
    node.get(key).and_then(Node::as_bool) == Some(true)
}

/// A JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// An object that is written member by member.
pub(super) struct ObjectWriter<'o> {
    pub(super) out: &'o mut String,
    is_empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub(super) fn begin(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Begins a member; its value is written next.
    pub(super) fn key(&mut self, key: &str) -> &mut String {
        if !self.is_empty {
            self.out.push(',');
        }
        self.is_empty = false;
        self.out.push_str(&quoted(key));
        self.out.push(':');
        self.out
    }

    /// A member whose value is a text.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        let text = quoted(text);
        self.key(key).push_str(&text);
    }

    /// A member whose value is JSON already.
    pub(super) fn raw(&mut self, key: &str, json: &str) {
        self.key(key).push_str(json);
    }

    pub(super) fn end(self) {
        self.out.push('}');
    }
}

/// A list of texts as JSON.
pub(super) fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let quoted: Vec<String> = texts.into_iter().map(quoted).collect();
    format!("[{}]", quoted.join(","))
}
