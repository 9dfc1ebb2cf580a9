//! Which operations of a document become tools: `GET *`, `POST /orders`.

use std::fmt;
use std::str::FromStr;

/// Methods that operations can have.
pub(super) const METHODS: [&str; 7] = ["GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH"];

/// A method (or `*`) and a path, in which `*` stands for anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    method: Option<&'static str>,
    path: String,
}

/// The text is no selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a method and a path, as in \"GET *\" or \"POST /orders\"; methods are GET, PUT, POST, DELETE, OPTIONS, HEAD, PATCH and *"
)]
pub struct SelectionError {
    text: String,
}

impl Selection {
    /// Whether it covers an operation; the method is in upper case, the path as the document writes it.
    pub(super) fn covers(&self, method: &str, path: &str) -> bool {
        self.method.is_none_or(|only| only == method) && matches(&self.path, path)
    }
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let refused = || SelectionError {
            text: super::text::cut(text, 80),
        };
        let (method, path) = text.split_once(' ').ok_or_else(refused)?;
        let method = match method {
            "*" => None,
            word => Some(
                *METHODS
                    .iter()
                    .find(|known| known.eq_ignore_ascii_case(word))
                    .ok_or_else(refused)?,
            ),
        };
        if !(path.starts_with('/') || path.starts_with('*')) || path.contains(' ') || path.len() > 2048 {
            return Err(refused());
        }
        Ok(Self {
            method,
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.unwrap_or("*"), self.path)
    }
}

/// Whether a pattern with `*` covers a text, in at most their lengths' product of steps.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}
