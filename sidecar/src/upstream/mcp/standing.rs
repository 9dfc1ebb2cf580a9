//! What agents asked of an upstream that holds beyond one answer: the resources that they want to hear of, and the level of log messages.
//! It is asked for once, whoever and how many want it, and again in each session with the upstream.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;

use super::envelope::Answer;
use super::failure::Failure;
use super::session::Session;
use super::upstream::McpUpstream;
use super::{Era, message, scan};
use crate::upstream::{AnswerKind, LogLevel, UpstreamRequest};

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
pub(super) const SET_LEVEL: &str = "logging/setLevel";

/// URIs of resources, as the upstream knows them.
pub(super) type Subscribed = BTreeSet<String>;

/// What was asked for over one connection, or over those that follow one another.
#[derive(Debug, Default)]
pub(super) struct Standing {
    subscribed: watch::Sender<Arc<Subscribed>>,
    level: Mutex<Option<LogLevel>>,
}

/// What a request changes.
enum Change {
    Subscription { uri: String, is_wanted: bool },
    Level(LogLevel),
}

impl Change {
    fn of(request: &UpstreamRequest) -> Option<Self> {
        let method = request.method.as_deref()?;
        let member = |key| -> Option<String> {
            serde_json::from_slice(scan::member(request.extra.as_deref()?, key)?).ok()
        };
        match method {
            SUBSCRIBE | UNSUBSCRIBE => Some(Self::Subscription {
                uri: member("uri")?,
                is_wanted: method == SUBSCRIBE,
            }),
            SET_LEVEL => LogLevel::parse(&member("level")?).map(Self::Level),
            _ => None,
        }
    }
}

impl Standing {
    /// The resources to hear of, as they change.
    pub(super) fn subscribed(&self) -> watch::Receiver<Arc<Subscribed>> {
        self.subscribed.subscribe()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_subscriptions() && self.level().is_none()
    }

    pub(super) fn has_subscriptions(&self) -> bool {
        !self.subscribed.borrow().is_empty()
    }

    fn level(&self) -> MutexGuard<'_, Option<LogLevel>> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what a request changed, if the upstream took it.
    pub(super) fn note_answered(&self, request: &UpstreamRequest, outcome: &Result<Answer, Failure>) {
        let is_taken = matches!(outcome, Ok(answer) if answer.kind == AnswerKind::Result);
        if let Some(change) = is_taken.then(|| Change::of(request)).flatten() {
            self.note(change);
        }
    }

    /// A modern upstream has no requests to subscribe: what is wanted is part of the stream that listens.
    pub(super) fn note_without_request(
        &self,
        session: &Session,
        request: &UpstreamRequest,
    ) -> Option<Answer> {
        let is_change = matches!(request.method.as_deref(), Some(SUBSCRIBE | UNSUBSCRIBE));
        if !is_change || session.opened.wire.dialect.era == Era::Legacy {
            return None;
        }
        if !session.opened.offers.subscriptions {
            let error = r#"{"code":-32601,"message":"the upstream does not say when its resources change"}"#;
            return Some(Answer {
                kind: AnswerKind::Error,
                raw: Bytes::from_static(error.as_bytes()),
            });
        }
        if let Some(change) = Change::of(request) {
            self.note(change);
        }
        Some(Answer {
            kind: AnswerKind::Result,
            raw: Bytes::from_static(b"{}"),
        })
    }

    fn note(&self, change: Change) {
        match change {
            Change::Level(level) => *self.level() = Some(level),
            Change::Subscription { uri, is_wanted } => {
                self.subscribe(uri, is_wanted);
            }
        }
    }

    /// Whether that changed something.
    fn subscribe(&self, uri: String, is_wanted: bool) -> bool {
        self.subscribed.send_if_modified(|subscribed| {
            if subscribed.contains(&uri) == is_wanted {
                return false;
            }
            let subscribed = Arc::make_mut(subscribed);
            if is_wanted {
                subscribed.insert(uri);
            } else {
                subscribed.remove(&uri);
            }
            true
        })
    }
}

impl McpUpstream {
    /// Asks for everything again in a new session of a legacy upstream.
    pub(super) async fn ask_again(&self, session: &Session, standing: &Standing) {
        let subscribed = Arc::clone(&standing.subscribed.borrow());
        for uri in subscribed.iter() {
            if !self.tell(session, SUBSCRIBE, "uri", uri).await {
                return;
            }
        }
        let level = *standing.level();
        if let Some(level) = level {
            self.tell(session, SET_LEVEL, "level", level.as_str()).await;
        }
    }

    /// Nobody wants to hear of the resource any more.
    pub(in crate::upstream) fn forget(self: &Arc<Self>, uri: &str) {
        if !self.standing.subscribe(uri.to_owned(), false) {
            return;
        }
        let Some(session) = self.sessions.borrow().clone() else {
            return;
        };
        let (upstream, uri) = (Arc::clone(self), uri.to_owned());
        self.tasks.spawn(async move {
            upstream.tell(&session, UNSUBSCRIBE, "uri", &uri).await;
        });
    }

    /// Whether the upstream answered.
    async fn tell(&self, session: &Session, method: &str, key: &str, value: &str) -> bool {
        let wire = &session.opened.wire;
        if wire.dialect.era == Era::Modern {
            return true;
        }
        let members = format!("\"{key}\":{}", serde_json::Value::from(value));
        let params = message::params(&wire.dialect, members.as_bytes());
        let asking = session.link.request(wire, method, &params);
        let bound = self.spec.limits.handshake_timeout;
        let (is_there, failure) = match timeout(bound, asking)
            .await
            .unwrap_or(Err(Failure::Timeout(bound)))
        {
            Ok(reply) if reply.answer.kind == AnswerKind::Result => return true,
            Ok(_) => (true, "it answered with an error".to_owned()),
            Err(failure) => (false, failure.to_string()),
        };
        tracing::warn!(upstream = %self.name(), method, "what agents asked for before could not be told again: {failure}");
        is_there
    }
}
