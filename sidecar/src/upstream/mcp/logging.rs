//! Log messages: how an upstream of either era is asked for them. A legacy one is told a level that holds for its connection, a modern
//! one a level with each request (2026-07-28, server/utilities/logging).

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Era;
use super::envelope::Answer;
use super::link::Link;
use super::message;
use super::session::Session;
use super::standing::SET_LEVEL;
use super::upstream::McpUpstream;
use crate::upstream::{AnswerKind, LogLevel, UpstreamRequest};

/// The level that a legacy upstream was told for agents that ask by request, over a connection of one party. It only ever takes in
/// more: each request's audience leaves out what it did not ask for.
#[derive(Debug)]
pub(super) struct Told {
    level: Mutex<Option<LogLevel>>,
    /// Held while the upstream is told.
    turn: Semaphore,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            level: Mutex::default(),
            turn: Semaphore::new(1),
        }
    }
}

impl Told {
    fn level(&self) -> MutexGuard<'_, Option<LogLevel>> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn covers(&self, wanted: LogLevel) -> bool {
        self.level().is_some_and(|told| told <= wanted)
    }
}

impl McpUpstream {
    /// From which level on log messages are asked for with a request: only where they can be told from those of other requests.
    pub(super) fn log_level(&self, request: &UpstreamRequest) -> Option<LogLevel> {
        let audience = request.audience.as_ref()?;
        let session = self.sessions.borrow().clone()?;
        let is_alone = self.party(&session, request).is_some();
        let asks_by_request = match (session.opened.wire.dialect.era, &session.link) {
            (Era::Modern, Link::Http(_)) => true,
            (Era::Modern, Link::Duplex(_)) => is_alone,
            // An agent that sets a level for its session has told the upstream so.
            (Era::Legacy, _) => {
                is_alone
                    && request
                        .origin
                        .as_ref()
                        .is_some_and(|origin| origin.owner.is_none())
            }
        };
        asks_by_request.then(|| audience.log_level(self.name()))?
    }

    /// A modern upstream has no request for a level: it goes with each request of the agent that set it.
    pub(super) fn level_without_request(
        &self,
        session: &Session,
        request: &UpstreamRequest,
    ) -> Option<Answer> {
        if request.method.as_deref() != Some(SET_LEVEL) || session.opened.wire.dialect.era == Era::Legacy {
            return None;
        }
        let is_alone = self.party(session, request).is_some();
        let (kind, raw): (_, &'static str) = match &session.link {
            _ if !session.opened.offers.logging => (
                AnswerKind::Error,
                r#"{"code":-32601,"message":"the upstream has no log messages"}"#,
            ),
            Link::Duplex(_) if !is_alone => (
                AnswerKind::Error,
                r#"{"code":-32601,"message":"log messages of this upstream cannot be told apart over the process that all agents share; an operator can give it share: false"}"#,
            ),
            Link::Duplex(_) | Link::Http(_) => (AnswerKind::Result, "{}"),
        };
        Some(Answer {
            kind,
            raw: Bytes::from_static(raw.as_bytes()),
        })
    }

    /// Tells a legacy upstream, over a connection of one party, what an agent wants that asks by request.
    pub(super) async fn tell_level(&self, told: &Told, session: &Session, request: &UpstreamRequest) {
        let is_legacy = session.opened.wire.dialect.era == Era::Legacy;
        let Some(wanted) = request
            .log_level
            .filter(|_| is_legacy && session.opened.offers.logging)
        else {
            return;
        };
        if told.covers(wanted) {
            return;
        }
        let Ok(_turn) = told.turn.acquire().await else {
            return;
        };
        if told.covers(wanted) {
            return;
        }
        let wire = &session.opened.wire;
        let members = format!("\"level\":\"{}\"", wanted.as_str());
        let params = message::params(&wire.dialect, members.as_bytes());
        let telling = session.link.request(wire, SET_LEVEL, &params);
        match timeout(self.spec.limits.handshake_timeout, telling).await {
            Ok(Ok(reply)) if reply.answer.kind == AnswerKind::Result => *told.level() = Some(wanted),
            // The request is made all the same: its log messages are what is missing then.
            _ => tracing::debug!(upstream = %self.name(), "it does not take a level for log messages"),
        }
    }
}
