//! The steps that need no verdict of policies: stops, the lease, loops, room for the record.

use std::time::Duration;

use chain::vocabulary::Reason;
use policy::decide::{Call, Decision, Floor};
use tools::classify::Classification;
use tools::operation::Operation;

use super::Gate;
use super::loops::LoopKey;
use super::refusal::Refusal;
use super::subject::Subject;
use crate::control::{Freshness, PinStatus, Snapshot};

/// How often a call that waits for a person may be asked for again in ten seconds, at least.
const ASKED_AGAIN: u32 = 20;

impl Gate {
    /// No emergency stop holds for the call.
    pub(super) fn not_stopped(&self, subject: &Subject<'_>) -> Result<(), Refusal> {
        match self.control.stops().covering(&subject.as_stop_subject()) {
            None => Ok(()),
            Some(stop) => Err(Refusal::new(
                Reason::Stopped,
                format!(
                    "{} is stopped by an operator: {}",
                    subject.tool.name,
                    or_unsaid(&stop.reason)
                ),
            )),
        }
    }

    /// The view is fresh enough for what the call does.
    pub(super) fn fresh_enough(&self, is_plain_read: bool) -> Result<(), Refusal> {
        match (self.control.freshness(), is_plain_read) {
            (Freshness::Fresh, _) | (Freshness::PlainReadsOnly, true) => Ok(()),
            (Freshness::PlainReadsOnly, false) => Err(Refusal::new(
                Reason::Stale,
                "the sidecar has not heard from its control plane for too long; only plain reads run",
            )),
            (Freshness::Nothing, _) => Err(Refusal::new(
                Reason::Stale,
                "the sidecar has not heard from its control plane for too long; nothing runs",
            )),
            (Freshness::Revoked, _) => Err(Refusal::new(
                Reason::NoLease,
                "the control plane has revoked this sidecar; nothing runs",
            )),
            (Freshness::NoSnapshot, _) => Err(Refusal::new(
                Reason::NoLease,
                "the sidecar has no policies yet; it is connecting to its control plane",
            )),
        }
    }

    /// How often the same call may come in ten seconds.
    pub(super) fn loop_limit(&self, view: &Snapshot, subject: &Subject<'_>, is_plain_read: bool) -> u32 {
        if is_polled(subject) {
            return u32::MAX;
        }
        let fleet = if is_plain_read {
            view.settings.loop_plain_reads
        } else {
            view.settings.loop_others
        };
        self.local.loop_max.map_or(fleet, |local| local.min(fleet))
    }

    /// The same call does not come too often.
    pub(super) fn not_looping(&self, key: LoopKey, limit: u32) -> Result<(), Refusal> {
        let came = self.loops.count(key, self.clock.boot_now());
        let limit = if came.is_pending {
            limit.max(ASKED_AGAIN)
        } else {
            limit
        };
        if came.times <= u64::from(limit) {
            return Ok(());
        }
        let refusal = Refusal::new(
            Reason::LoopDetected,
            format!("the same call came more than {limit} times in ten seconds"),
        );
        Err(refusal.retry_after(Duration::from_secs(10)))
    }

    pub(super) fn loop_key(&self, subject: &Subject<'_>) -> LoopKey {
        self.loops.key(
            &subject.identity.agent,
            &subject.tool.name,
            subject.argument_bytes(),
        )
    }

    /// The record of the call would find room.
    pub(super) fn room_for_record(&self) -> Result<(), Refusal> {
        if self.spool.has_room() {
            return Ok(());
        }
        Err(audit_unavailable(&"the queue of records is full"))
    }

    /// The arguments fit the tool's input schema and can be sent, where Toolgate has to look: what MCP servers are sent they
    /// look at themselves.
    pub(super) fn arguments_fit(&self, subject: &Subject<'_>) -> Result<(), Refusal> {
        let tool = &subject.tool;
        let refused = |problem: &dyn std::fmt::Display| {
            let message = format!("the arguments of {} are not accepted: {problem}", tool.name);
            Refusal::new(Reason::InvalidArguments, message)
        };
        if tool.name.operation() != Operation::Tool {
            return Ok(());
        }
        subject.is_program_call().map_err(|error| refused(error))?;
        tool.check_arguments(subject.arguments)
            .map_err(|error| refused(&error))?;
        let upstream = tool
            .upstream
            .as_ref()
            .and_then(|name| self.upstreams.get(name.as_str()));
        let problem = upstream.and_then(|upstream| upstream.refuses(tool.local_name(), subject.arguments));
        problem.map_or(Ok(()), |problem| Err(refused(&problem)))
    }

    /// Policies, guardrails and floors, then grants.
    pub(super) fn decide(
        &self,
        view: &Snapshot,
        subject: &Subject<'_>,
        classification: &Classification,
    ) -> Decision {
        let floor = floor(view, subject);
        let call = subject.as_policy_call(classification, floor.as_slice());
        let decision = self.decide_about(view, subject, &call);
        self.strictest(view, subject, decision)
    }

    /// Policies, guardrails and floors, then grants, about one name.
    pub(super) fn decide_about(&self, view: &Snapshot, subject: &Subject<'_>, call: &Call<'_>) -> Decision {
        let mut decision = view.policies.decide(call);
        view.grants.apply(
            &mut decision,
            &subject.namespace,
            &subject.identity.agent,
            call.tool,
            self.control.database_now(),
        );
        decision
    }
}

/// Whether a request is made again and again on purpose: clients poll the tasks that they began.
fn is_polled(subject: &Subject<'_>) -> bool {
    let is_method = subject.tool.name.operation() == Operation::Method;
    is_method && matches!(subject.tool.asked_for(), "tasks/get" | "tasks/result")
}

/// The floor that holds for the called name, whatever the arguments are: the one of its pin; of what a program's own
/// configuration declares, that of the program.
pub(super) fn floor(view: &Snapshot, subject: &Subject<'_>) -> Option<Floor> {
    match &subject.commanded {
        Some(commanded) => commanded.floor,
        None => pin_floor(view, subject),
    }
}

fn pin_floor(view: &Snapshot, subject: &Subject<'_>) -> Option<Floor> {
    let is_tool = subject.tool.name.operation() == Operation::Tool;
    if !view.settings.pin_tools || !subject.is_served || !is_tool {
        return None;
    }
    let tool = &subject.tool;
    match view
        .pins
        .status(subject.namespace.as_str(), tool.name.as_str(), &tool.fingerprint)
    {
        PinStatus::Off | PinStatus::Pinned => None,
        PinStatus::New => Some(Floor::PIN_NEW),
        PinStatus::Changed => Some(Floor::PIN_CHANGED),
    }
}

/// The refusal for a record that cannot be kept.
pub(super) fn audit_unavailable(why: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(
        Reason::AuditUnavailable,
        format!("the call cannot be recorded, so it is not made: {why}"),
    )
}

fn or_unsaid(reason: &str) -> &str {
    if reason.is_empty() {
        "no reason was given"
    } else {
        reason
    }
}
