//! Questions of upstreams to agents. They are no calls, so no policy decides about them: the configuration says what an
//! upstream may ask, stops hold, and each becomes one record.

use std::sync::Arc;

use bytes::Bytes;
use chain::vocabulary::{Outcome, Reason, RecordKind};
use tools::json::{Document, Limits};
use tools::model::Tool;
use tools::operation::Operation;

use super::Gate;
use super::call::Session;
use super::refusal::Refusal;
use super::subject::{Judged, Subject};
use super::trace::TraceContext;
use super::trail::{Ending, Trail};
use crate::identity::Identity;
use crate::upstream::{AnswerKind, Question, Reply};

/// Whom an upstream asks.
#[derive(Debug, Clone)]
pub struct AskedAgent {
    /// The agent.
    pub identity: Identity,
    /// Its session.
    pub session: Option<Session>,
    /// The trace of the call that the question belongs to, as a `traceparent`.
    pub traceparent: Option<String>,
}

/// A question on its way. It becomes one record, however it ends.
pub struct OpenQuestion {
    gate: Arc<Gate>,
    trail: Option<Trail>,
}

impl Gate {
    /// Lets a question pass to the agent, or not.
    ///
    /// # Errors
    /// When it does not pass; that is recorded.
    pub fn asked_by_upstream(
        self: &Arc<Self>,
        agent: &AskedAgent,
        question: &Question,
    ) -> Result<OpenQuestion, Refusal> {
        let name = format!(
            "{}.{}{}",
            question.upstream,
            Operation::Method.marker(),
            question.method
        );
        let mut trail = Trail::begin(
            RecordKind::Call,
            &self.clock,
            &self.namespace(),
            &agent.identity,
            &name,
            TraceContext::begin(agent.traceparent.as_deref()),
        );
        trail.record.session = agent.session.as_ref().map(|session| session.id.to_string());
        match self.may_be_asked(agent, question, &mut trail) {
            Ok(()) => Ok(OpenQuestion {
                gate: Arc::clone(self),
                trail: Some(trail),
            }),
            Err(refusal) => {
                let ending = Ending {
                    outcome: Outcome::Denied,
                    reason: Some(refusal.reason),
                    status: refusal.status().as_u16(),
                    error: Some(refusal.message.clone()),
                    response_bytes: None,
                };
                self.write(trail, ending);
                Err(refusal)
            }
        }
    }

    fn may_be_asked(
        &self,
        agent: &AskedAgent,
        question: &Question,
        trail: &mut Trail,
    ) -> Result<(), Refusal> {
        let malformed = |what: String| Refusal::new(Reason::Malformed, what);
        let view = self.view();
        trail.came_under(view.revision);
        let upstream = (&*question.upstream)
            .try_into()
            .map_err(|error: tools::id::IdError| malformed(error.to_string()))?;
        let tool = Tool::request(&upstream, Operation::Method, &question.method, None)
            .map_err(|error| malformed(error.to_string()))?;
        let params: &[u8] = if question.params.is_empty() {
            b"{}"
        } else {
            &question.params
        };
        let document =
            Document::parse(params, Limits::MESSAGE).map_err(|error| malformed(error.to_string()))?;
        let subject = Subject {
            namespace: self.namespace(),
            identity: agent.identity.clone(),
            session: agent.session.clone(),
            tool: Arc::new(tool),
            is_served: true,
            arguments: Some(document.root()),
            judged: Judged::AS_TOOL,
            commanded: None,
        };
        trail.recognised(&subject, &subject.classification(), &self.redactor(&view));
        if !question.is_let_through {
            return Err(Refusal::new(
                Reason::Policy,
                format!(
                    "server_requests of upstream {} does not let {} through",
                    question.upstream, question.method
                ),
            ));
        }
        self.not_stopped(&subject)?;
        self.room_for_record()
    }
}

impl OpenQuestion {
    /// The agent answered, or could not.
    pub fn end(mut self, reply: &Reply) {
        let Some(trail) = self.trail.take() else {
            return;
        };
        let is_error = reply.kind == AnswerKind::Error;
        let ending = Ending {
            outcome: if is_error { Outcome::Error } else { Outcome::Ok },
            reason: None,
            status: if is_error { 502 } else { 200 },
            error: is_error.then(|| error_text(&reply.raw)),
            response_bytes: Some(reply.raw.len() as u64),
        };
        self.gate.write(trail, ending);
    }
}

/// The code of an error alone: its words are the agent's, and may hold what its user said.
fn error_text(raw: &Bytes) -> String {
    let code = crate::upstream::mcp::scan::member(raw, "code").unwrap_or(b"?");
    format!("the agent answered with error {}", String::from_utf8_lossy(code))
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if let Some(trail) = self.trail.take() {
            let ending = Ending {
                outcome: Outcome::Cancelled,
                reason: Some(Reason::ClientCancelled),
                status: 499,
                error: Some("the question was withdrawn, or the agent went away".to_owned()),
                response_bytes: None,
            };
            self.gate.write(trail, ending);
        }
    }
}
