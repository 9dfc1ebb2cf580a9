//! Which log messages of upstreams a client wants: those that a legacy session set a level for, or that a modern request asks for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tools::id::UpstreamName;
use tools::json::Node;
use tools::model::Tool;
use tools::operation::Operation;

use super::route::Route;
use super::serve::Exchange;
use super::version::{self, META_LOG_LEVEL};
use crate::agent::state::AgentState;
use crate::identity::Identity;
use crate::upstream::LogLevel;

/// The method that is governed, in either era.
pub(super) const SET_LEVEL: &str = "logging/setLevel";

/// Log messages from a level on that a client asked for. It hears nothing once its policy no longer lets it ask.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) level: LogLevel,
    pub(super) identity: Identity,
}

impl Wish {
    /// From which level on messages of this upstream are passed on.
    pub(super) fn level(&self, state: &AgentState, upstream: &str) -> Option<LogLevel> {
        let subject = subject(state, upstream)?;
        let may_ask = state.gate.may_ask(&self.identity, &subject);
        may_ask.then_some(self.level)
    }
}

fn subject(state: &AgentState, upstream: &str) -> Option<Arc<Tool>> {
    let route = Route {
        upstream: UpstreamName::try_from(upstream).ok()?,
        own: SET_LEVEL.to_owned(),
    };
    route.subject(state, Operation::Method)
}

/// What a modern request asks for; a level that there is not was refused before.
pub(super) fn wish(exchange: &Exchange<'_>) -> Option<Wish> {
    let asked = version::meta(exchange.params).filter(|_| exchange.is_modern)?;
    let level = asked.get(META_LOG_LEVEL).and_then(Node::as_str)?;
    Some(Wish {
        level: LogLevel::parse(&level)?,
        identity: exchange.identity.clone(),
    })
}

/// What a legacy session set, by upstream.
#[derive(Debug, Default)]
pub struct Logs {
    wishes: Mutex<BTreeMap<String, Wish>>,
}

impl Logs {
    pub(super) fn set(&self, upstream: &str, wish: Wish) {
        let mut wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
        wishes.insert(upstream.to_owned(), wish);
    }

    /// From which level on messages of this upstream are passed on.
    pub(super) fn level(&self, state: &AgentState, upstream: &str) -> Option<LogLevel> {
        let wish = {
            let wishes = self.wishes.lock().unwrap_or_else(PoisonError::into_inner);
            wishes.get(upstream).cloned()
        };
        wish?.level(state, upstream)
    }
}
