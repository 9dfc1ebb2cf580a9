//! Walks the rules that can match, and joins the result with the floors.

use std::sync::Arc;

use tools::id::PolicyName;

use super::call::{Call, FloorKind};
use super::decision::{Decision, FloorHit, FloorSource, Reason, RuleRef};
use crate::document::{Action, Policy, Rule};
use crate::evaluate::{Truth, rule_truth};

/// The rules that cover one governed name for one agent in one namespace.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// Standard rules in walking order; nothing follows an unconditional one.
    pub(crate) standard: Box<[Step]>,
    /// Guardrail rules, one guardrail after the other.
    pub(crate) guardrails: Box<[Step]>,
    /// Policies for this agent that cannot be read.
    pub(crate) invalid: Box<[PolicyName]>,
}

/// One rule of a plan.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) policy: Arc<Policy>,
    pub(crate) index: usize,
}

impl Step {
    // INVARIANT: steps are made from the rules of their own policy, so the rule is there.
    pub(crate) fn rule(&self) -> Option<&Rule> {
        self.policy.rules.get(self.index)
    }

    pub(crate) fn reference(&self) -> RuleRef {
        RuleRef {
            policy: self.policy.name.clone(),
            index: self.index,
        }
    }

    fn message(&self) -> Option<Arc<str>> {
        self.rule().and_then(|rule| rule.message.clone())
    }
}

/// What standard policies say.
struct Standard<'p> {
    action: Action,
    step: Option<&'p Step>,
    reason: Reason,
}

/// The decision about a call, without grants and shadow.
pub(crate) fn decide(steps: &Steps, call: &Call<'_>) -> Decision {
    let standard = walk_standard(&steps.standard, call);
    let mut undecided = standard.reason == Reason::Undecided;
    let mut decision = Decision {
        action: standard.action,
        reason: standard.reason,
        rule: standard.step.map(Step::reference),
        message: standard.step.and_then(Step::message),
        standard: standard.action,
        floors: Vec::new(),
        lifted_by: None,
        undecided: false,
        shadow: None,
    };
    if !steps.invalid.is_empty() {
        decision.action = Action::Deny;
        decision.reason = Reason::InvalidPolicy;
        (decision.rule, decision.message) = (None, None);
        let hits = steps.invalid.iter().map(|name| FloorHit {
            source: FloorSource::InvalidPolicy(name.clone()),
            action: Action::Deny,
        });
        decision.floors.extend(hits);
    }
    undecided |= apply_guardrails(&steps.guardrails, call, &mut decision);
    for floor in call.floors.iter().filter(|floor| floor.action > Action::Allow) {
        if floor.action > decision.action {
            decision.action = floor.action;
            decision.reason = match floor.kind {
                FloorKind::PinNew | FloorKind::PinChanged => Reason::Pin,
                FloorKind::Dispatcher => Reason::Dispatcher,
            };
        }
        decision.floors.push(FloorHit {
            source: FloorSource::Floor(floor.kind),
            action: floor.action,
        });
    }
    decision.undecided = undecided;
    decision
}

/// The strictest of the first true rule and the undecided ones before it; `deny` where no rule was true.
fn walk_standard<'p>(steps: &'p [Step], call: &Call<'_>) -> Standard<'p> {
    let mut noted: Option<(Action, &Step)> = None;
    for step in steps {
        let Some(rule) = step.rule() else {
            return Standard {
                action: Action::Deny,
                step: Some(step),
                reason: Reason::Undecided,
            };
        };
        match rule_truth(rule, call) {
            Truth::False => {}
            Truth::Undecided => {
                if noted.is_none_or(|(action, _)| rule.action > action) {
                    noted = Some((rule.action, step));
                }
            }
            Truth::True => {
                return match noted {
                    Some((action, step)) if action > rule.action => Standard {
                        action,
                        step: Some(step),
                        reason: Reason::Undecided,
                    },
                    _ => Standard {
                        action: rule.action,
                        step: Some(step),
                        reason: Reason::Policy,
                    },
                };
            }
        }
    }
    match noted {
        Some((Action::Deny, step)) => Standard {
            action: Action::Deny,
            step: Some(step),
            reason: Reason::Undecided,
        },
        Some(_) => Standard {
            action: Action::Deny,
            step: None,
            reason: Reason::Undecided,
        },
        None => Standard {
            action: Action::Deny,
            step: None,
            reason: Reason::NoRule,
        },
    }
}

/// Adds one hit for each guardrail that holds (its strictest rule); says whether an undecided rule was among them.
fn apply_guardrails(steps: &[Step], call: &Call<'_>, decision: &mut Decision) -> bool {
    let mut undecided = false;
    let mut hits: Vec<(&Step, Action)> = Vec::new();
    for step in steps {
        // A rule that is not there would be a broken plan: it counts as a denial.
        let (truth, action) = step.rule().map_or((Truth::Undecided, Action::Deny), |rule| {
            (rule_truth(rule, call), rule.action)
        });
        if truth == Truth::False {
            continue;
        }
        undecided |= truth == Truth::Undecided;
        match hits.last_mut() {
            Some(hit) if hit.0.policy.name == step.policy.name => {
                if action > hit.1 {
                    *hit = (step, action);
                }
            }
            _ => hits.push((step, action)),
        }
    }
    for (step, action) in hits {
        if action > decision.action {
            decision.action = action;
            decision.reason = Reason::Guardrail;
            decision.rule = Some(step.reference());
            decision.message = step.message();
        }
        decision.floors.push(FloorHit {
            source: FloorSource::Guardrail(step.reference()),
            action,
        });
    }
    undecided
}
