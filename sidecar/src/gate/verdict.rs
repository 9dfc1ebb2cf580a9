//! From a decision to what may happen next. The types here are made from decisions only, and forwarding asks for them.

use std::sync::Arc;

use chain::vocabulary::Reason;
use policy::decide::{Decision, FloorHit, Reason as PolicyReason, RuleRef, ShadowOutcome};
use policy::document::Action;

use super::refusal::Refusal;
use super::subject::Subject;
use crate::control::Revision;

/// What was decided, for answers and records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// What happens; none when the call was refused before it came to a decision.
    pub action: Option<Action>,
    /// The rule that decided.
    pub rule: Option<RuleRef>,
    /// What that rule says to the model and to people.
    pub message: Option<Arc<str>>,
    /// Every floor that holds.
    pub floors: Vec<FloorHit>,
    /// The grant that let it through.
    pub grant: Option<Arc<str>>,
    /// What shadow policies would have changed.
    pub shadow: Option<ShadowOutcome>,
    /// The desired state that it was decided by.
    pub revision: Revision,
}

impl Summary {
    pub(super) fn of(decision: &Decision, revision: Revision) -> Self {
        Self {
            action: Some(decision.action),
            rule: decision.rule.clone(),
            message: decision.message.clone(),
            floors: decision.floors.clone(),
            grant: decision.lifted_by.clone(),
            shadow: decision.shadow.clone(),
            revision,
        }
    }

    /// What decided, in words: the policy and its rule, or the strictest floor.
    pub fn decided_by(&self) -> String {
        match (&self.rule, self.floors.first()) {
            (Some(rule), _) => format!("policy {:?}, rule {}", rule.policy.as_str(), rule.index),
            (None, Some(floor)) => floor.source.to_string(),
            (None, None) => "no rule".to_owned(),
        }
    }
}

/// Proof that the call was decided as `allow`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed(());

/// Proof that the call was decided as `human_approval`: it runs only with a claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeedsPerson(());

/// A decision that is no denial.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict {
    Allowed(Allowed),
    NeedsPerson(NeedsPerson),
}

/// What a decision lets happen. A denial is a refusal.
pub(super) fn verdict(decision: &Decision, subject: &Subject<'_>) -> Result<Verdict, Refusal> {
    match decision.action {
        Action::Allow => Ok(Verdict::Allowed(Allowed(()))),
        Action::HumanApproval => Ok(Verdict::NeedsPerson(NeedsPerson(()))),
        Action::Deny => Err(denial(decision, subject)),
    }
}

/// The refusal of a denied call.
pub(super) fn denial(decision: &Decision, subject: &Subject<'_>) -> Refusal {
    let by = Summary::of(decision, Revision::default()).decided_by();
    let because = match (&decision.message, decision.reason) {
        (Some(message), _) => format!("{by}: {message}"),
        (None, PolicyReason::Policy | PolicyReason::Guardrail) => by,
        (None, PolicyReason::NoRule) => "no rule of a policy for this agent allows it".to_owned(),
        (None, PolicyReason::Undecided) => {
            format!("{by}: an argument that the rule asks for is missing or of another type")
        }
        (None, PolicyReason::InvalidPolicy) => "a policy for this agent cannot be read".to_owned(),
        (None, PolicyReason::Pin) => "the tool is new or has changed since it was accepted".to_owned(),
        (None, PolicyReason::Dispatcher) => {
            "default_action of the program denies what is not a declared command called by its own name"
                .to_owned()
        }
    };
    Refusal::new(
        reason(decision.reason),
        format!("{} is denied: {because}", subject.named()),
    )
}

fn reason(reason: PolicyReason) -> Reason {
    match reason {
        PolicyReason::Policy => Reason::Policy,
        PolicyReason::NoRule => Reason::NoRule,
        PolicyReason::Undecided => Reason::Undecided,
        PolicyReason::Guardrail => Reason::Guardrail,
        PolicyReason::InvalidPolicy => Reason::InvalidPolicy,
        PolicyReason::Pin => Reason::Pin,
        PolicyReason::Dispatcher => Reason::Dispatcher,
    }
}
