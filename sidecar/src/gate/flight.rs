//! Calls in flight: registered before they are forwarded, so that a stop or an edit of a policy can end them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use super::subject::Parked;

/// Why a call was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// Its caller no longer wants it.
    Client,
    /// An emergency stop.
    Stopped,
    /// A policy denies it now.
    Denied,
    /// The sidecar ends.
    ShuttingDown,
}

impl fmt::Display for CancelCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "its caller cancelled it",
            Self::Stopped => "an operator has stopped it",
            Self::Denied => "a policy denies it now",
            Self::ShuttingDown => "the sidecar is shutting down",
        })
    }
}

/// One call in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) parked: Parked,
    cancel: CancellationToken,
    cause: AtomicU8,
}

impl Flight {
    /// Ends the call; the first cause counts.
    pub(super) fn end(&self, cause: CancelCause) {
        let code = match cause {
            CancelCause::Client => 0,
            CancelCause::Stopped => 1,
            CancelCause::Denied => 2,
            CancelCause::ShuttingDown => 3,
        };
        if self.cancel.is_cancelled() {
            return;
        }
        // INVARIANT: the cause is there before the token tells anybody.
        let _ = self
            .cause
            .compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        self.cancel.cancel();
    }

    /// Why the call was ended; a token that was cancelled from outside was so by the caller.
    pub(super) fn cause(&self) -> CancelCause {
        match self.cause.load(Ordering::SeqCst) {
            1 => CancelCause::Stopped,
            2 => CancelCause::Denied,
            3 => CancelCause::ShuttingDown,
            _ => CancelCause::Client,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub(super) fn cancel_token(&self) -> &CancellationToken {
        &self.cancel
    }
}

/// All calls in flight.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    flights: Arc<Mutex<Flights>>,
}

#[derive(Debug, Default)]
struct Flights {
    next: u64,
    by_number: HashMap<u64, Arc<Flight>>,
}

impl InFlight {
    /// Registers a call until the guard is dropped. `cancel` is the caller's own token.
    pub(super) fn register(&self, parked: Parked, cancel: CancellationToken) -> Registered {
        let flight = Arc::new(Flight {
            parked,
            cancel,
            cause: AtomicU8::new(0),
        });
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.next += 1;
        let number = flights.next;
        flights.by_number.insert(number, Arc::clone(&flight));
        Registered {
            flight,
            number,
            flights: Arc::clone(&self.flights),
        }
    }

    /// Those in flight now.
    pub(super) fn all(&self) -> Vec<Arc<Flight>> {
        let flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.by_number.values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.flights
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .by_number
            .len()
    }
}

/// A registered call; it is no longer in flight when this is dropped.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) flight: Arc<Flight>,
    number: u64,
    flights: Arc<Mutex<Flights>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use tools::model::Tool;

    use crate::identity::{Identity, Strength};

    use super::*;

    fn registered(all: &InFlight, token: &CancellationToken) -> Registered {
        let parked = Parked {
            namespace: tools::id::Namespace::default(),
            identity: Identity {
                agent: "a".parse().unwrap(),
                strength: Strength::Asserted,
                user: None,
            },
            session: None,
            tool: Arc::new(Tool::host("Bash".parse().unwrap())),
            arguments: None,
            commanded: None,
        };
        all.register(parked, token.clone())
    }

    #[test]
    fn a_call_is_in_flight_until_its_guard_is_dropped() {
        let all = InFlight::default();
        let guard = registered(&all, &CancellationToken::new());
        assert_eq!(all.len(), 1);
        drop(guard);
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn the_first_cause_of_an_end_counts() {
        let all = InFlight::default();
        let token = CancellationToken::new();
        let guard = registered(&all, &token);
        guard.flight.end(CancelCause::Stopped);
        guard.flight.end(CancelCause::ShuttingDown);
        assert!(token.is_cancelled());
        assert_eq!(guard.flight.cause(), CancelCause::Stopped);
    }

    #[test]
    fn a_token_that_was_cancelled_from_outside_was_so_by_the_caller() {
        let all = InFlight::default();
        let token = CancellationToken::new();
        let guard = registered(&all, &token);
        token.cancel();
        guard.flight.end(CancelCause::Stopped);
        assert_eq!(guard.flight.cause(), CancelCause::Client);
    }
}
