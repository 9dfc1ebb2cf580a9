//! All policies of an installation, or of one snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use tools::id::{AgentId, Namespace, PolicyName};

use super::cache::Plans;
use super::index::AgentIndex;
use super::plan::{Indexes, Plan};
use crate::decide::{Call, Decision, RuleRef};
use crate::document::{Condition, Field, Mode, Path, Policy, PolicyKind, RateLimit, Test};
use crate::explain::{RuleExplanation, explain};
use crate::foresee::{self, ToolDecision, ToolQuery};
use crate::glob::Glob;

/// A policy that could not be read, with what is known about whom it covers: all of them are denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPolicy {
    /// Its name.
    pub name: PolicyName,
    /// The agents it covers; empty means all.
    pub agents: Vec<Glob>,
    /// The namespaces it applies in; empty means all.
    pub namespaces: Vec<Glob>,
}

impl InvalidPolicy {
    /// Whether the policy covers an agent in a namespace.
    pub fn covers(&self, namespace: &str, agent: &str) -> bool {
        let any = |globs: &[Glob], text| globs.is_empty() || globs.iter().any(|glob| glob.matches(text));
        any(&self.agents, agent) && any(&self.namespaces, namespace)
    }
}

/// A compiled set of policies.
#[derive(Debug)]
pub struct PolicySet {
    policies: BTreeMap<PolicyName, Arc<Policy>>,
    indexes: Indexes,
    plans: Plans,
}

impl PolicySet {
    /// Compiles policies. Of several with one name the last counts; names are unique in an installation.
    pub fn compile(policies: impl IntoIterator<Item = Arc<Policy>>) -> Self {
        Self::compile_with_invalid(policies, Vec::new())
    }

    /// Compiles policies beside some that could not be read.
    pub fn compile_with_invalid(
        policies: impl IntoIterator<Item = Arc<Policy>>,
        invalid: Vec<Arc<InvalidPolicy>>,
    ) -> Self {
        let policies = policies
            .into_iter()
            .map(|policy| (policy.name.clone(), policy))
            .collect();
        Self::of(policies, invalid)
    }

    /// The set after some changes: policies put in place of those of the same name, and names removed.
    #[must_use]
    pub fn with_changes(
        &self,
        changed: impl IntoIterator<Item = Arc<Policy>>,
        removed: &[PolicyName],
        invalid: Vec<Arc<InvalidPolicy>>,
    ) -> Self {
        let mut policies = self.policies.clone();
        for name in removed {
            policies.remove(name);
        }
        policies.extend(changed.into_iter().map(|policy| (policy.name.clone(), policy)));
        Self::of(policies, invalid)
    }

    fn of(policies: BTreeMap<PolicyName, Arc<Policy>>, invalid: Vec<Arc<InvalidPolicy>>) -> Self {
        let mut in_load_order: Vec<&Arc<Policy>> = policies.values().collect();
        // Stable, and the map is sorted by name: the name is the last tie-break.
        in_load_order.sort_by(|one, other| one.origin.cmp(&other.origin));
        let index = |wanted: &dyn Fn(&Policy) -> bool| {
            let ranked = (0_u32..).zip(in_load_order.iter().copied());
            AgentIndex::new(ranked.filter(|(_, policy)| wanted(policy)))
        };
        let enforced = |policy: &Policy| policy.mode == Mode::Enforce;
        let indexes = Indexes {
            standard: index(&|policy| enforced(policy) && policy.kind == PolicyKind::Standard),
            guardrails: index(&|policy| enforced(policy) && policy.kind == PolicyKind::Guardrail),
            shadow: index(&|policy| !enforced(policy)),
            limited: index(&|policy| enforced(policy) && policy.rate_limit.is_some()),
            invalid,
        };
        Self {
            policies,
            indexes,
            plans: Plans::new(),
        }
    }

    /// Decides about a call. Grants are applied afterwards, by [`crate::grant::Grants::apply`].
    pub fn decide(&self, call: &Call<'_>) -> Decision {
        self.plan(call.namespace, call.agent, call.tool).decide(call)
    }

    /// Whether some arguments could get a tool past policies, guardrails and floors: what is not so is not listed.
    pub fn could_run(&self, query: &ToolQuery<'_>) -> bool {
        foresee::could_run(&self.plan(query.namespace, query.agent, query.tool).steps, query)
    }

    /// What is decided for a tool before any call.
    pub fn tool_decision(&self, query: &ToolQuery<'_>) -> ToolDecision {
        foresee::tool_decision(&self.plan(query.namespace, query.agent, query.tool).steps, query)
    }

    /// Each rule that is considered for a call and why it does or does not hold: standard policies up to the first
    /// rule that is true, then guardrails, then shadow policies.
    pub fn explain(&self, call: &Call<'_>) -> Vec<RuleExplanation> {
        let policies = self
            .indexes
            .considered(call.namespace.as_str(), call.agent.as_str());
        explain(&policies, call)
    }

    /// The limits on an agent's calls: of every enforced policy that covers it.
    pub fn limits_for(&self, namespace: &Namespace, agent: &AgentId) -> Vec<(PolicyName, RateLimit)> {
        let covering = self.indexes.limited.matching(namespace.as_str(), agent.as_str());
        covering
            .into_iter()
            .filter_map(|found| Some((found.policy.name.clone(), found.policy.rate_limit?)))
            .collect()
    }

    /// The enforced standard policies of an agent in a namespace, in the order in which they are walked.
    pub fn walked(&self, namespace: &Namespace, agent: &AgentId) -> Vec<Arc<Policy>> {
        let found = self.indexes.standard.matching(namespace.as_str(), agent.as_str());
        found.into_iter().map(|found| found.policy).collect()
    }

    /// The policy of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.get(name)
    }

    /// The tests of a rule's condition that look at an argument, each with where it looks.
    pub(crate) fn argument_tests(&self, rule: &RuleRef) -> impl Iterator<Item = (&Path, &Test)> {
        let rule = self
            .get(rule.policy.as_str())
            .and_then(|policy| policy.rules.get(rule.index));
        let tests = rule
            .and_then(|rule| rule.condition.as_ref())
            .map(Condition::tests);
        tests.into_iter().flatten().filter_map(|test| match &test.field {
            Field::Argument(path) => Some((path, test)),
            Field::Agent | Field::User | Field::Session => None,
        })
    }

    /// Every policy, by name.
    pub fn policies(&self) -> impl ExactSizeIterator<Item = &Arc<Policy>> {
        self.policies.values()
    }

    /// The policies that could not be read.
    pub fn invalid(&self) -> &[Arc<InvalidPolicy>] {
        &self.indexes.invalid
    }

    pub(super) fn plan(
        &self,
        namespace: &Namespace,
        agent: &AgentId,
        tool: &tools::id::ToolName,
    ) -> Arc<Plan> {
        self.plans.get(namespace, agent, tool, || {
            self.indexes
                .resolve(namespace.as_str(), agent.as_str(), tool.as_str())
        })
    }
}

impl Default for PolicySet {
    /// No policies: every call is denied.
    fn default() -> Self {
        Self::compile([])
    }
}
