//! A request on its way, as far as its entrance shapes it: whom it is forwarded for, and the stream on which its client hears of it
//! before it is answered.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::answer::notification;
use super::call;
use super::call_stream::Opening;
use super::client;
use super::logs::{self, Wish};
use super::serve::Exchange;
use super::session::Session;
use super::version::{self, Legacy};
use crate::agent::sse;
use crate::agent::state::AgentState;
use crate::gate::{OnPending, TraceContext, Waits};
use crate::upstream::{Audience, LogLevel, Origin, with_progress_token};

/// A request on its way, as far as its entrance shapes it.
pub(super) struct Line {
    pub(super) origin: Arc<Origin>,
    pub(super) audience: Arc<dyn Audience>,
    /// How long it waits for a person.
    pub(super) wait: Option<Duration>,
    /// Told when it begins to wait for a person.
    pub(super) on_pending: Box<OnPending>,
}

/// The line of a request. A client that asked for progress gets a stream at once; others when there is something to say: when the
/// request waits for a person, or when the upstream asks, tells or interrupts.
pub(super) fn line(
    exchange: &Exchange<'_>,
    open: Option<oneshot::Sender<Opening>>,
    trace: &TraceContext,
) -> Line {
    let wait = Some(exchange.state.gate.approval_wait());
    if let Some(questions) = exchange.questions {
        let relay = Arc::clone(&questions.relay);
        return Line {
            origin: client::held_origin(exchange, questions, trace),
            audience: Arc::clone(&relay) as Arc<dyn Audience>,
            wait,
            on_pending: Box::new(move |_| {
                relay.open();
                Waits::default()
            }),
        };
    }
    let stream = OwnStream::of(exchange, open);
    let origin = match exchange.session.filter(|session| session.can_be_asked()) {
        Some(session) => client::asked_origin(exchange, session, &stream, trace),
        None => client::origin(exchange),
    };
    Line {
        origin,
        audience: Arc::clone(&stream) as Arc<dyn Audience>,
        wait,
        on_pending: Box::new(move |_| {
            let _ = stream.opened();
            Waits::default()
        }),
    }
}

/// The stream of one request, which begins when there is something to say on it.
#[derive(Debug)]
pub(super) struct OwnStream {
    state: Weak<AgentState>,
    session: Option<Arc<Session>>,
    /// The client's own progress token, as raw JSON.
    token: Option<Bytes>,
    /// The log messages that it asks for with the request.
    wish: Option<Wish>,
    open: Mutex<Option<oneshot::Sender<Opening>>>,
    opening: OnceLock<Opening>,
}

impl OwnStream {
    /// The stream of an exchange. It begins at once when its client asked for progress; it never does when `open` is not there.
    pub(super) fn of(exchange: &Exchange<'_>, open: Option<oneshot::Sender<Opening>>) -> Arc<Self> {
        let stream = Self {
            state: Arc::downgrade(exchange.state),
            session: exchange.session.cloned(),
            token: call::progress_token(version::meta(exchange.params)),
            wish: logs::wish(exchange),
            open: Mutex::new(open),
            opening: OnceLock::new(),
        };
        if stream.token.is_some() {
            let _ = stream.opened();
        }
        Arc::new(stream)
    }

    /// The stream, which is opened if it can be: not when the client takes none, or has gone.
    pub(super) fn opened(&self) -> Option<&Opening> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(open) = open {
            let opening = Opening::of(self.session.as_ref());
            if open.send(opening.clone()).is_ok() {
                let _ = self.opening.set(opening);
            }
        }
        self.opening.get()
    }

    /// Puts a message on the stream, or on that of the session where it has none.
    fn say(&self, message: &[u8]) {
        let event = sse::event(message);
        match (self.opened(), &self.session) {
            (Some(stream), _) => stream.mailbox.put(event),
            (None, Some(session)) => session.mailbox().put(event),
            (None, None) => {}
        }
    }
}

impl Audience for OwnStream {
    fn wants_progress(&self) -> bool {
        self.token.is_some() && self.opening.get().is_some()
    }

    fn progressed(&self, params: &Bytes) {
        let (Some(token), Some(stream)) = (&self.token, self.opening.get()) else {
            return;
        };
        if let Some(params) = with_progress_token(params, token) {
            let message = notification("notifications/progress", Some(&params));
            stream.mailbox.put_if_read(sse::event(&message));
        }
    }

    fn log_level(&self, upstream: &str) -> Option<LogLevel> {
        let state = self.state.upgrade()?;
        match (&self.session, &self.wish) {
            (Some(session), _) => session.logs().level(&state, upstream),
            (None, wish) => wish.as_ref()?.level(&state, upstream),
        }
    }

    fn logged(&self, upstream: &str, params: &Bytes) {
        let is_wanted = self
            .log_level(upstream)
            .is_some_and(|level| level.lets_through(params));
        if is_wanted {
            self.say(&notification("notifications/message", Some(params)));
        }
    }

    fn paused(&self, retry: Duration) {
        let knows_pauses = |session: &Arc<Session>| session.version() >= Legacy::V20251125;
        if self.session.as_ref().is_some_and(knows_pauses)
            && let Some(stream) = self.opened()
        {
            stream.mailbox.pause(retry);
        }
    }
}

/// What is said about a call that is held between the rounds of its agent: it goes to the stream of the round that is under way.
#[derive(Debug, Default)]
pub(super) struct Relay {
    round: Mutex<Option<Arc<OwnStream>>>,
}

impl Relay {
    /// A round begins, or ends.
    pub(super) fn attach(&self, stream: Option<Arc<OwnStream>>) {
        *self.round.lock().unwrap_or_else(PoisonError::into_inner) = stream;
    }

    fn round(&self) -> Option<Arc<OwnStream>> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn open(&self) {
        if let Some(round) = self.round() {
            let _ = round.opened();
        }
    }
}

impl Audience for Relay {
    fn wants_progress(&self) -> bool {
        self.round().is_some_and(|round| round.wants_progress())
    }

    fn progressed(&self, params: &Bytes) {
        if let Some(round) = self.round() {
            round.progressed(params);
        }
    }

    fn log_level(&self, upstream: &str) -> Option<LogLevel> {
        self.round()?.log_level(upstream)
    }

    fn logged(&self, upstream: &str, params: &Bytes) {
        if let Some(round) = self.round() {
            round.logged(upstream, params);
        }
    }

    fn paused(&self, _: Duration) {
        // Its revision has no streams that can be resumed.
    }
}
