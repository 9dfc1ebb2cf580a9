//! Tools out of what an upstream declared.

use std::collections::BTreeMap;
use std::sync::Arc;

use tools::id::{ToolName, UpstreamName};
use tools::model::{DeclareError, Tool, ToolKind};

use crate::upstream::DeclaredTool;

/// The usable tools of a catalogue, sorted by name. What cannot be named or read, and what is declared a second time,
/// is left out with a warning. A tool whose declaration is that of `known` is not judged again.
pub(super) fn tools(
    upstream: &UpstreamName,
    (kind, is_prefixed): (ToolKind, bool),
    declared: &[DeclaredTool],
    known: impl Fn(&ToolName) -> Option<Arc<Tool>>,
) -> Vec<Arc<Tool>> {
    let mut found: BTreeMap<ToolName, Arc<Tool>> = BTreeMap::new();
    for declaration in declared {
        let name = if is_prefixed {
            ToolName::of(upstream, &declaration.name)
        } else {
            ToolName::try_from(&*declaration.name)
        };
        let tool = match name.ok().and_then(|name| known(&name)) {
            Some(tool) if tool.declared.get() == declaration.declared.get() => tool,
            Some(_) | None => {
                let declared = Arc::clone(&declaration.declared);
                match usable(Tool::declared_by(upstream, kind, is_prefixed, declared)) {
                    Ok(tool) => Arc::new(tool),
                    Err(problem) => {
                        tracing::warn!(%upstream, tool = %declaration.name, "a declared tool is left out: {problem}");
                        continue;
                    }
                }
            }
        };
        if found.contains_key(&tool.name) {
            tracing::warn!(%upstream, tool = %tool.name, "a tool is declared twice; the second declaration is left out");
            continue;
        }
        found.insert(tool.name.clone(), tool);
    }
    found.into_values().collect()
}

/// A tool whose calls can be checked, where Toolgate has to.
fn usable(tool: Result<Tool, DeclareError>) -> Result<Tool, String> {
    let tool = tool.map_err(|error| error.to_string())?;
    tool.check_schema().map_err(|error| error.to_string())?;
    Ok(tool)
}

/// Whether two sorted catalogues declare the same.
pub(super) fn are_same(one: &[Arc<Tool>], other: &[Arc<Tool>]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            Arc::ptr_eq(one, other) || (one.name == other.name && one.declared.get() == other.declared.get())
        })
}
