//! The floor that a tool has by its pin.

use policy::Floor;
use tools::fingerprint::Fingerprint;
use tools::model::{Tool, ToolKind};

/// The floor that a tool of an MCP server has by its pin.
///
/// `is_enforced` is the fleet's `pin_tools`; `accepted` is the fingerprint that the snapshot's pin of this tool holds.
/// A tool without a pin is new: the server added it after it was pinned, or the control plane has not answered yet.
#[must_use]
pub fn pin_floor(tool: &Tool, is_enforced: bool, accepted: Option<&Fingerprint>) -> Option<Floor> {
    let is_pinnable = match tool.kind {
        ToolKind::Mcp => tool.upstream.is_some(),
        ToolKind::OpenApi | ToolKind::Cli | ToolKind::Host => false,
    };
    if !is_enforced || !is_pinnable {
        return None;
    }
    match accepted {
        Some(accepted) if *accepted == tool.fingerprint => None,
        Some(_) => Some(Floor::PIN_CHANGED),
        None => Some(Floor::PIN_NEW),
    }
}
