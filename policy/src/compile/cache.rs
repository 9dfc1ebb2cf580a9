//! The bounded memory of resolved plans.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};
use tools::id::{AgentId, Namespace, ToolName};

use super::plan::Plan;

/// How many plans are expected.
const EXPECTED_PLANS: usize = 1024;
/// The most steps that all kept plans hold together.
const MAX_STEPS: u64 = 128 * 1024;

/// What a plan is kept under.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    namespace: Namespace,
    agent: AgentId,
    tool: ToolName,
}

/// The same, borrowed.
#[derive(Hash)]
struct Lookup<'a> {
    namespace: &'a str,
    agent: &'a str,
    tool: &'a str,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (namespace, agent, tool) = (self.namespace.as_str(), self.agent.as_str(), self.tool.as_str());
        Lookup {
            namespace,
            agent,
            tool,
        }
        .hash(state);
    }
}

impl Equivalent<Key> for Lookup<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.tool == key.tool.as_str()
            && self.agent == key.agent.as_str()
            && self.namespace == key.namespace.as_str()
    }
}

#[derive(Debug, Clone)]
struct BySteps;

impl Weighter<Key, Arc<Plan>> for BySteps {
    fn weight(&self, _key: &Key, plan: &Arc<Plan>) -> u64 {
        plan.weight()
    }
}

/// Resolved plans, the least useful forgotten first.
pub(super) struct Plans {
    cache: Cache<Key, Arc<Plan>, BySteps>,
}

impl Plans {
    pub(super) fn new() -> Self {
        Self {
            cache: Cache::with_weighter(EXPECTED_PLANS, MAX_STEPS, BySteps),
        }
    }

    /// The plan kept for a name, or the one that `resolve` makes.
    pub(super) fn get(
        &self,
        namespace: &Namespace,
        agent: &AgentId,
        tool: &ToolName,
        resolve: impl FnOnce() -> Plan,
    ) -> Arc<Plan> {
        let lookup = Lookup {
            namespace: namespace.as_str(),
            agent: agent.as_str(),
            tool: tool.as_str(),
        };
        if let Some(plan) = self.cache.get(&lookup) {
            return plan;
        }
        let plan = Arc::new(resolve());
        let key = Key {
            namespace: namespace.clone(),
            agent: agent.clone(),
            tool: tool.clone(),
        };
        self.cache.insert(key, Arc::clone(&plan));
        plan
    }
}

impl std::fmt::Debug for Plans {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Plans")
            .field("kept", &self.cache.len())
            .finish()
    }
}
