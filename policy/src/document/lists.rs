//! Reusable lists, named `@name` in selectors.

use std::collections::BTreeMap;

/// The configuration's `lists:`: names to entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists(BTreeMap<String, Vec<String>>);

impl Lists {
    /// No lists.
    pub fn none() -> Self {
        Self::default()
    }

    /// The entries of a list, named without its `@`.
    pub fn get(&self, name: &str) -> Option<&[String]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// The names of all lists, without `@`.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.keys().map(String::as_str)
    }
}

impl FromIterator<(String, Vec<String>)> for Lists {
    fn from_iter<T: IntoIterator<Item = (String, Vec<String>)>>(lists: T) -> Self {
        Self(lists.into_iter().collect())
    }
}
