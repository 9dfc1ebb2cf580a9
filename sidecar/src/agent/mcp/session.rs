//! Legacy sessions: made by `initialize`, owned by the identity that made them.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use net::clock::Clock;
use tokio_util::sync::CancellationToken;
use tools::id::{AgentId, UserId};

use super::envelope::RequestId;
use super::mailbox::Mailbox;
use super::questions::Questions;
use super::tasks::Tasks;
use super::version::Legacy;
use chain::hash::hex;

use crate::gate::random_bytes;
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
    calls: Mutex<HashMap<RequestId, CancellationToken>>,
    mailbox: Arc<Mailbox>,
    /// What its client says that it can do: a raw JSON object.
    capabilities: Bytes,
    can_be_asked: bool,
    questions: Questions,
    tasks: Tasks,
    streams: Mutex<Streams>,
    origin: OnceLock<Arc<Origin>>,
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

    /// Cancels the call with this request id; nothing happens when there is none.
    pub fn cancel(&self, id: &RequestId) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = calls.get(id) {
            token.cancel();
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

    fn belongs_to(&self, identity: &Identity) -> bool {
        self.agent == identity.agent && self.user == identity.user
    }
}

/// A use of a session that keeps it from ending for idleness: a call in flight, or an open stream.
#[derive(Debug)]
pub struct Use {
    session: Arc<Session>,
    call: Option<RequestId>,
    clock: Clock,
}

impl Use {
    fn begin(session: Arc<Session>, call: Option<RequestId>, clock: &Clock) -> Self {
        session.in_use.fetch_add(1, Ordering::Relaxed);
        Self {
            session,
            call,
            clock: clock.clone(),
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if let Some(id) = &self.call {
            let mut calls = self.session.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.remove(id);
        }
        self.session
            .last_used
            .store(self.clock.boot_now().as_secs(), Ordering::Relaxed);
        self.session.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why no session was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooManySessions {
    /// Over all identities.
    #[error("this sidecar already has {limit} sessions; end one, or try again later")]
    Everybody {
        /// How many there may be.
        limit: usize,
    },
    /// Of one identity, and all of them are in use.
    #[error("this agent already has {limit} sessions in use; end one, or try again later")]
    Identity {
        /// How many there may be.
        limit: usize,
    },
}

/// One identity's share of all sessions.
const SHARE: usize = 4;

/// All sessions of a sidecar.
#[derive(Debug)]
pub struct Sessions {
    by_id: Mutex<HashMap<String, Arc<Session>>>,
    limit: usize,
    idle: Duration,
    clock: Clock,
}

impl Sessions {
    /// At most `limit` at once; one that is not used for `idle` ends.
    pub fn new(limit: usize, idle: Duration, clock: Clock) -> Self {
        Self {
            by_id: Mutex::default(),
            limit,
            idle,
            clock,
        }
    }

    /// Begins a session of `identity`.
    ///
    /// # Errors
    /// When there are too many that are in use.
    pub fn begin(
        &self,
        identity: &Identity,
        version: Legacy,
        capabilities: Bytes,
    ) -> Result<Arc<Session>, TooManySessions> {
        let session = Arc::new(Session {
            id: hex(&random_bytes::<16>()),
            agent: identity.agent.clone(),
            user: identity.user.clone(),
            version,
            last_used: AtomicU64::new(self.clock.boot_now().as_secs()),
            in_use: AtomicUsize::new(0),
            ended: CancellationToken::new(),
            calls: Mutex::default(),
            mailbox: Arc::new(Mailbox::resumable()),
            can_be_asked: Asks::ALL.is_any_of(&capabilities),
            capabilities,
            questions: Questions::default(),
            tasks: Tasks::default(),
            streams: Mutex::default(),
            origin: OnceLock::new(),
        });
        self.end_idle();
        let mut by_id = self.lock();
        self.make_room(&mut by_id, identity)?;
        if by_id.len() >= self.limit {
            return Err(TooManySessions::Everybody { limit: self.limit });
        }
        by_id.insert(session.id.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// An identity that has its share gives up the session that it has not used for the longest.
    fn make_room(
        &self,
        by_id: &mut HashMap<String, Arc<Session>>,
        identity: &Identity,
    ) -> Result<(), TooManySessions> {
        let limit = (self.limit / SHARE).max(1);
        let own = || by_id.values().filter(|session| session.belongs_to(identity));
        if own().count() < limit {
            return Ok(());
        }
        let oldest = own()
            .filter(|session| session.in_use.load(Ordering::Relaxed) == 0)
            .min_by_key(|session| session.last_used.load(Ordering::Relaxed))
            .map(|session| session.id.clone());
        let given_up = oldest
            .and_then(|id| by_id.remove(&id))
            .ok_or(TooManySessions::Identity { limit })?;
        finish(&given_up);
        Ok(())
    }

    /// The session with this id, if it belongs to `identity`.
    pub fn find(&self, id: &str, identity: &Identity) -> Option<Arc<Session>> {
        let session = self
            .lock()
            .get(id)
            .filter(|session| session.belongs_to(identity))
            .cloned()?;
        session
            .last_used
            .store(self.clock.boot_now().as_secs(), Ordering::Relaxed);
        Some(session)
    }

    /// Marks the session as used by a stream until the answer is dropped.
    pub fn keep(&self, session: &Arc<Session>) -> Use {
        Use::begin(Arc::clone(session), None, &self.clock)
    }

    /// Marks the session as used by a call, which a `notifications/cancelled` with its id cancels.
    pub fn call(&self, session: &Arc<Session>, id: &RequestId, cancel: &CancellationToken) -> Use {
        let mut calls = session.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.insert(id.clone(), cancel.clone());
        drop(calls);
        Use::begin(Arc::clone(session), Some(id.clone()), &self.clock)
    }

    /// Ends the session with this id, its streams and its calls, if it belongs to `identity`. Says whether it did.
    pub fn end(&self, id: &str, identity: &Identity) -> bool {
        let mut by_id = self.lock();
        if !by_id.get(id).is_some_and(|session| session.belongs_to(identity)) {
            return false;
        }
        let ended = by_id.remove(id);
        drop(by_id);
        if let Some(session) = ended {
            finish(&session);
        }
        true
    }

    /// Ends those that were not used for the idle time.
    pub fn end_idle(&self) {
        let now = self.clock.boot_now().as_secs();
        let idle = self.idle.as_secs();
        self.lock().retain(|_, session| {
            let used = session.in_use.load(Ordering::Relaxed) > 0
                || now.saturating_sub(session.last_used.load(Ordering::Relaxed)) < idle;
            if !used {
                finish(session);
            }
            used
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn finish(session: &Session) {
    session.ended.cancel();
    let calls = session.calls.lock().unwrap_or_else(PoisonError::into_inner);
    for token in calls.values() {
        token.cancel();
    }
}

#[cfg(test)]
mod tests {
    use crate::identity::Strength;

    use super::*;

    const NOTHING: Bytes = Bytes::from_static(b"{}");

    fn identity(agent: &str) -> Identity {
        Identity {
            agent: agent.parse().unwrap(),
            strength: Strength::Asserted,
            user: None,
        }
    }

    fn sessions(limit: usize) -> (Sessions, Clock) {
        let clock = Clock::manual();
        (
            Sessions::new(limit, Duration::from_secs(1800), clock.clone()),
            clock,
        )
    }

    #[test]
    fn a_session_belongs_to_the_identity_that_made_it() {
        let (sessions, _) = sessions(10);
        let session = sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        assert!(sessions.find(session.id(), &identity("a")).is_some());
        assert!(sessions.find(session.id(), &identity("b")).is_none());
        assert!(!sessions.end(session.id(), &identity("b")));
        assert!(sessions.end(session.id(), &identity("a")));
        assert!(session.ended().is_cancelled());
        assert!(sessions.find(session.id(), &identity("a")).is_none());
    }

    #[test]
    fn an_idle_session_ends_and_one_in_use_does_not() {
        let (sessions, clock) = sessions(10);
        let idle = sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        let streaming = sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        let held = sessions.keep(&streaming);
        clock.advance(Duration::from_secs(1801));
        sessions.end_idle();
        assert!(idle.ended().is_cancelled());
        assert!(!streaming.ended().is_cancelled());
        drop(held);
        sessions.end_idle();
        assert!(!streaming.ended().is_cancelled(), "it was used just now");
    }

    #[test]
    fn one_identity_has_a_share_of_the_sessions() {
        let (sessions, clock) = sessions(8);
        let first = sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        clock.advance(Duration::from_secs(1));
        let second = sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        let held = sessions.keep(&second);
        let third = sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        assert!(first.ended().is_cancelled() && !second.ended().is_cancelled());
        let also_held = sessions.keep(&third);
        assert!(sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).is_err());
        assert!(sessions.begin(&identity("b"), Legacy::NEWEST, NOTHING).is_ok());
        drop((held, also_held));
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let (sessions, clock) = sessions(1);
        sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        assert!(sessions.begin(&identity("b"), Legacy::NEWEST, NOTHING).is_err());
        clock.advance(Duration::from_secs(1800));
        assert!(sessions.begin(&identity("b"), Legacy::NEWEST, NOTHING).is_ok());
    }
}
