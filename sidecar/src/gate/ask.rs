//! `POST /decide`: the decision without executing, and without waiting for anybody.

use std::sync::Arc;

use chain::vocabulary::{Outcome, RecordKind};
use policy::document::Action;
use policy::explain::RuleExplanation;
use tools::classify::Classification;
use tools::id::ToolName;
use tools::model::Tool;

use super::Gate;
use super::bounds;
use super::call::{Arguments, Session};
use super::refusal::Refusal;
use super::subject::{Judged, Subject};
use super::trace::TraceContext;
use super::trail::{Ending, Trail};
use super::verdict::{Summary, denial};
use crate::agent::names::Names;
use crate::identity::Identity;

/// A question before a call. Any tool name may be asked about, also of tools that the agent's host runs itself.
pub struct AskRequest<'d> {
    /// Who would call.
    pub identity: Identity,
    /// The session.
    pub session: Option<Session>,
    /// The tool.
    pub tool: &'d str,
    /// How tools are named towards this agent.
    pub names: &'d Names,
    /// The arguments.
    pub arguments: Arguments<'d>,
    /// The trace.
    pub trace: TraceContext,
    /// Whether each rule that was considered is to be explained.
    pub explain: bool,
}

/// The answer.
#[derive(Debug)]
pub struct AskReport {
    /// Id of the record.
    pub id: String,
    /// The trace.
    pub trace_id: String,
    /// Who would call.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// What was decided; without an action when it did not come to that.
    pub summary: Summary,
    /// Why the call would not run.
    pub refusal: Option<Refusal>,
    /// What is worth knowing and decides nothing.
    pub warnings: Vec<String>,
    /// What the call is judged to do.
    pub classification: Option<Classification>,
    /// Why each rule does or does not hold.
    pub explanation: Option<Vec<RuleExplanation>>,
}

impl AskReport {
    /// The action that the agent is told: a refusal of any kind is `deny`.
    pub fn action(&self) -> Action {
        match (&self.refusal, self.summary.action) {
            (Some(_), _) | (None, None) => Action::Deny,
            (None, Some(action)) => action,
        }
    }
}

impl Gate {
    /// Answers a question. It is recorded, and charges the burst window for host tools only.
    pub async fn ask(&self, request: AskRequest<'_>) -> AskReport {
        let namespace = self.namespace();
        let mut trail = Trail::begin(
            RecordKind::Decision,
            &self.clock,
            &namespace,
            &request.identity,
            request.tool,
            request.trace.clone(),
        );
        trail.record.session = request.session.as_ref().map(|session| session.id.to_string());
        let mut report = AskReport {
            id: trail.id.clone(),
            trace_id: trail.trace.trace_id.clone(),
            agent: request.identity.agent.to_string(),
            tool: request.tool.to_owned(),
            summary: Summary::default(),
            refusal: None,
            warnings: Vec::new(),
            classification: None,
            explanation: None,
        };
        report.refusal = self.consider(&request, &mut trail, &mut report).await.err();
        report.summary = trail.summary.clone();
        self.metrics.asked(&report);
        let ending = Ending {
            outcome: Outcome::Decided,
            reason: report.refusal.as_ref().map(|refusal| refusal.reason),
            status: if report.action() == Action::Deny { 403 } else { 200 },
            error: report.refusal.as_ref().map(|refusal| refusal.message.clone()),
            response_bytes: None,
        };
        self.write(trail, ending);
        report
    }

    async fn consider(
        &self,
        request: &AskRequest<'_>,
        trail: &mut Trail,
        report: &mut AskReport,
    ) -> Result<(), Refusal> {
        let view = self.view();
        trail.came_under(view.revision);
        let arguments = bounds::arguments(&request.arguments)?;
        let served = self.lookup(request.names, request.tool);
        let is_served = served.is_some();
        let tool = match served {
            Some(tool) => tool,
            None => Arc::new(Tool::host(host_tool(request.tool)?)),
        };
        let subject = Subject {
            namespace: self.namespace(),
            identity: request.identity.clone(),
            session: request.session.clone(),
            judged: Judged::call(&tool, arguments),
            commanded: self.commanded(&tool, arguments),
            tool,
            is_served,
            arguments,
        };
        let classification = subject.classification();
        trail.recognised(&subject, &classification, &self.redactor(&view));
        report.tool = subject.tool.name.to_string();
        report.classification = Some(classification.as_ref().clone());

        self.not_stopped(&subject)?;
        self.fresh_enough(classification.plain_read)?;
        if !is_served {
            self.within_burst(&view, &subject).await?;
            let limit = self.loop_limit(&view, &subject, classification.plain_read);
            if let Err(refusal) = self.not_looping(self.loop_key(&subject), limit) {
                report.warnings.push(refusal.message);
            }
        }
        let decision = self.decide(&view, &subject, &classification);
        trail.decided(Summary::of(&decision, view.revision));
        if request.explain {
            let floor = super::checks::floor(&view, &subject);
            let call = subject.as_policy_call(&classification, floor.as_slice());
            report.explanation = Some(view.policies.explain(&call));
        }
        match decision.action {
            Action::Allow | Action::HumanApproval => self.arguments_fit(&subject),
            Action::Deny => Err(denial(&decision, &subject)),
        }
    }
}

fn host_tool(name: &str) -> Result<ToolName, Refusal> {
    ToolName::try_from(name)
        .map_err(|error| Refusal::new(chain::vocabulary::Reason::Malformed, error.to_string()))
}
