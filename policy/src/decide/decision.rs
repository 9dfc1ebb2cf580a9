//! The answer.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tools::id::PolicyName;

use super::call::FloorKind;
use crate::document::Action;

/// What happens to a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// The rule that decided; with a pin or dispatcher floor, the standard rule below it.
    pub rule: Option<RuleRef>,
    /// What the deciding rule tells the model and the approver.
    pub message: Option<Arc<str>>,
    /// What standard policies alone say.
    pub standard: Action,
    /// Every floor that holds for the call.
    pub floors: Vec<FloorHit>,
    /// The grant that turned `human_approval` into `allow`.
    pub lifted_by: Option<Arc<str>>,
    /// Whether an undecided rule took part: the standard result is that of a noted action, or a guardrail was undecided.
    pub undecided: bool,
    /// What shadow policies would have changed; none when nothing.
    pub shadow: Option<ShadowOutcome>,
}

/// A rule: its policy, and its place in it from 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RuleRef {
    /// The policy's name.
    pub policy: PolicyName,
    /// The rule's place, from 0.
    pub index: usize,
}

/// Why a decision is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A standard rule was true.
    Policy,
    /// No rule was true.
    NoRule,
    /// A stricter rule could not be decided.
    Undecided,
    /// A guardrail.
    Guardrail,
    /// A policy that cannot be read covers the agent.
    InvalidPolicy,
    /// The tool is new or changed.
    Pin,
    /// The tool is a CLI dispatcher.
    Dispatcher,
}

impl Reason {
    /// The reason's name in records and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::NoRule => "no_rule",
            Self::Undecided => "undecided",
            Self::Guardrail => "guardrail",
            Self::InvalidPolicy => "invalid_policy",
            Self::Pin => "pin",
            Self::Dispatcher => "dispatcher",
        }
    }
}

/// A floor that holds for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloorHit {
    /// Where it comes from.
    pub source: FloorSource,
    /// The mildest action that it lets through.
    pub action: Action,
}

/// Where a floor comes from. Displays as `guardrail:no-money`, `pin:new`, `pin:changed`, `dispatcher`, `invalid_policy:x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FloorSource {
    /// A guardrail's rule.
    Guardrail(RuleRef),
    /// A policy that cannot be read.
    InvalidPolicy(PolicyName),
    /// A pin or a dispatcher.
    Floor(FloorKind),
}

impl fmt::Display for FloorSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guardrail(rule) => write!(out, "guardrail:{}", rule.policy),
            Self::InvalidPolicy(policy) => write!(out, "invalid_policy:{policy}"),
            Self::Floor(FloorKind::PinNew) => out.write_str("pin:new"),
            Self::Floor(FloorKind::PinChanged) => out.write_str("pin:changed"),
            Self::Floor(FloorKind::Dispatcher) => out.write_str("dispatcher"),
        }
    }
}

/// What would have been decided with shadow policies applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowOutcome {
    /// What would have happened.
    pub action: Action,
    /// The rule that would have decided.
    pub rule: Option<RuleRef>,
}
