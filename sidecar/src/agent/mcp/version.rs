//! Protocol revisions, and which era a message belongs to.

use std::fmt;

use http::HeaderMap;
use tools::json::{Kind, Node};

/// The header that names the revision.
pub const VERSION_HEADER: &str = "mcp-protocol-version";
/// The `_meta` key that names the revision (2026-07-28, basic: `_meta`).
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` key with the client's capabilities.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key by which a request asks for log messages (2026-07-28, server/utilities/logging).
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The revision of the modern era.
pub const MODERN: &str = "2026-07-28";
/// Everything that is spoken here, newest first.
pub const SUPPORTED: [&str; 5] = [MODERN, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A revision that begins with `initialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Legacy {
    /// 2024-11-05
    V20241105,
    /// 2025-03-26, which clients without a version header are taken to speak.
    V20250326,
    /// 2025-06-18
    V20250618,
    /// 2025-11-25
    V20251125,
}

impl Legacy {
    /// The newest one.
    pub const NEWEST: Self = Self::V20251125;

    /// The revision called `text`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "2024-11-05" => Some(Self::V20241105),
            "2025-03-26" => Some(Self::V20250326),
            "2025-06-18" => Some(Self::V20250618),
            "2025-11-25" => Some(Self::V20251125),
            _ => None,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V20241105 => "2024-11-05",
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
        }
    }
}

impl fmt::Display for Legacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a message is to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Era {
    /// Statelessly, by per-request `_meta`.
    Modern,
    /// By an earlier revision; without a session when the client names none.
    Legacy,
}

/// The era of a request: what carries the modern `_meta`, or says the modern revision in its header, is modern.
pub fn era(headers: &HeaderMap, params: Option<Node<'_>>) -> Era {
    let declares = meta(params).is_some_and(|meta| meta.get(META_VERSION).is_some());
    let header = headers.get(VERSION_HEADER).map(|value| value.as_bytes());
    let modern_header = header == Some(MODERN.as_bytes());
    if declares || modern_header {
        Era::Modern
    } else {
        Era::Legacy
    }
}

/// The `_meta` object of a request's params.
pub fn meta(params: Option<Node<'_>>) -> Option<Node<'_>> {
    params?.get("_meta").filter(|meta| meta.kind() == Kind::Object)
}
