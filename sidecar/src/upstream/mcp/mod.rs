//! MCP as a client: both eras, over stdio and Streamable HTTP.

pub mod progress;
pub mod scan;

/// How an MCP server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Opened by `initialize`: 2025-11-25 and earlier.
    Legacy,
    /// Stateless, with the revision in each request: 2026-07-28.
    Modern,
}
