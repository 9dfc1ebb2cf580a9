//! A legacy session: made by `initialize`, owned by the identity that made it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use net::clock::Clock;
use tokio_util::sync::CancellationToken;
use tools::id::{AgentId, UserId};

use super::envelope::RequestId;
use super::logs::Logs;
use super::mailbox::Mailbox;
use super::questions::Questions;
use super::tasks::Tasks;
use super::version::Legacy;
use crate::identity::Identity;
use crate::upstream::{Asks, Origin};

/// One client's session.
#[derive(Debug)]
pub struct Session {
    id: String,
    agent: AgentId,
    user: Option<UserId>,
    version: Legacy,
    last_used: AtomicU64,
    in_use: AtomicUsize,
    ended: CancellationToken,
    calls: Mutex<Calls>,
    mailbox: Arc<Mailbox>,
    /// What its client says that it can do: a raw JSON object.
    capabilities: Bytes,
    can_be_asked: bool,
    questions: Questions,
    tasks: Tasks,
    logs: Logs,
    client_tasks: Tasks,
    streams: Mutex<Streams>,
    origin: OnceLock<Arc<Origin>>,
}

/// The calls in flight of a session. Clients have been seen to give several the same id.
#[derive(Debug, Default)]
struct Calls {
    last: u64,
    by_number: HashMap<u64, (RequestId, CancellationToken)>,
}

/// The streams of a session's calls that can be resumed, by number.
#[derive(Debug)]
struct Streams {
    last: u64,
    by_number: BTreeMap<u64, Arc<Mailbox>>,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            last: SESSION_STREAM,
            by_number: BTreeMap::new(),
        }
    }
}

/// The number of a session's own stream, on which it is told what no request asked for.
pub const SESSION_STREAM: u64 = 0;
/// Streams of calls that are kept after their end, to be resumed.
const MAX_STREAMS: usize = 16;

impl Session {
    /// One of `identity`, used just `now` (seconds since boot).
    pub(super) fn new(
        id: String,
        identity: &Identity,
        version: Legacy,
        capabilities: Bytes,
        now: u64,
    ) -> Self {
        Self {
            id,
            agent: identity.agent.clone(),
            user: identity.user.clone(),
            version,
            last_used: AtomicU64::new(now),
            in_use: AtomicUsize::new(0),
            ended: CancellationToken::new(),
            calls: Mutex::default(),
            mailbox: Arc::new(Mailbox::resumable()),
            can_be_asked: Asks::ALL.is_any_of(&capabilities),
            capabilities,
            questions: Questions::default(),
            tasks: Tasks::default(),
            logs: Logs::default(),
            client_tasks: Tasks::default(),
            streams: Mutex::default(),
            origin: OnceLock::new(),
        }
    }

    /// Its id, as the client names it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The revision that was agreed on.
    pub fn version(&self) -> Legacy {
        self.version
    }

    /// Cancelled when the session ends.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the calls with this request id; nothing happens when there is none.
    pub fn cancel(&self, id: &RequestId) {
        for (of, token) in self.calls().by_number.values() {
            if of == id {
                token.cancel();
            }
        }
    }

    /// What its client says that it can do: a raw JSON object.
    pub fn capabilities(&self) -> &Bytes {
        &self.capabilities
    }

    /// Whether its client takes questions of any kind.
    pub fn can_be_asked(&self) -> bool {
        self.can_be_asked
    }

    /// What its client is asked.
    pub fn questions(&self) -> &Questions {
        &self.questions
    }

    /// The tasks that it began.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The log messages that it asked for.
    pub fn logs(&self) -> &Logs {
        &self.logs
    }

    /// The tasks by which its client answers, and whom it answers so.
    pub fn client_tasks(&self) -> &Tasks {
        &self.client_tasks
    }

    /// Whom its requests are forwarded for.
    pub fn origin(&self) -> Option<&Arc<Origin>> {
        self.origin.get()
    }

    /// From now on its requests are forwarded for `origin`; the first one counts.
    pub fn belongs(&self, origin: Origin) {
        let _ = self.origin.set(Arc::new(origin));
    }

    /// A stream of a call begins: its number in the session, and its messages.
    pub fn begin_stream(&self) -> (u64, Arc<Mailbox>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        while streams.by_number.len() >= MAX_STREAMS {
            let over = streams.by_number.iter().find(|(_, stream)| stream.is_over());
            let Some(oldest) = over
                .or(streams.by_number.iter().next())
                .map(|(number, _)| *number)
            else {
                break;
            };
            streams.by_number.remove(&oldest);
        }
        streams.last += 1;
        let (number, mailbox) = (streams.last, Arc::new(Mailbox::resumable()));
        streams.by_number.insert(number, Arc::clone(&mailbox));
        (number, mailbox)
    }

    /// The stream of a call, as long as it is kept.
    pub fn stream(&self, number: u64) -> Option<Arc<Mailbox>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.by_number.get(&number).cloned()
    }

    /// What the client is to be told on its stream.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    pub(super) fn belongs_to(&self, identity: &Identity) -> bool {
        self.agent == identity.agent && self.user == identity.user
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) > 0
    }

    /// When it was used last, in seconds since boot.
    pub(super) fn last_used(&self) -> u64 {
        self.last_used.load(Ordering::Relaxed)
    }

    pub(super) fn touch(&self, now: u64) {
        self.last_used.store(now, Ordering::Relaxed);
    }

    /// A call begins, which `cancel` ends: its number among the session's calls.
    fn begin_call(&self, id: RequestId, cancel: CancellationToken) -> u64 {
        let mut calls = self.calls();
        // Asked under the lock: whoever ends the session cancels what it finds there, and nothing later.
        if self.ended.is_cancelled() {
            cancel.cancel();
        }
        calls.last += 1;
        let number = calls.last;
        calls.by_number.insert(number, (id, cancel));
        number
    }

    /// Ends it, its streams and its calls.
    pub(super) fn end(&self) {
        self.ended.cancel();
        for (_, token) in self.calls().by_number.values() {
            token.cancel();
        }
    }
}

/// A use of a session that keeps it from ending for idleness: a call in flight, or an open stream.
#[derive(Debug)]
pub struct Use {
    session: Arc<Session>,
    /// The number of the call that it is.
    call: Option<u64>,
    clock: Clock,
}

impl Use {
    /// By an open stream.
    pub(super) fn of_stream(session: &Arc<Session>, clock: &Clock) -> Self {
        Self::begin(session, None, clock)
    }

    /// By a call with this request id, which `cancel` ends.
    pub(super) fn of_call(
        session: &Arc<Session>,
        id: &RequestId,
        cancel: &CancellationToken,
        clock: &Clock,
    ) -> Self {
        let number = session.begin_call(id.clone(), cancel.clone());
        Self::begin(session, Some(number), clock)
    }

    fn begin(session: &Arc<Session>, call: Option<u64>, clock: &Clock) -> Self {
        session.in_use.fetch_add(1, Ordering::Relaxed);
        Self {
            session: Arc::clone(session),
            call,
            clock: clock.clone(),
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if let Some(number) = self.call {
            self.session.calls().by_number.remove(&number);
        }
        self.session.touch(self.clock.boot_now().as_secs());
        self.session.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}
