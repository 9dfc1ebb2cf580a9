//! Policy documents: what an operator writes, fully typed.
//!
//! [`Policy::parse_all`] reads YAML and reports every problem at once. [`Policy::to_sent`] and
//! [`Policy::from_sent`] carry a policy between the planes.

mod action;
mod condition;
mod field;
mod lists;
mod operator;
mod origin;
mod parse;
mod pattern;
mod selector;
mod sent;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tools::id::PolicyName;

pub use action::{Action, UnknownAction};
pub use condition::{Condition, Scalar, Test};
pub use field::{Field, FieldError, Path, Step};
pub use lists::Lists;
pub use operator::{Base, Operator, UnknownOperator};
pub use origin::Origin;
pub use parse::Source;
pub use pattern::{MAX_INPUT, Pattern, PatternError};
pub use selector::{Selector, TargetKind};
pub use sent::{DecodeError, FORMAT};

use crate::glob::{Glob, ToolGlob};
use crate::yaml::Problem;

/// The deepest nesting of `all`, `any` and `not`.
pub const MAX_CONDITION_DEPTH: usize = 16;

/// What a policy's result means for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyKind {
    /// Its rules are walked in order of specificity.
    #[default]
    Standard,
    /// Its rules only tighten, whatever standard policies say.
    Guardrail,
}

/// Whether a policy is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Applied.
    #[default]
    Enforce,
    /// Evaluated and reported, never applied.
    Shadow,
}

/// How often the agents of a policy may call. At least one of the two is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Attempts in a sliding minute, denied ones included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_minute: Option<NonZeroU64>,
    /// Calls forwarded, until an operator resets the count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_total: Option<NonZeroU64>,
}

/// One policy document. Its JSON is the form that is sent to sidecars.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The version of the sent form, [`FORMAT`].
    pub format: u32,
    /// Unique in the installation.
    pub name: PolicyName,
    /// The agents it applies to: any of these patterns. Not empty.
    pub agents: Vec<Glob>,
    /// The namespaces it applies in: any of these patterns. Not empty.
    pub namespaces: Vec<Glob>,
    /// Standard or guardrail.
    pub kind: PolicyKind,
    /// Enforced or shadow.
    pub mode: Mode,
    /// The limit on its agents' calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// The rules in the order of the text. Not empty.
    pub rules: Vec<Rule>,
    /// Where it came from, which gives the load order.
    pub origin: Origin,
    /// The file as the operator knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_file: Option<Arc<str>>,
}

/// One rule: it holds for a call when every selector and the condition do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The line on which the rule starts.
    pub line: u32,
    /// The governed names it covers; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolGlob>>,
    /// Governed names that it does not cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<ToolGlob>,
    /// The other selectors; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub selectors: Vec<Selector>,
    /// What happens when the rule holds.
    pub action: Action,
    /// Shown to the model and to the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// What the arguments must be like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

impl Policy {
    /// Whether the policy applies in a namespace.
    pub fn covers_namespace(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|glob| glob.matches(namespace))
    }

    /// Whether the policy can apply to a sidecar that serves these agents in a namespace.
    pub fn may_cover(&self, namespace: &str, agents: &[Glob]) -> bool {
        self.covers_namespace(namespace)
            && self
                .agents
                .iter()
                .any(|own| agents.iter().any(|served| own.intersects(served)))
    }

    /// Whether the policy applies to an agent.
    pub fn covers_agent(&self, agent: &str) -> bool {
        self.agents.iter().any(|glob| glob.matches(agent))
    }
}

/// Reports every name that several policies have.
pub fn duplicate_names<'p>(policies: impl IntoIterator<Item = &'p Policy>) -> Vec<Problem> {
    let mut first: HashMap<&PolicyName, &Policy> = HashMap::new();
    let mut problems = Vec::new();
    for policy in policies {
        let Some(other) = first.insert(&policy.name, policy) else {
            continue;
        };
        let file = |policy: &Policy| policy.source_file.clone().unwrap_or_else(|| Arc::from("the API"));
        problems.push(Problem {
            file: file(policy),
            line: 0,
            column: 0,
            path: "name".to_owned(),
            message: format!("policy \"{}\" is also defined in {}", policy.name, file(other)),
            hint: Some("names are unique in the installation: rename one".to_owned()),
        });
    }
    problems
}

impl Rule {
    /// Whether the rule's `tools` and `except` cover a governed name.
    pub fn covers_tool(&self, tool: &str) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|globs| globs.iter().any(|glob| glob.matches(tool)))
            && !self.except.iter().any(|glob| glob.matches(tool))
    }

    /// Whether the rule holds for every call of the tools it covers.
    pub fn is_unconditional(&self) -> bool {
        self.selectors.is_empty() && self.condition.is_none()
    }
}

#[cfg(test)]
mod tests;
