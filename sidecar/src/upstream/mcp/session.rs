//! An upstream that has been connected to and understood.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderValue;
use tokio::sync::watch;

use super::http::mirror::Mirrors;
use super::link::Link;
use super::standing::Subscribed;
use super::{Dialect, Era, message};
use crate::upstream::Offers;

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

/// The lists that an upstream announces changes of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
}

impl Announced {
    /// What of this a modern `subscriptions/listen` asks for, as members.
    pub(super) fn filter(self) -> String {
        [
            ("toolsListChanged", self.tools),
            ("resourcesListChanged", self.resources),
            ("promptsListChanged", self.prompts),
        ]
        .into_iter()
        .filter(|(_, is_announced)| *is_announced)
        .map(|(member, _)| format!("\"{member}\":true"))
        .collect::<Vec<_>>()
        .join(",")
    }

    fn is_any(self) -> bool {
        self.tools || self.resources || self.prompts
    }
}

/// What the handshake found out.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) wire: Wire,
    pub(super) has_tools: bool,
    /// What it has beside tools.
    pub(super) offers: Offers,
    /// Which of its lists it says that it announces changes of.
    pub(super) announces: Announced,
}

impl Opened {
    /// Whether it may have something to say outside the answers to requests.
    pub(super) fn has_news(&self) -> bool {
        let may_ask = self.wire.dialect.era == Era::Legacy && &*self.wire.dialect.capabilities != "{}";
        self.announces.is_any() || self.offers.subscriptions || self.offers.logging || may_ask
    }

    /// `params` of a modern `subscriptions/listen`.
    pub(super) fn listen_params(&self, subscribed: &Subscribed) -> Vec<u8> {
        let mut filter = self.announces.filter();
        if !subscribed.is_empty() {
            let comma = if filter.is_empty() { "" } else { "," };
            let uris: Vec<_> = subscribed.iter().map(|uri| serde_json::json!(uri)).collect();
            filter.push_str(&format!(
                "{comma}\"resourceSubscriptions\":{}",
                serde_json::Value::Array(uris)
            ));
        }
        let members = format!("\"notifications\":{{{filter}}}");
        message::params(&self.wire.dialect, members.as_bytes())
    }
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
    /// The resources whose changes agents subscribed to.
    pub(super) subscribed: watch::Receiver<Arc<Subscribed>>,
}

/// Returns when the subscriptions change.
pub(super) async fn changed(subscribed: &mut watch::Receiver<Arc<Subscribed>>) {
    if subscribed.changed().await.is_err() {
        std::future::pending().await
    }
}

impl Session {
    pub(super) fn new(
        number: u64,
        link: Link,
        opened: Opened,
        subscribed: watch::Receiver<Arc<Subscribed>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            number,
            link,
            opened,
            mirrors: ArcSwap::default(),
            subscribed,
        })
    }
}
