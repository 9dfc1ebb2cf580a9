//! What is known of a call so far, and the record that it becomes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use chain::hash::Hash;
use chain::payload::Payload;
use chain::record::{self, SourceRecord};
use chain::timestamp::Timestamp;
use chain::vocabulary::{self, Outcome, Reason, RecordKind};
use net::clock::Clock;
use policy::document::Action;
use tools::classify::{Classification, SideEffectKind};
use tools::id::Namespace;
use tools::operation::Operation;
use tools::targets::{Extent, Targets};

use super::call::CallRequest;
use super::subject::Subject;
use super::trace::{TraceContext, call_id, random_bytes};
use super::verdict::Summary;
use crate::control::Revision;
use crate::control::approvals::Approval;
use crate::control::redact::Redactor;
use crate::identity::{Identity, Strength};
use crate::spool::{Draft, OpenCall};

/// The notes of one call. Every step adds what it learns; the end writes one record out of it.
#[derive(Debug)]
pub(super) struct Trail {
    clock: Clock,
    began: Duration,
    pub(super) id: String,
    pub(super) trace: TraceContext,
    pub(super) record: SourceRecord,
    /// Complete, but for an error, when the intent is written.
    pub(super) payload: Payload,
    pub(super) summary: Summary,
    redactor: Option<Arc<Redactor>>,
    pub(super) decision_took: Option<Duration>,
    pub(super) upstream_took: Option<Duration>,
    /// The intent in the spool, once there is one: the record replaces it.
    pub(super) open: Option<OpenCall>,
}

/// How a call ended, in a record's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) reason: Option<Reason>,
    pub(super) status: u16,
    pub(super) error: Option<String>,
    pub(super) response_bytes: Option<u64>,
}

impl Trail {
    pub(super) fn begin(
        kind: RecordKind,
        clock: &Clock,
        namespace: &Namespace,
        identity: &Identity,
        tool: &str,
        trace: TraceContext,
    ) -> Self {
        let id = call_id(clock).to_string();
        let time = Timestamp::from_micros(clock.wall_micros());
        let mut record = SourceRecord::new(
            id.clone(),
            time,
            kind,
            namespace.to_string(),
            Outcome::Interrupted,
        );
        record.agent = Some(identity.agent.to_string());
        record.identity = Some(strength(identity.strength));
        record.user = identity.user.as_ref().map(ToString::to_string);
        record.tool = Some(Cow::Owned(bounded_name(tool)));
        record.trace_id = Some(trace.trace_id.clone());
        record.span_id = Some(trace.span_id.clone());
        record.parent_span_id.clone_from(&trace.parent_span_id);
        Self {
            clock: clock.clone(),
            began: clock.boot_now(),
            id,
            trace,
            record,
            payload: Payload::new(random_bytes()),
            summary: Summary::default(),
            redactor: None,
            decision_took: None,
            upstream_took: None,
            open: None,
        }
    }

    pub(super) fn of_call(clock: &Clock, namespace: &Namespace, request: &CallRequest<'_>) -> Self {
        let mut trail = Self::begin(
            RecordKind::Call,
            clock,
            namespace,
            &request.identity,
            request.tool,
            request.trace.clone(),
        );
        trail.record.session = request.session.as_ref().map(|session| session.id.to_string());
        trail
    }

    /// Since the call arrived.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.since(self.began)
    }

    /// Notes the desired state that the call came under.
    pub(super) fn came_under(&mut self, revision: Revision) {
        self.summary.revision = revision;
        self.record.revision = Some(record::Revision {
            generation: revision.generation,
            number: revision.number,
        });
    }

    /// Notes what is called, and the arguments as they may be reported.
    pub(super) fn recognised(
        &mut self,
        subject: &Subject<'_>,
        classification: &Classification,
        redactor: &Arc<Redactor>,
    ) {
        let record = &mut self.record;
        record.tool = Some(Cow::Owned(subject.tool.name.to_string()));
        record.upstream = subject.tool.upstream.as_ref().map(ToString::to_string);
        if subject.is_served && subject.tool.name.operation() == Operation::Tool {
            record.fingerprint = Some(Hash::from_bytes(*subject.tool.fingerprint.as_bytes()));
        }
        record.capability = classification.capability.clone().map(Cow::Owned);
        record.risk = Some(Cow::Borrowed(classification.risk.name()));
        record.risks = classification
            .risks
            .iter()
            .map(|risk| Cow::Borrowed(risk.name()))
            .collect();
        record.side_effect = Some(Cow::Borrowed(effect(classification.side_effect.kind)));
        let size = subject.argument_bytes().len() as u64;
        record.request_bytes = Some(size);
        record.tokens_in = Some(size.div_ceil(BYTES_PER_TOKEN));
        self.payload.params = subject.arguments.and_then(|node| redactor.params(node));
        if let Some(call) = subject.program_call() {
            self.payload.argv = redactor.argv(&call.argv, subject.arguments);
            let effective = subject
                .commanded
                .as_ref()
                .and_then(|commanded| commanded.effective());
            self.payload.command = effective.map(ToString::to_string);
        }
        self.reached(subject, redactor);
        self.redactor = Some(Arc::clone(redactor));
    }

    /// Notes what the call reaches, where that is known. Texts of arguments can be part of it, so it is redacted like them.
    fn reached(&mut self, subject: &Subject<'_>, redactor: &Redactor) {
        let targets = subject.judged.targets();
        if *targets == Targets::UNKNOWN {
            return;
        }
        let is_masked = subject.arguments.is_some_and(|node| redactor.masks(node));
        let known = |extent: &Extent| redactor.targets(extent.known()?, is_masked);
        self.payload.resources = known(&targets.resources);
        // Columns are names, not texts of arguments.
        self.payload.columns = targets
            .columns
            .known()
            .and_then(|columns| redactor.targets(columns, false));
        self.payload.hosts = known(&targets.hosts);
        self.payload.paths = known(&targets.paths);
        self.payload.recipients = known(&targets.recipients);
    }

    /// Notes the decision.
    pub(super) fn decided(&mut self, summary: Summary) {
        let record = &mut self.record;
        record.action = summary.action.map(action);
        record.rule = summary.rule.as_ref().map(|rule| rule.policy.to_string());
        record.rule_index = summary.rule.as_ref().map(|rule| index(rule.index));
        record.floors = summary
            .floors
            .iter()
            .map(|floor| record::FloorHit {
                name: Cow::Owned(floor.source.to_string()),
                action: action(floor.action),
            })
            .collect();
        record.shadow = summary.shadow.as_ref().map(|shadow| record::Shadow {
            action: action(shadow.action),
            rule: shadow.rule.as_ref().map(|rule| rule.policy.to_string()),
            rule_index: shadow.rule.as_ref().map(|rule| index(rule.index)),
        });
        record.grant = summary.grant.as_ref().map(ToString::to_string);
        let took = self.clock.since(self.began);
        record.decision_us = Some(micros(took));
        self.decision_took = Some(took);
        self.came_under(summary.revision);
        self.summary = summary;
    }

    /// Notes how long the upstream took.
    pub(super) fn forwarded(&mut self, took: Duration) {
        self.record.upstream_ms = Some(millis(took));
        self.upstream_took = Some(took);
    }

    /// Notes the approval and how long it was waited for.
    pub(super) fn asked(&mut self, approval: &Approval, waited: Duration) {
        let given = |text: &String| (!text.is_empty()).then(|| text.clone());
        self.record.approval = Some(record::Approval {
            id: approval.id.clone(),
            status: Cow::Borrowed(approval.status.as_str()),
            by: given(&approval.resolved_by),
            via: given(&approval.resolved_via).map(Cow::Owned),
            reasoning: given(&approval.reasoning),
            confidence: (approval.confidence > 0.0).then_some(approval.confidence),
            wait_ms: Some(millis(waited)),
        });
    }

    /// The record of the ended call, and the intent that it replaces.
    pub(super) fn end(mut self, ending: Ending) -> (Draft, Option<OpenCall>) {
        let elapsed = self.elapsed();
        let record = &mut self.record;
        record.outcome = ending.outcome;
        record.reason = ending.reason;
        record.status_code = Some(ending.status);
        record.response_bytes = ending.response_bytes;
        record.tokens_out = ending.response_bytes.map(|size| size.div_ceil(BYTES_PER_TOKEN));
        record.latency_ms = Some(millis(elapsed));
        self.payload.error = ending.error.map(|error| match &self.redactor {
            Some(redactor) => redactor.text(&error).into_owned(),
            None => error,
        });
        // What the intent stated is what the record says, unless there is an error to tell.
        let is_stated = self.open.is_some() && self.payload.error.is_none();
        let draft = Draft {
            source: self.record,
            payload: (!is_stated).then_some(self.payload),
        };
        (draft, self.open)
    }
}

/// What tokens are estimated by.
const BYTES_PER_TOKEN: u64 = 4;
/// A name that no tool has is recorded up to here.
const MAX_NAME: usize = 256;

fn bounded_name(name: &str) -> String {
    name.chars()
        .filter(|character| !character.is_control())
        .take(MAX_NAME)
        .collect()
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn effect(kind: SideEffectKind) -> &'static str {
    match kind {
        SideEffectKind::Read => "read",
        SideEffectKind::Write => "write",
        SideEffectKind::Delete => "delete",
        SideEffectKind::Admin => "admin",
    }
}

fn action(action: Action) -> vocabulary::Action {
    match action {
        Action::Allow => vocabulary::Action::Allow,
        Action::HumanApproval => vocabulary::Action::HumanApproval,
        Action::Deny => vocabulary::Action::Deny,
    }
}

fn strength(strength: Strength) -> vocabulary::IdentityStrength {
    match strength {
        Strength::Anonymous => vocabulary::IdentityStrength::Anonymous,
        Strength::Asserted => vocabulary::IdentityStrength::Asserted,
        Strength::Bound => vocabulary::IdentityStrength::Bound,
        Strength::Verified => vocabulary::IdentityStrength::Verified,
    }
}
