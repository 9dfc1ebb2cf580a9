//! Emergency stops in memory: what holds now, and for whom.

use std::sync::Arc;

use policy::glob::Glob;
use proto::v1::StopSet;
use tokio::sync::watch;

use crate::auth::Claims;
use crate::store::stops::{Stop, StopScope, StopSubject, StopsHead};

/// The stops that hold, as of the last read of the primary.
#[derive(Debug)]
pub struct Stops {
    current: watch::Sender<Arc<StopsHead>>,
}

impl Stops {
    /// Starts with what holds.
    #[must_use]
    pub fn new(head: StopsHead) -> Self {
        Self {
            current: watch::Sender::new(Arc::new(head)),
        }
    }

    /// The sequence of the newest stop or lifting.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.current.borrow().sequence
    }

    /// Takes a later read and wakes those who wait.
    pub fn replace(&self, head: StopsHead) {
        self.current.send_replace(Arc::new(head));
    }

    /// Wakes at every change.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<StopsHead>> {
        self.current.subscribe()
    }

    /// The first stop that concerns a call.
    #[must_use]
    pub fn concerning(&self, call: &StopSubject<'_>) -> Option<Stop> {
        self.current
            .borrow()
            .stops
            .iter()
            .find(|stop| stop.concerns(call))
            .cloned()
    }

    /// All stops that hold for one receiver.
    #[must_use]
    pub fn set_for(&self, receiver: &StopsFor) -> StopSet {
        let head = self.current.borrow();
        StopSet {
            sequence: head.sequence,
            stops: head
                .stops
                .iter()
                .filter(|stop| receiver.is_concerned(stop))
                .map(Into::into)
                .collect(),
        }
    }
}

/// Which stops a receiver is told of: those that could concern a call of its namespace and agents.
#[derive(Clone, Debug)]
pub struct StopsFor {
    namespace: String,
    agents: Vec<Glob>,
}

impl StopsFor {
    /// The receiver of a credential.
    #[must_use]
    pub fn of(claims: &Claims) -> Self {
        Self {
            namespace: claims.namespace.clone(),
            agents: claims
                .agents
                .iter()
                .filter_map(|glob| glob.parse().ok())
                .collect(),
        }
    }

    fn is_concerned(&self, stop: &Stop) -> bool {
        if stop
            .in_namespace
            .as_deref()
            .is_some_and(|only| only != self.namespace)
        {
            return false;
        }
        match &stop.scope {
            StopScope::All | StopScope::Upstream(_) => true,
            StopScope::Session { agent, .. } => agent.as_deref().is_none_or(|agent| self.serves(agent)),
            StopScope::Namespace(name) => *name == self.namespace,
            StopScope::Agent(glob) => self.serves(glob),
        }
    }

    /// What cannot be read as a glob concerns everybody.
    fn serves(&self, agents: &str) -> bool {
        agents
            .parse::<Glob>()
            .map_or(true, |glob| self.agents.iter().any(|own| own.intersects(&glob)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(scope: StopScope, in_namespace: Option<&str>) -> Stop {
        Stop {
            id: "1".into(),
            sequence: 1,
            scope,
            in_namespace: in_namespace.map(str::to_owned),
            reason: String::new(),
            by: String::new(),
            created_at: 0,
            lifted: None,
        }
    }

    #[test]
    fn a_receiver_is_told_of_what_could_concern_it_and_nothing_else() {
        let receiver = StopsFor {
            namespace: "prod".into(),
            agents: vec!["support-*".parse().unwrap()],
        };
        let told = |scope, only| receiver.is_concerned(&stop(scope, only));
        assert!(told(StopScope::All, None));
        assert!(told(StopScope::Namespace("prod".into()), None));
        assert!(!told(StopScope::Namespace("dev".into()), None));
        assert!(told(StopScope::Agent("*-1".into()), None));
        assert!(!told(StopScope::Agent("billing".into()), None));
        assert!(!told(StopScope::Agent("*".into()), Some("dev")));
        assert!(told(StopScope::Upstream("github".into()), Some("prod")));
        assert!(told(StopScope::Agent("[broken".into()), None));
    }
}
