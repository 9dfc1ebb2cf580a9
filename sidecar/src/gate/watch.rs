//! Ends calls in flight when a stop or an edit of a policy is against them.

use std::sync::Arc;

use policy::document::Action;
use tools::json::{Document, Limits, MAX_BYTES, MAX_DEPTH};

use super::Gate;
use super::flight::{CancelCause, Flight};
use super::subject::Judged;

/// Limits for arguments that were accepted before.
const ACCEPTED: Limits = Limits {
    max_bytes: MAX_BYTES,
    max_depth: MAX_DEPTH,
};

impl Gate {
    /// Watches stops and desired state until the sidecar ends. Calls in flight that may no longer run are cancelled.
    pub async fn watch(self: Arc<Self>) {
        let mut stops = self.control.stops_changed();
        let mut desired = self.control.changed();
        loop {
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return,
                changed = stops.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.end_stopped();
                }
                changed = desired.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.end_denied();
                }
            }
        }
    }

    /// Cancels every call in flight, because the sidecar ends.
    pub fn end_all(&self) {
        for flight in self.in_flight.all() {
            flight.end(CancelCause::ShuttingDown);
        }
    }

    fn end_stopped(&self) {
        for flight in self.in_flight.all() {
            if self.not_stopped(&flight.parked.subject(None)).is_err() {
                flight.end(CancelCause::Stopped);
            }
        }
    }

    fn end_denied(&self) {
        for flight in self.in_flight.all() {
            if self.is_denied_now(&flight) {
                flight.end(CancelCause::Denied);
            }
        }
    }

    /// Decides the call again. Arguments that cannot be read again count as denied.
    fn is_denied_now(&self, flight: &Flight) -> bool {
        let parsed = flight
            .parked
            .arguments
            .as_deref()
            .map(|bytes| Document::parse(bytes, ACCEPTED));
        let arguments = match &parsed {
            None => None,
            Some(Ok(document)) => Some(document.root()),
            Some(Err(_)) => return true,
        };
        let view = self.view();
        let mut subject = flight.parked.subject(arguments);
        match self.registry.lookup(subject.tool.name.as_str()) {
            Some(tool)
                if tool.fingerprint == subject.tool.fingerprint && !Arc::ptr_eq(&tool, &subject.tool) =>
            {
                subject.judged = Judged::call(&tool, arguments);
                subject.commanded = self.commanded(&tool, arguments);
                subject.tool = tool;
            }
            Some(_) | None => {}
        }
        let decision = self.decide(&view, &subject, &subject.classification());
        decision.action == Action::Deny
    }
}
