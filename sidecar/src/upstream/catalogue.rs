//! What an upstream declares.

use std::sync::Arc;

use serde_json::value::RawValue;

/// A tool as its upstream declared it.
#[derive(Clone, Debug)]
pub struct DeclaredTool {
    /// The upstream's own name for it.
    pub name: Arc<str>,
    /// The declaration, exactly as it came.
    pub declared: Arc<RawValue>,
}

/// All pages of an upstream's `tools/list`, in its order.
#[derive(Clone, Debug)]
pub struct DeclaredCatalogue {
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// Whether a catalogue has been read since the sidecar started; before that `tools` is empty.
    pub is_read: bool,
    /// The tools. They stay while a lost connection is being restored.
    pub tools: Vec<DeclaredTool>,
}
