//! Calls that go on (2026-07-28, basic/patterns/mrtr): their upstream answered that it needs input, and the agent makes the same
//! call again with it.

use chain::vocabulary::Reason;
use policy::document::Action;

use super::Gate;
use super::bounds;
use super::call::{CallRequest, End};
use super::forward::Basis;
use super::pass::{Stopped, unknown_tool};
use super::refusal::Refusal;
use super::subject::{Parked, Subject};
use super::trail::Trail;
use super::verdict::{Summary, Verdict, denial, verdict};
use crate::control::approvals::Binding;
use crate::upstream::mcp::rounds::wants_input;
use crate::upstream::{AnswerKind, UpstreamAnswer};

/// The right to go on with exactly one call, once. It is made by the gate when a call needs input, and carries the claim of its
/// approval: going on takes no new claim and no new charge.
#[derive(Debug)]
pub struct Continuation {
    binding: Binding,
    is_claimed: bool,
}

impl Gate {
    /// The right to go on with a call whose agent takes rounds, where its upstream asks for input.
    pub(super) fn continuation(
        &self,
        subject: &Subject<'_>,
        answer: &UpstreamAnswer,
        is_claimed: bool,
    ) -> Option<Continuation> {
        if answer.kind != AnswerKind::Result || !wants_input(&answer.raw) {
            return None;
        }
        let binding = self.binding(subject).ok()?;
        Some(Continuation { binding, is_claimed })
    }

    /// Goes on with a call: stops, lease and policies are looked at again, as they are now.
    pub(super) async fn go_on(
        &self,
        continuation: Continuation,
        request: &mut CallRequest<'_>,
        trail: &mut Trail,
    ) -> Result<End, Stopped> {
        let view = self.view();
        trail.came_under(view.revision);
        let arguments = bounds::arguments(&request.arguments)?;
        let subject = self.recognise(request, arguments)?;
        let classification = subject.classification();
        let is_plain_read = classification.plain_read;
        trail.recognised(&subject, &classification, &self.redactor(&view));
        self.not_stopped(&subject)?;
        self.fresh_enough(is_plain_read)?;
        if !subject.is_served {
            return Err(unknown_tool(request.tool).into());
        }
        if self.binding(&subject)? != continuation.binding {
            return Err(Refusal::new(
                Reason::Malformed,
                "requestState belongs to another call; make the call again without it",
            )
            .into());
        }
        let decision = self.decide(&view, &subject, &classification);
        trail.decided(Summary::of(&decision, view.revision));
        let basis = match (decision.action, continuation.is_claimed) {
            (Action::Deny, _) => return Err(denial(&decision, &subject).into()),
            (Action::Allow | Action::HumanApproval, true) => Basis::Continued,
            (Action::Allow | Action::HumanApproval, false) => match verdict(&decision, &subject)? {
                Verdict::Allowed(allowed) => Basis::Allowed(allowed),
                Verdict::NeedsPerson(_) => {
                    return Err(Refusal::new(
                        Reason::Policy,
                        "the call needs the approval of a person since it began; make it again to ask",
                    )
                    .into());
                }
            },
        };
        self.arguments_fit(&subject)?;
        self.room_for_record()?;
        self.intend(trail, is_plain_read).await?;
        let parked = Parked::new(&subject, request.body);
        let registered = self.in_flight.register(parked, request.cancel.clone());
        let permit = self.permit(registered, basis, &subject, view.revision, trail)?;
        if permit.registered().flight.is_cancelled() {
            return Ok(End::Cancelled(permit.registered().flight.cause()));
        }
        let is_claimed = continuation.is_claimed;
        Ok(self.run(&permit, &subject, request, trail, is_claimed).await)
    }
}
