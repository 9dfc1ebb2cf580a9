//! What an upstream declares.

use std::sync::Arc;

use serde_json::value::RawValue;
use tools::model::ToolKind;

/// A tool as its upstream declared it.
#[derive(Clone, Debug)]
pub struct DeclaredTool {
    /// The upstream's own name for it.
    pub name: Arc<str>,
    /// The declaration, exactly as it came.
    pub declared: Arc<RawValue>,
}

/// A resource, a resource template or a prompt as its upstream declared it.
#[derive(Clone, Debug)]
pub struct DeclaredEntry {
    /// What the upstream knows it by: a URI, a URI template, or a prompt's name.
    pub key: Arc<str>,
    /// The declaration, exactly as it came.
    pub declared: Arc<RawValue>,
}

/// What an upstream says that it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// It has resources.
    pub resources: bool,
    /// It says when a resource changes, to those who subscribed.
    pub subscriptions: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It completes arguments.
    pub completions: bool,
    /// It sends log messages.
    pub logging: bool,
    /// It runs calls of tools as tasks.
    pub tasks: bool,
}

/// All pages of an upstream's lists, in its order.
#[derive(Clone, Debug)]
pub struct DeclaredCatalogue {
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// Where its tools come from.
    pub kind: ToolKind,
    /// Whether its tools' governed names begin with its own.
    pub is_prefixed: bool,
    /// Whether a catalogue has been read since the sidecar started; before that the lists are empty.
    pub is_read: bool,
    /// What it can do.
    pub offers: Offers,
    /// The tools. They stay while a lost connection is being restored.
    pub tools: Vec<DeclaredTool>,
    /// The resources.
    pub resources: Vec<DeclaredEntry>,
    /// The templates that further resources are made by.
    pub templates: Vec<DeclaredEntry>,
    /// The prompts.
    pub prompts: Vec<DeclaredEntry>,
}

impl DeclaredCatalogue {
    /// Where its tools come from, and whether their governed names begin with its own.
    pub(crate) fn named(&self) -> (ToolKind, bool) {
        (self.kind, self.is_prefixed)
    }

    /// The catalogue of an MCP server that declared nothing yet.
    #[must_use]
    pub fn unread(upstream: Arc<str>) -> Self {
        Self {
            upstream,
            kind: ToolKind::Mcp,
            is_prefixed: true,
            is_read: false,
            offers: Offers::default(),
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
        }
    }
}
