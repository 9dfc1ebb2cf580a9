//! Patterns over governed names: tools, resources, prompts and MCP methods.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Glob, GlobError};

/// What marks a governed name that is no tool.
const MARKERS: [&str; 3] = ["resource:", "prompt:", "method:"];

/// A pattern over full governed names (`<upstream>.<tool>`).
///
/// `*` matches every governed name. Any other pattern matches resources, prompts and MCP methods only when it
/// contains `resource:`, `prompt:` or `method:`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolGlob(Glob);

impl ToolGlob {
    /// Whether the pattern covers a governed name.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name) && (self.0.is_any() || self.names_a_kind() || !is_marked(name))
    }

    /// Whether the pattern names exactly one governed name, and which.
    pub fn literal(&self) -> Option<&str> {
        self.0.literal()
    }

    /// The pattern without the rule about kinds.
    pub fn glob(&self) -> &Glob {
        &self.0
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether the pattern can cover resources, prompts or methods beside `*`.
    pub fn names_a_kind(&self) -> bool {
        MARKERS.iter().any(|marker| self.0.as_str().contains(marker))
    }
}

/// Whether a governed name is a resource, a prompt or a method.
fn is_marked(name: &str) -> bool {
    let local = name.split_once('.').map_or(name, |(_, local)| local);
    MARKERS
        .iter()
        .any(|marker| local.starts_with(marker) || name.starts_with(marker))
}

impl std::str::FromStr for ToolGlob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for ToolGlob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Debug for ToolGlob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.0)
    }
}
