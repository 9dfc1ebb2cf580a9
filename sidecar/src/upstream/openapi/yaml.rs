//! Documents in YAML, as JSON.

use policy::yaml::{self, Node, Value};

/// The JSON text of a document that is JSON or YAML.
///
/// Numbers keep their digits, keys stay in order. The first thing that JSON cannot say is told with its place.
pub(super) fn as_json(name: &str, text: Vec<u8>) -> Result<Vec<u8>, String> {
    let start = text.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = text.starts_with(b"\xef\xbb\xbf{") || start == Some(&b'{');
    if is_json && serde_json::from_slice::<serde::de::IgnoredAny>(without_mark(&text)).is_ok() {
        return Ok(if text.starts_with(b"\xef\xbb\xbf") {
            without_mark(&text).to_vec()
        } else {
            text
        });
    }
    let text = std::str::from_utf8(&text).map_err(|_| "the document is not UTF-8 text".to_owned())?;
    let documents = yaml::load(name, text).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        format!("the document is neither JSON nor YAML that can be read: {first}")
    })?;
    let document = documents
        .first()
        .ok_or_else(|| "the document is empty".to_owned())?;
    let mut out = String::with_capacity(text.len());
    write(document, &mut out)?;
    Ok(out.into_bytes())
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

fn write(value: &Value, out: &mut String) -> Result<(), String> {
    match value.node() {
        Node::Null => out.push_str("null"),
        Node::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Node::Number(text) => out.push_str(text),
        Node::NotFinite(text) => {
            return Err(format!(
                "line {}: {text} is no number that JSON has",
                value.line()
            ));
        }
        Node::String(text) => out.push_str(&quoted(text)),
        Node::Seq(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                // INVARIANT: the reader bounds the nesting.
                write(element, out)?;
            }
            out.push(']');
        }
        Node::Map(map) => {
            out.push('{');
            for (at, entry) in map.entries().iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(&entry.key));
                out.push(':');
                write(&entry.value, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
