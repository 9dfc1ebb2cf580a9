//! Forwarding, which only a permit makes possible.

use std::sync::Arc;
use std::time::Duration;

use chain::vocabulary::Reason;
use policy::decide::Decision;
use policy::document::Action;
use tools::operation::Operation;

use super::Gate;
use super::approve::Claimed;
use super::call::CallRequest;
use super::flight::Registered;
use super::refusal::Refusal;
use super::subject::{Judged, Subject};
use super::trail::Trail;
use super::verdict::{Allowed, Summary, denial};
use crate::control::Revision;
use crate::identity::Strength;
use crate::spool::Intent;
use crate::upstream::{ForwardedIdentity, UpstreamAnswer, UpstreamError, UpstreamRequest};

/// Why a call may run.
#[derive(Debug)]
pub(super) enum Basis {
    /// Policies, or a grant.
    Allowed(Allowed),
    /// A person.
    Claimed(Claimed),
    /// A person, in an earlier round of the same call.
    Continued,
}

/// A call that may be forwarded: its intent is in the spool, it is registered as in flight, and stops, lease and decision
/// were looked at after that.
#[derive(Debug)]
pub(super) struct Permit {
    registered: Registered,
}

impl Permit {
    pub(super) fn registered(&self) -> &Registered {
        &self.registered
    }
}

impl Gate {
    /// The intent of the call is in the spool when this returns.
    pub(super) async fn intend(&self, trail: &mut Trail, is_plain_read: bool) -> Result<(), Refusal> {
        let intent = Intent {
            source: &mut trail.record,
            payload: &trail.payload,
            plain_read: is_plain_read,
        };
        let open = self
            .spool
            .begin(intent)
            .await
            .map_err(|error| super::checks::audit_unavailable(&error))?;
        trail.open = Some(open);
        net::crash::passes(net::crash::Point::IntentKept);
        Ok(())
    }

    /// Looks at stops, the lease and the decision once more, now that the call is registered. `decided_at` is the revision
    /// that was decided at before.
    pub(super) fn permit(
        &self,
        registered: Registered,
        basis: Basis,
        subject: &Subject<'_>,
        decided_at: Revision,
        trail: &mut Trail,
    ) -> Result<Permit, Refusal> {
        self.not_stopped(subject)?;
        let classification = subject.classification();
        self.fresh_enough(classification.plain_read)?;
        let view = self.view();
        self.is_unchanged(subject)?;
        let must_decide = match &basis {
            Basis::Claimed(_) | Basis::Continued => true,
            // A grant may have ended since.
            Basis::Allowed(_) => view.revision != decided_at || trail.summary.grant.is_some(),
        };
        if must_decide {
            let decision = self.decide(&view, subject, &classification);
            let holds = still_holds(&basis, &decision, subject);
            trail.decided(Summary::of(&decision, view.revision));
            holds?;
        }
        Ok(Permit { registered })
    }

    /// The tool is still the one that was decided about: its upstream may have declared another under its name since then.
    fn is_unchanged(&self, subject: &Subject<'_>) -> Result<(), Refusal> {
        let name = &subject.tool.name;
        if name.operation() != Operation::Tool {
            // What was decided about is the name, which is what is forwarded.
            return Ok(());
        }
        match self.served(name.as_str()) {
            Some(tool) if tool.fingerprint == subject.tool.fingerprint => {
                let is_as_judged = Arc::ptr_eq(&tool, &subject.tool)
                    || Judged::call(&tool, subject.arguments) == subject.judged;
                if is_as_judged && self.others_are_as_judged(subject) {
                    return Ok(());
                }
                Err(Refusal::new(
                    Reason::Policy,
                    format!(
                        "what is known of {name} was corrected while the call waited; make the call again"
                    ),
                ))
            }
            Some(_) => Err(Refusal::new(
                Reason::Pin,
                format!("{name} has changed while the call waited; list the tools and make the call again"),
            )),
            None => Err(Refusal::new(
                Reason::UnknownTool,
                format!("{name} is no longer served here"),
            )),
        }
    }

    /// Forwards the call. The answer, or why there is none, and how long the upstream took.
    pub(super) async fn forward(
        &self,
        permit: &Permit,
        subject: &Subject<'_>,
        request: &mut CallRequest<'_>,
        trail: &Trail,
    ) -> (Result<UpstreamAnswer, UpstreamError>, Duration) {
        let began = self.clock.boot_now();
        if let Some(result) = request.other.as_ref().and_then(|other| other.answer.clone()) {
            return (Ok(UpstreamAnswer::result(result)), Duration::ZERO);
        }
        let answer = match subject
            .tool
            .upstream
            .as_ref()
            .and_then(|name| self.upstreams.get(name.as_str()))
        {
            Some(upstream) => {
                let forwarded = self.upstream_request(permit, subject, request, trail);
                upstream.call(forwarded).await
            }
            None => Err(UpstreamError::Unavailable {
                upstream: Arc::from(subject.tool.name.as_str()),
                detail: "it is no longer configured".to_owned(),
            }),
        };
        (answer, self.clock.since(began))
    }

    fn upstream_request(
        &self,
        permit: &Permit,
        subject: &Subject<'_>,
        request: &mut CallRequest<'_>,
        trail: &Trail,
    ) -> UpstreamRequest {
        let slice = |raw: &[u8]| request.body.slice_ref(raw);
        let other = request.other.as_ref();
        UpstreamRequest {
            method: other.map(|other| Arc::clone(&other.method)),
            tool: Arc::from(subject.tool.asked_for()),
            fingerprint: Some(subject.tool.fingerprint),
            arguments: subject
                .arguments
                .filter(|_| other.is_none())
                .map(|node| slice(node.raw())),
            meta: request.meta.map(|node| slice(node.raw())),
            extra: other.map_or_else(|| request.extra.clone(), |other| Some(other.params.clone())),
            traceparent: Some(trail.trace.traceparent()),
            tracestate: request.tracestate.take(),
            identity: forwarded_identity(subject),
            origin: request.origin.take(),
            audience: request.audience.take(),
            log_level: None,
            cancel: permit.registered.flight.cancel_token().clone(),
            timeout: None,
            program: subject.program_call().cloned(),
        }
    }
}

/// Whether what was decided now still lets the call run. A person's approval covers `human_approval`; nothing covers `deny`.
fn still_holds(basis: &Basis, decision: &Decision, subject: &Subject<'_>) -> Result<(), Refusal> {
    match (decision.action, basis) {
        (Action::Allow, Basis::Allowed(_) | Basis::Claimed(_) | Basis::Continued)
        | (Action::HumanApproval, Basis::Claimed(_) | Basis::Continued) => Ok(()),
        (Action::HumanApproval, Basis::Allowed(_)) => Err(Refusal::new(
            Reason::Policy,
            format!(
                "{} needs the approval of a person since a moment ago; make the call again to ask",
                subject.tool.name
            ),
        )),
        (Action::Deny, Basis::Allowed(_) | Basis::Claimed(_) | Basis::Continued) => {
            Err(denial(decision, subject))
        }
    }
}

/// Who calls, as an upstream that is told may know: never a nameless caller, and a user only when proven.
fn forwarded_identity(subject: &Subject<'_>) -> Option<ForwardedIdentity> {
    let identity = &subject.identity;
    let user = || identity.user.as_ref().map(ToString::to_string);
    match identity.strength {
        Strength::Anonymous => None,
        Strength::Asserted | Strength::Bound => Some(ForwardedIdentity {
            agent: identity.agent.to_string(),
            user: None,
        }),
        Strength::Verified => Some(ForwardedIdentity {
            agent: identity.agent.to_string(),
            user: user(),
        }),
    }
}
