//! REST calls that were answered with 202: what became of them, for `GET /calls/{id}`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use net::clock::Clock;

use crate::identity::Identity;

/// Calls remembered at most; the oldest ended ones go first.
const CAPACITY: usize = 1024;
/// Bytes of outcomes kept at most.
const MAX_BYTES: usize = 32 << 20;
/// How long an outcome is kept.
const KEPT: Duration = Duration::from_secs(600);

/// What is known of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The HTTP status that the call would have been answered with; 202 while it waits.
    pub status: StatusCode,
    /// The body of that answer.
    pub body: Bytes,
}

/// Bounded memory of deferred calls. A call is only shown to the identity that made it.
#[derive(Debug)]
pub struct Calls {
    state: Mutex<State>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct State {
    by_id: HashMap<String, Entry>,
    ended: VecDeque<(String, Duration)>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    owner: Identity,
    known: Known,
}

impl Calls {
    /// Remembers nothing yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            state: Mutex::default(),
            clock,
        }
    }

    /// Remembers a call that is answered before its end. Says whether there was room: without room the call still runs.
    pub fn defer(&self, id: &str, owner: &Identity, pending: Known) -> bool {
        let mut state = self.lock();
        state.forget_old(self.clock.boot_now());
        if state.by_id.len() >= CAPACITY && !state.forget_oldest() {
            return false;
        }
        let entry = Entry {
            owner: owner.clone(),
            known: pending,
        };
        state.by_id.insert(id.to_owned(), entry);
        true
    }

    /// Keeps how a deferred call ended. Of other calls nothing is kept.
    pub fn end(&self, id: &str, outcome: impl FnOnce() -> Known) {
        let mut state = self.lock();
        if !state.by_id.contains_key(id) {
            return;
        }
        let outcome = outcome();
        let size = outcome.body.len();
        while state.bytes + size > MAX_BYTES && state.forget_oldest() {}
        if let Some(entry) = state.by_id.get_mut(id) {
            entry.known = outcome;
            state.bytes += size;
            let until = self.clock.boot_now().saturating_add(KEPT);
            state.ended.push_back((id.to_owned(), until));
        }
    }

    /// What is known of a call of `owner`.
    pub fn find(&self, id: &str, owner: &Identity) -> Option<Known> {
        let mut state = self.lock();
        state.forget_old(self.clock.boot_now());
        let entry = state.by_id.get(id)?;
        let is_owner = entry.owner.agent == owner.agent && entry.owner.user == owner.user;
        is_owner.then(|| entry.known.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_old(&mut self, now: Duration) {
        while self.ended.front().is_some_and(|(_, until)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((id, _)) = self.ended.pop_front() else {
            return false;
        };
        if let Some(entry) = self.by_id.remove(&id) {
            self.bytes = self.bytes.saturating_sub(entry.known.body.len());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::identity::Strength;

    use super::*;

    fn identity(agent: &str) -> Identity {
        Identity {
            agent: agent.parse().unwrap(),
            strength: Strength::Asserted,
            user: None,
        }
    }

    fn known(status: StatusCode, body: &'static str) -> Known {
        Known {
            status,
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn a_deferred_call_is_known_to_its_caller_until_it_is_old() {
        let clock = Clock::manual();
        let calls = Calls::new(clock.clone());
        assert!(calls.defer("1", &identity("a"), known(StatusCode::ACCEPTED, "pending")));
        assert_eq!(
            calls.find("1", &identity("a")).unwrap().status,
            StatusCode::ACCEPTED
        );
        assert_eq!(calls.find("1", &identity("b")), None);
        calls.end("1", || known(StatusCode::OK, "done"));
        calls.end("2", || known(StatusCode::OK, "never deferred"));
        assert_eq!(calls.find("1", &identity("a")).unwrap().body, "done");
        assert_eq!(calls.find("2", &identity("a")), None);
        clock.advance(KEPT);
        assert_eq!(calls.find("1", &identity("a")), None);
    }

    #[test]
    fn the_memory_is_bounded() {
        let calls = Calls::new(Clock::manual());
        for call in 0..CAPACITY {
            assert!(calls.defer(&call.to_string(), &identity("a"), known(StatusCode::ACCEPTED, "")));
        }
        assert!(!calls.defer("more", &identity("a"), known(StatusCode::ACCEPTED, "")));
        calls.end("0", || known(StatusCode::OK, ""));
        assert!(calls.defer("more", &identity("a"), known(StatusCode::ACCEPTED, "")));
    }
}
