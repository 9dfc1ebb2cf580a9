//! What of the arguments is reported.

use proto::body::FleetSettings;
use serde_json::value::RawValue;
use tools::json::Node;

/// The arguments as they may leave the sidecar; `None` when nothing of them may.
pub(super) fn params(_settings: &FleetSettings, _arguments: Option<Node<'_>>) -> Option<Box<RawValue>> {
    None
}
