//! An upstream that has been connected to and understood.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderValue;

use super::Dialect;
use super::http::mirror::Mirrors;
use super::link::Link;

/// What each request of a session must say about it.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) dialect: Dialect,
    /// `Mcp-Session-Id`, where a legacy HTTP upstream gave one.
    pub(super) session_id: Option<HeaderValue>,
}

impl Wire {
    pub(super) fn of(dialect: Dialect) -> Self {
        Self {
            dialect,
            session_id: None,
        }
    }
}

/// What the handshake found out.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) wire: Wire,
    pub(super) has_tools: bool,
    /// Whether it says when its tools change.
    pub(super) announces_changes: bool,
}

/// A connection that calls can use.
#[derive(Debug)]
pub(super) struct Session {
    /// Grows with each session of the upstream.
    pub(super) number: u64,
    pub(super) link: Link,
    pub(super) opened: Opened,
    /// Which arguments of which tools are mirrored into headers.
    pub(super) mirrors: ArcSwap<Mirrors>,
}

impl Session {
    pub(super) fn new(number: u64, link: Link, opened: Opened, mirrors: Mirrors) -> Arc<Self> {
        Arc::new(Self {
            number,
            link,
            opened,
            mirrors: ArcSwap::from_pointee(mirrors),
        })
    }
}
