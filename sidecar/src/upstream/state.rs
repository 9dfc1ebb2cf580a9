//! The state of an upstream's connection, as `GET /mcp-servers` shows it.

use std::sync::Arc;
use std::time::Duration;

use super::mcp::Era;

/// The state of one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamState {
    /// The upstream's name.
    pub name: Arc<str>,
    /// `stdio`, `streamable-http`, `cli`, ….
    pub transport: &'static str,
    /// Whether it can be called.
    pub connection: Connection,
    /// The last error of connecting or of a connection that ended.
    pub last_error: Option<String>,
    /// Number of tools declared.
    pub tools: usize,
}

/// Whether an upstream can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// It can.
    Connected {
        /// The era it speaks.
        era: Era,
        /// The protocol revision agreed on.
        revision: String,
    },
    /// It can, and speaks no MCP.
    Ready,
    /// Not now; it is tried again.
    Retrying {
        /// Until the next try; zero while one is under way.
        next_try: Duration,
    },
    /// Not before its configuration changes, or a file that it names.
    Failed,
}

impl UpstreamState {
    /// `connected`, `retrying` or `failed`.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self.connection {
            Connection::Connected { .. } | Connection::Ready => "connected",
            Connection::Retrying { .. } => "retrying",
            Connection::Failed => "failed",
        }
    }
}
