//! Arguments that a modern upstream wants mirrored into headers (`x-mcp-header`), and how values get into headers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::upstream::mcp::scan;

const ANNOTATION: &str = "x-mcp-header";
/// Keywords whose values are data, not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The mirrored arguments of each tool that has some.
pub(in super::super) type Mirrors = HashMap<Arc<str>, Vec<Mirror>>;

/// One argument that is mirrored into a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Mirror {
    path: Vec<String>,
    header: HeaderName,
}

/// The mirrored arguments that an input schema asks for.
///
/// # Errors
/// What makes the annotations invalid; such a tool must not be offered.
pub(in super::super) fn mirrors(input_schema: &str) -> Result<Vec<Mirror>, String> {
    if !input_schema.contains(ANNOTATION) {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(input_schema).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    walk(&schema, Some(&mut Vec::new()), &mut found)?;
    let mut names = HashSet::new();
    match found.iter().find(|mirror| !names.insert(&mirror.header)) {
        Some(twice) => Err(format!("header {:?} is asked for twice", twice.header)),
        None => Ok(found),
    }
}

/// `path` is the chain of `properties` keys that leads here; none where the way here was another one.
fn walk(schema: &Value, mut path: Option<&mut Vec<String>>, found: &mut Vec<Mirror>) -> Result<(), String> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(elements) => return elements.iter().try_for_each(|element| walk(element, None, found)),
        _ => return Ok(()),
    };
    if let Some(annotation) = members.get(ANNOTATION) {
        let path = path.as_deref().filter(|path| !path.is_empty());
        let path = path.ok_or("x-mcp-header is at a place that no chain of properties leads to")?;
        found.push(mirror(annotation, members.get("type"), path)?);
    }
    for (key, value) in members {
        match (key.as_str(), value, path.as_deref_mut()) {
            ("properties", Value::Object(properties), Some(path)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    walk(property, Some(path), found)?;
                    path.pop();
                }
            }
            (key, _, _) if key == ANNOTATION || DATA.contains(&key) => {}
            (_, value, _) => walk(value, None, found)?,
        }
    }
    Ok(())
}

fn mirror(annotation: &Value, kind: Option<&Value>, path: &[String]) -> Result<Mirror, String> {
    let name = annotation.as_str().filter(|name| !name.is_empty());
    let name = name.ok_or("x-mcp-header is not a text")?;
    let header = HeaderName::try_from(format!("mcp-param-{name}"))
        .map_err(|_| format!("x-mcp-header {name:?} is no header name"))?;
    let is_allowed = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    let is_primitive = match kind {
        Some(Value::Array(kinds)) => kinds.iter().all(|kind| is_allowed(kind) || kind == "null"),
        Some(kind) => is_allowed(kind),
        None => false,
    };
    if !is_primitive {
        return Err(format!(
            "x-mcp-header {name:?} is on a property that is no string, integer or boolean"
        ));
    }
    Ok(Mirror {
        path: path.to_vec(),
        header,
    })
}

/// The headers for raw `arguments`.
pub(in super::super) fn headers(mirrors: &[Mirror], arguments: &[u8]) -> Vec<(HeaderName, HeaderValue)> {
    mirrors
        .iter()
        .filter_map(|mirror| Some((mirror.header.clone(), value(mirror, arguments)?)))
        .collect()
}

fn value(mirror: &Mirror, arguments: &[u8]) -> Option<HeaderValue> {
    let raw = mirror
        .path
        .iter()
        .try_fold(arguments, |object, key| scan::member(object, key))?;
    match raw.first()? {
        b'"' => encoded(&serde_json::from_slice::<String>(raw).ok()?),
        b't' | b'f' | b'-' | b'0'..=b'9' => HeaderValue::from_bytes(raw).ok(),
        _ => None,
    }
}

/// A text as a header value: as it is where HTTP allows it, else in the base64 form.
pub(in super::super) fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim_matches([' ', '\t']).len() == text.len()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_take_the_forms_of_the_specification() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(text).unwrap(), header);
        }
    }

    #[test]
    fn arguments_are_mirrored_by_their_exact_path() {
        let schema = r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}}"#;
        let mirrors = mirrors(schema).unwrap();
        let found = headers(
            &mirrors,
            br#"{"region":"eu \u00e9","deep":{"n":-7,"b":null},"n":1}"#,
        );
        let found: HashMap<_, _> = found.into_iter().collect();
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[&HeaderName::from_static("mcp-param-region")],
            "=?base64?ZXUgw6k=?="
        );
        assert_eq!(found[&HeaderName::from_static("mcp-param-n")], "-7");
    }

    #[test]
    fn annotations_at_other_places_make_the_tool_invalid() {
        for schema in [
            r#"{"x-mcp-header":"A"}"#,
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
        ] {
            assert!(mirrors(schema).is_err(), "{schema}");
        }
        let named = r#"{"properties":{"x-mcp-header":{"type":"string"}},"examples":[{"x-mcp-header":1}]}"#;
        assert_eq!(mirrors(named).unwrap(), []);
    }
}
