//! Reads the keys of a mapping and reports the ones that nobody asked for.

use std::cell::RefCell;

use super::problem::Problems;
use super::value::{Map, Value};
use crate::nearest;

/// Reads a mapping key by key; [`MapReader::finish`] reports unknown keys with the nearest known one.
///
/// ```
/// use policy::yaml::{MapReader, Problems, load};
/// let documents = load("a.yaml", "nam: x\n").unwrap();
/// let problems = Problems::new("a.yaml");
/// if let Some(reader) = MapReader::new(&documents[0], "a policy", &problems) {
///     reader.optional("name");
///     reader.finish();
/// }
/// assert_eq!(problems.into_vec()[0].to_string(), "a.yaml:1:1 unknown key \"nam\" in a policy; did you mean \"name\"?");
/// ```
pub struct MapReader<'v, 'p> {
    value: &'v Value,
    map: &'v Map,
    what: &'p str,
    problems: &'p Problems,
    asked: RefCell<Vec<&'static str>>,
}

impl<'v, 'p> MapReader<'v, 'p> {
    /// A reader of `value`, which must be a mapping; reports and gives `None` otherwise. `what` names the
    /// mapping in messages (`a policy`).
    pub fn new(value: &'v Value, what: &'p str, problems: &'p Problems) -> Option<Self> {
        let Some(map) = value.as_map() else {
            problems.at(
                value,
                format!("expected {what} (a mapping), found {}", value.describe()),
            );
            return None;
        };
        Some(Self {
            value,
            map,
            what,
            problems,
            asked: RefCell::new(Vec::new()),
        })
    }

    /// The mapping itself.
    pub fn value(&self) -> &'v Value {
        self.value
    }

    /// The value of a key that may be missing; a null counts as missing.
    pub fn optional(&self, key: &'static str) -> Option<&'v Value> {
        self.asked.borrow_mut().push(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// The value of a key that must be there.
    pub fn required(&self, key: &'static str) -> Option<&'v Value> {
        let found = self.optional(key);
        if found.is_none() {
            self.problems
                .at(self.value, format!("{} needs the key \"{key}\"", self.what));
        }
        found
    }

    /// Whether a key is written, null or not. Does not count as asking for it.
    pub fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some()
    }

    /// An optional string.
    pub fn string(&self, key: &'static str) -> Option<&'v str> {
        self.optional(key).and_then(|value| self.problems.string(value))
    }

    /// An optional `true` or `false`.
    pub fn boolean(&self, key: &'static str) -> Option<bool> {
        self.optional(key).and_then(|value| self.problems.boolean(value))
    }

    /// An optional whole number from 0.
    pub fn unsigned(&self, key: &'static str) -> Option<u64> {
        self.optional(key).and_then(|value| self.problems.unsigned(value))
    }

    /// An optional list.
    pub fn sequence(&self, key: &'static str) -> Option<&'v [Value]> {
        self.optional(key).and_then(|value| self.problems.sequence(value))
    }

    /// An optional string or list of strings.
    pub fn strings(&self, key: &'static str) -> Option<Vec<(&'v str, &'v Value)>> {
        self.optional(key).and_then(|value| self.problems.strings(value))
    }

    /// Reports every key that was not asked for.
    pub fn finish(self) {
        let asked = self.asked.into_inner();
        for entry in self.map.entries() {
            if !asked.contains(&entry.key.as_str()) && entry.key != "<<" {
                let message = format!("unknown key \"{}\" in {}", entry.key, self.what);
                let hint = nearest::hint(&entry.key, asked.iter().copied());
                self.problems.add(entry.mark, entry.value.path(), message, hint);
            }
        }
    }
}
