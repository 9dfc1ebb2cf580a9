//! JSON as serde_json reads it, with every key of an object once.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tools::json::{Kind, Node};

/// A value; of numbers only that they are numbers, since serde_json rounds them.
#[derive(Debug, PartialEq, Eq)]
pub enum Json {
    Null,
    Bool(bool),
    Number,
    String(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Number)
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(element) = elements.next_element()? {
            all.push(element);
        }
        Ok(Json::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((key, value)) = members.next_entry::<String, Json>()? {
            match all.entry(key) {
                Entry::Vacant(place) => place.insert(value),
                Entry::Occupied(_) => return Err(A::Error::custom("duplicate key")),
            };
        }
        Ok(Json::Object(all))
    }
}

/// Whether the bytes follow the grammar, whatever they mean.
pub fn is_grammatical(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Whether serde_json refuses these bytes only because a number does not fit into its own.
pub fn is_only_out_of_range(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("number out of range")
}

/// How deep the brackets outside strings nest.
pub fn depth(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Whether a node is what serde_json read.
pub fn is_same(node: Node<'_>, json: &Json) -> bool {
    match json {
        Json::Null => node.is_null(),
        Json::Bool(value) => node.as_bool() == Some(*value),
        Json::Number => node.kind() == Kind::Number && node.number().is_some(),
        Json::String(value) => node.as_str().as_deref() == Some(value),
        Json::Array(values) => {
            node.kind() == Kind::Array
                && node.len() == values.len()
                && node
                    .elements()
                    .zip(values)
                    .all(|(node, value)| is_same(node, value))
        }
        Json::Object(members) => {
            node.kind() == Kind::Object
                && node.len() == members.len()
                && node.members().all(|(key, node)| {
                    members
                        .get(key.as_ref())
                        .is_some_and(|value| is_same(node, value))
                })
        }
    }
}

/// Whether two nodes mean the same.
pub fn means_same(left: Node<'_>, right: Node<'_>) -> bool {
    left.kind() == right.kind()
        && left.len() == right.len()
        && left.as_bool() == right.as_bool()
        && left.as_str() == right.as_str()
        && left.number() == right.number()
        && left
            .elements()
            .zip(right.elements())
            .all(|(left, right)| means_same(left, right))
        && left
            .members()
            .all(|(key, left)| right.get(&key).is_some_and(|right| means_same(left, right)))
}
