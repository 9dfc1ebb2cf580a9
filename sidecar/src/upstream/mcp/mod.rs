//! MCP as a client: both eras, over stdio and Streamable HTTP.
//!
//! A [`supervisor`] per upstream connects, finds out the era, reads the catalogue, and does so again when the
//! connection ends. Calls go through the session that it published.

mod alone;
mod as_task;
mod attendance;
mod catalogue;
mod duplex;
mod envelope;
mod failure;
mod handshake;
mod hearing;
mod http;
mod link;
mod logging;
mod message;
mod own;
mod pending;
pub(crate) mod rounds;
mod session;
mod standing;
mod stdio;
mod supervisor;
mod throttle;
mod upstream;

pub mod progress;
pub mod scan;

use std::sync::Arc;

use crate::upstream::Asks;

pub(super) use upstream::McpUpstream;

/// The revision of the modern era.
pub(crate) const MODERN_REVISION: &str = "2026-07-28";
/// The revisions of the legacy era, the one that is offered first.
pub(crate) const LEGACY_REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// How an MCP server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Opened by `initialize`: 2025-11-25 and earlier.
    Legacy,
    /// Stateless, with the revision in each request: 2026-07-28.
    Modern,
}

/// An era and the revision within it, and what may be asked in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) era: Era,
    pub(crate) revision: &'static str,
    /// What the upstream may ask agents for.
    pub(crate) asks: Asks,
    /// What this side says that its client can do, where a request is no agent's: a raw JSON object.
    pub(crate) capabilities: Arc<str>,
}

impl Dialect {
    pub(crate) fn modern(asks: Asks) -> Self {
        Self {
            era: Era::Modern,
            revision: MODERN_REVISION,
            asks,
            capabilities: asks.announced(false).into(),
        }
    }

    pub(crate) fn legacy(revision: &'static str, asks: Asks) -> Self {
        Self {
            era: Era::Legacy,
            revision,
            asks,
            capabilities: asks.announced(true).into(),
        }
    }
}
