//! The way of a call through the gate, in the order of DESIGN.md, section 2.

use std::sync::Arc;

use chain::vocabulary::{Outcome, Reason};
use tools::id::ToolName;
use tools::json::Node;
use tools::model::Tool;

use super::Gate;
use super::bounds;
use super::call::{CallReport, CallRequest, End};
use super::flight::CancelCause;
use super::forward::{Basis, Permit};
use super::refusal::Refusal;
use super::subject::{Judged, Parked, Subject};
use super::trail::{Ending, Trail};
use super::verdict::{Summary, Verdict, verdict};
use crate::upstream::{AnswerKind, UpstreamAnswer, UpstreamError};

/// Why a call came to its end before its answer.
#[derive(Debug)]
pub(super) enum Stopped {
    /// It does not run.
    Refused(Refusal),
    /// Its caller no longer wants it.
    Cancelled,
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Gate {
    /// Lets one call pass, or not. Whatever happens, there is a record of it.
    pub async fn call(&self, mut request: CallRequest<'_>) -> CallReport {
        let namespace = self.namespace();
        let mut trail = Trail::of_call(&self.clock, &namespace, &request);
        let passed = match request.continuation.take() {
            None => self.pass(&mut request, &mut trail).await,
            Some(continuation) => Box::pin(self.go_on(*continuation, &mut request, &mut trail)).await,
        };
        let end = match passed {
            Ok(end) => end,
            Err(Stopped::Cancelled) => End::Cancelled(CancelCause::Client),
            Err(Stopped::Refused(refusal)) => End::Refused(refusal),
        };
        self.report(trail, end, &mut request)
    }

    /// The order of the gate. A step that fails ends the way with a refusal; only the last ones can forward.
    async fn pass(&self, request: &mut CallRequest<'_>, trail: &mut Trail) -> Result<End, Stopped> {
        let view = self.view();
        trail.came_under(view.revision);
        let arguments = bounds::arguments(&request.arguments)?;
        let subject = self.recognise(request, arguments)?;
        let classification = subject.classification();
        let is_plain_read = classification.plain_read;
        let redactor = self.redactor(&view);
        trail.recognised(&subject, &classification, &redactor);

        self.not_stopped(&subject)?;
        self.fresh_enough(is_plain_read)?;
        self.within_burst(&view, &subject).await?;
        let key = self.loop_key(&subject);
        self.not_looping(key, self.loop_limit(&view, &subject, is_plain_read))?;
        if !subject.is_served {
            return Err(unknown_tool(request.tool).into());
        }

        let decision = self.decide(&view, &subject, &classification);
        trail.decided(Summary::of(&decision, view.revision));
        let verdict = verdict(&decision, &subject).map_err(|refusal| self.hide(refusal, &view, &subject))?;

        self.arguments_fit(&subject)?;
        self.room_for_record()?;
        let approved = match verdict {
            Verdict::Allowed(allowed) => Err(allowed),
            Verdict::NeedsPerson(proof) => {
                Box::pin(self.peek_total(&view, &subject)).await?;
                // Boxed, as the claim is: what waits for people must not make the state of every call larger.
                let asking = self.approved(proof, &subject, &decision, request, trail, key);
                Ok(Box::pin(asking).await?)
            }
        };
        let reserved = self.reserve_total(&view, &subject).await?;
        self.intend(trail, is_plain_read).await?;
        let parked = Parked::new(&subject, request.body);
        let registered = self.in_flight.register(parked, request.cancel.clone());
        let is_claimed = approved.is_ok();
        let basis = match approved {
            Err(allowed) => Basis::Allowed(allowed),
            Ok(approved) => Basis::Claimed(Box::pin(self.claim(approved, trail)).await?),
        };
        let permit = self.permit(registered, basis, &subject, view.revision, trail)?;
        if permit.registered().flight.is_cancelled() {
            return Ok(End::Cancelled(permit.registered().flight.cause()));
        }

        reserved.spend();
        Ok(self.run(&permit, &subject, request, trail, is_claimed).await)
    }

    /// Forwards the call, and says how it ended.
    pub(super) async fn run(
        &self,
        permit: &Permit,
        subject: &Subject<'_>,
        request: &mut CallRequest<'_>,
        trail: &mut Trail,
        is_claimed: bool,
    ) -> End {
        let takes_rounds = request.origin.as_ref().is_some_and(|origin| origin.takes_rounds);
        let (answer, took) = self.forward(permit, subject, request, trail).await;
        trail.forwarded(took);
        match answer {
            Ok(answer) => {
                trail.record.exit_code = answer.exit_code;
                if takes_rounds {
                    request.continuation = self.continuation(subject, &answer, is_claimed).map(Box::new);
                }
                End::Answered(answer)
            }
            Err(UpstreamError::Cancelled { .. }) => End::Cancelled(permit.registered().flight.cause()),
            Err(error) => End::Failed(error),
        }
    }

    /// Lookup: what the agent means by the name. A name that nothing here has is recognised too, and not served.
    pub(super) fn recognise<'d>(
        &self,
        request: &CallRequest<'d>,
        arguments: Option<Node<'d>>,
    ) -> Result<Subject<'d>, Refusal> {
        let served = match &request.other {
            Some(other) => Some(Arc::clone(&other.subject)),
            None => self.lookup(request.names, request.tool),
        };
        let is_served = served.is_some();
        let tool = match served {
            Some(tool) => tool,
            None => {
                let name = ToolName::try_from(request.tool).map_err(|_| unknown_tool(request.tool))?;
                Arc::new(Tool::host(name))
            }
        };
        Ok(Subject {
            namespace: self.namespace(),
            identity: request.identity.clone(),
            session: request.session.clone(),
            judged: Judged::call(&tool, arguments),
            commanded: self.commanded(&tool, arguments),
            tool,
            is_served,
            arguments,
        })
    }

    /// Writes the record, counts, and says how it ended.
    fn report(&self, trail: Trail, end: End, request: &mut CallRequest<'_>) -> CallReport {
        let ending = ending(&end);
        let latency = trail.elapsed();
        let tool = trail.record.tool.as_deref().unwrap_or(request.tool).to_owned();
        let approval = trail.record.approval.as_ref().map(|approval| approval.id.clone());
        let report = CallReport {
            id: trail.id.clone(),
            trace_id: trail.trace.trace_id.clone(),
            agent: request.identity.agent.to_string(),
            tool,
            summary: trail.summary.clone(),
            approval,
            upstream: trail.record.upstream.clone(),
            continuation: request.continuation.take(),
            latency,
            end,
        };
        self.metrics
            .call(&report, ending.outcome, trail.decision_took, trail.upstream_took);
        self.write(trail, ending);
        report
    }

    /// Puts the record in the spool, in the intent's place where there is one.
    pub(super) fn write(&self, trail: Trail, ending: Ending) {
        let id = trail.id.clone();
        let (draft, open) = trail.end(ending);
        let written = match open {
            Some(open) => open.finish(draft),
            None => self.spool.record(draft),
        };
        if let Err(error) = written {
            self.metrics.record_not_kept();
            tracing::error!(%error, call = id, "the record of a call was not kept");
        }
    }
}

pub(super) fn unknown_tool(name: &str) -> Refusal {
    let shown: String = name
        .chars()
        .filter(|character| !character.is_control())
        .take(128)
        .collect();
    Refusal::new(Reason::UnknownTool, format!("there is no tool {shown:?} here"))
}

/// How the end is recorded.
fn ending(end: &End) -> Ending {
    match end {
        End::Answered(answer) => answered(answer),
        End::Failed(error) => {
            let (outcome, reason, status) = match error {
                UpstreamError::Unavailable { .. }
                | UpstreamError::Busy { .. }
                | UpstreamError::Lost { .. } => (Outcome::Error, Reason::UpstreamUnavailable, 502),
                UpstreamError::Timeout { .. } => (Outcome::Timeout, Reason::UpstreamTimeout, 504),
                UpstreamError::Cancelled { .. } => (Outcome::Cancelled, Reason::ClientCancelled, 499),
                UpstreamError::Refused { .. }
                | UpstreamError::TooLarge { .. }
                | UpstreamError::Status { .. }
                | UpstreamError::Protocol { .. } => (Outcome::Error, Reason::UpstreamError, 502),
            };
            Ending {
                outcome,
                reason: Some(reason),
                status,
                error: Some(error.to_string()),
                response_bytes: None,
            }
        }
        End::Cancelled(cause) => {
            let (reason, status) = match cause {
                CancelCause::Client => (Reason::ClientCancelled, 499),
                CancelCause::Stopped => (Reason::Stopped, 403),
                CancelCause::Denied => (Reason::Policy, 403),
                CancelCause::ShuttingDown => (Reason::ShuttingDown, 503),
            };
            Ending {
                outcome: Outcome::Cancelled,
                reason: Some(reason),
                status,
                error: Some(cause.to_string()),
                response_bytes: None,
            }
        }
        End::Refused(refusal) => Ending {
            outcome: Outcome::Denied,
            reason: Some(refusal.reason),
            status: refusal.status().as_u16(),
            error: Some(refusal.message.clone()),
            response_bytes: None,
        },
    }
}

fn answered(answer: &UpstreamAnswer) -> Ending {
    let failed = answer.is_failure();
    let status = match answer.kind {
        AnswerKind::Result => 200,
        AnswerKind::Error => 502,
    };
    Ending {
        outcome: if failed { Outcome::Error } else { Outcome::Ok },
        reason: failed.then_some(Reason::UpstreamError),
        status,
        error: None,
        response_bytes: Some(answer.raw.len() as u64),
    }
}
