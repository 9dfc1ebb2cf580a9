//! Where a policy came from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where a policy came from. The order is the load order among equally specific policies: inline, then the
/// directory by file name, then the API (by name, which is the last tie-break everywhere).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The nth of the configuration's `policies`.
    Inline(u32),
    /// The nth document of a file in `policy_dir`.
    Directory(Arc<str>, u32),
    /// Put through the API.
    Api,
}
