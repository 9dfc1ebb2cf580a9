//! The decision about every call, as one readable function: [`Gate::call`] in `pass.rs`.
//!
//! A call is forwarded only with a `Permit`, which is made only from a registered intent and an allowing decision or a
//! claim; so no error path can end in a forward. Every exit writes a record.

mod approve;
mod ask;
mod asked;
mod bounds;
mod call;
mod checks;
mod continuation;
mod flight;
mod forward;
mod limits;
mod listing;
mod loops;
mod pass;
mod program;
mod refusal;
mod refused;
mod reported;
mod subject;
#[cfg(test)]
mod tests;
mod trace;
mod trail;
mod verdict;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use net::clock::Clock;
use tokio_util::sync::CancellationToken;
use tools::id::Namespace;
use tools::model::Tool;

pub use ask::{AskReport, AskRequest};
pub use asked::{AskedAgent, OpenQuestion};
pub use call::{
    Arguments, CallReport, CallRequest, End, OnPending, OtherRequest, Patience, PendingApproval, Session,
    Unreadable, Waits,
};
pub use continuation::Continuation;
pub use flight::CancelCause;
pub use listing::{ChangedLists, Changes};
pub use loops::{LoopDetector, LoopKey};
pub use refusal::Refusal;
pub use trace::{TraceContext, call_id, random_bytes};
pub use verdict::Summary;

use crate::agent::names::Names;
use crate::control::redact::ParamsMode;
use crate::control::{Control, SidecarIdentity, Snapshot};
use crate::identity::AgentScope;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::spool::Spool;
use crate::upstream::Upstreams;
use flight::InFlight;
use reported::KnownRedactor;

/// What a sidecar's own configuration tightens.
#[derive(Debug, Clone, Default)]
pub struct LocalRules {
    /// Equal calls in ten seconds before a loop is seen.
    pub loop_max: Option<u32>,
    /// Leave out of lists what cannot run, whatever the fleet says.
    pub hide_denied_tools: bool,
    /// What of the arguments is reported at most.
    pub params: ParamsMode,
    /// More keys and paths that are masked.
    pub redact: Vec<String>,
}

impl LocalRules {
    /// Nothing is stricter here than in the fleet.
    pub fn none() -> Self {
        Self {
            params: ParamsMode::Full,
            ..Self::default()
        }
    }
}

/// Everything that a gate works with.
pub struct Parts {
    /// Desired state, approvals and limits.
    pub control: Control,
    /// The queue of records.
    pub spool: Spool,
    /// The tools that are served.
    pub registry: Registry,
    /// Where calls go.
    pub upstreams: Arc<Upstreams>,
    /// What the local configuration tightens.
    pub local: LocalRules,
    /// Globs over agents that the local configuration narrows the scope to.
    pub configured_agents: Vec<policy::glob::Glob>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Time.
    pub clock: Clock,
    /// Cancelled when the sidecar ends.
    pub shutdown: CancellationToken,
}

/// The gate: every call passes it, and nothing is forwarded but by it.
pub struct Gate {
    control: Control,
    spool: Spool,
    registry: Registry,
    upstreams: Arc<Upstreams>,
    local: LocalRules,
    configured_agents: Vec<policy::glob::Glob>,
    metrics: Arc<Metrics>,
    clock: Clock,
    shutdown: CancellationToken,
    loops: LoopDetector,
    in_flight: InFlight,
    scope: ArcSwapOption<KnownScope>,
    redactor: ArcSwapOption<KnownRedactor>,
}

/// The scope that was made of an identity.
struct KnownScope {
    of: Arc<SidecarIdentity>,
    scope: Arc<AgentScope>,
}

impl Gate {
    /// A gate over its parts.
    pub fn new(parts: Parts) -> Self {
        let Parts {
            control,
            spool,
            registry,
            upstreams,
            local,
            configured_agents,
            metrics,
            clock,
            shutdown,
        } = parts;
        Self {
            control,
            spool,
            registry,
            upstreams,
            local,
            configured_agents,
            metrics,
            clock,
            shutdown,
            loops: LoopDetector::new(),
            in_flight: InFlight::default(),
            scope: ArcSwapOption::empty(),
            redactor: ArcSwapOption::empty(),
        }
    }

    /// The agents that may be served: what the sidecar's credential covers, narrowed by its configuration.
    pub fn scope(&self) -> Arc<AgentScope> {
        let Some(identity) = self.control.identity() else {
            return Arc::default();
        };
        if let Some(known) = self
            .scope
            .load_full()
            .filter(|known| Arc::ptr_eq(&known.of, &identity))
        {
            return Arc::clone(&known.scope);
        }
        let credential = identity
            .agents
            .iter()
            .filter_map(|glob| glob.parse().ok())
            .collect();
        let scope = Arc::new(AgentScope::new(credential, self.configured_agents.clone()));
        self.scope.store(Some(Arc::new(KnownScope {
            of: identity,
            scope: Arc::clone(&scope),
        })));
        scope
    }

    /// The namespace of this sidecar; `default` before it has enrolled.
    fn namespace(&self) -> Namespace {
        self.control
            .identity()
            .map(|identity| identity.namespace.clone())
            .unwrap_or_default()
    }

    /// The desired state in force, with the tools judged as it says.
    fn view(&self) -> Arc<Snapshot> {
        let view = self.control.snapshot();
        self.registry.correct(&view.corrections);
        view
    }

    /// The tool that an agent means by `name`.
    pub fn lookup(&self, names: &Names, name: &str) -> Option<Arc<Tool>> {
        names.meant(name).find_map(|name| self.served(&name))
    }

    /// How long an MCP call waits for a person before it is answered.
    pub fn approval_wait(&self) -> Duration {
        Duration::from_millis(self.control.snapshot().settings.approval_wait_ms)
    }

    /// How long people have to answer.
    pub fn approval_timeout(&self) -> Duration {
        Duration::from_millis(self.control.snapshot().settings.approval_timeout_ms)
    }

    /// How long a REST call is held while its approval is pending.
    pub fn rest_hold(&self) -> Duration {
        Duration::from_millis(self.control.snapshot().settings.approval_rest_hold_ms)
    }

    /// The parts that are shown to operators and clients.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The tools that are served.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where calls go.
    pub fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// The queue of records.
    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Calls in flight.
    pub fn calls_in_flight(&self) -> usize {
        self.in_flight.len()
    }
}
