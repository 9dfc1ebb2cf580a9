//! All legacy sessions of a sidecar: how many there are, whose they are, and when they end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chain::hash::hex;
use net::clock::Clock;
use tokio_util::sync::CancellationToken;

use super::envelope::RequestId;
use super::session::{Session, Use};
use super::version::Legacy;
use crate::gate::random_bytes;
use crate::identity::Identity;

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
        let id = hex(&random_bytes::<16>());
        let now = self.clock.boot_now().as_secs();
        let session = Arc::new(Session::new(id, identity, version, capabilities, now));
        self.end_idle();
        let mut by_id = self.lock();
        self.make_room(&mut by_id, identity)?;
        if by_id.len() >= self.limit {
            return Err(TooManySessions::Everybody { limit: self.limit });
        }
        by_id.insert(session.id().to_owned(), Arc::clone(&session));
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
            .filter(|session| !session.is_in_use())
            .min_by_key(|session| session.last_used())
            .map(|session| session.id().to_owned());
        let given_up = oldest
            .and_then(|id| by_id.remove(&id))
            .ok_or(TooManySessions::Identity { limit })?;
        given_up.end();
        Ok(())
    }

    /// The session with this id, if it belongs to `identity`.
    pub fn find(&self, id: &str, identity: &Identity) -> Option<Arc<Session>> {
        let session = self
            .lock()
            .get(id)
            .filter(|session| session.belongs_to(identity))
            .cloned()?;
        session.touch(self.clock.boot_now().as_secs());
        Some(session)
    }

    /// Marks the session as used by a stream until the answer is dropped.
    pub fn keep(&self, session: &Arc<Session>) -> Use {
        Use::of_stream(session, &self.clock)
    }

    /// Marks the session as used by a call, which a `notifications/cancelled` with its id cancels.
    pub fn call(&self, session: &Arc<Session>, id: &RequestId, cancel: &CancellationToken) -> Use {
        Use::of_call(session, id, cancel, &self.clock)
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
            session.end();
        }
        true
    }

    /// Ends those that were not used for the idle time.
    pub fn end_idle(&self) {
        let now = self.clock.boot_now().as_secs();
        let idle = self.idle.as_secs();
        self.lock().retain(|_, session| {
            let used = session.is_in_use() || now.saturating_sub(session.last_used()) < idle;
            if !used {
                session.end();
            }
            used
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope;
    use super::*;
    use crate::identity::Strength;

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
    fn calls_with_one_id_are_cancelled_all_and_with_their_session_whenever_they_began() {
        let (sessions, _) = sessions(10);
        let session = sessions.begin(&identity("a"), Legacy::NEWEST, NOTHING).unwrap();
        let document = envelope::parse(b"1", 16, 1).unwrap();
        let id = RequestId::read(document.root()).unwrap();
        let [first, second, late] = [(); 3].map(|()| CancellationToken::new());
        let over = sessions.call(&session, &id, &first);
        let _under_way = sessions.call(&session, &id, &second);
        drop(over);
        session.cancel(&id);
        assert!(second.is_cancelled() && !first.is_cancelled());
        assert!(sessions.end(session.id(), &identity("a")));
        let _too_late = sessions.call(&session, &id, &late);
        assert!(late.is_cancelled());
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
