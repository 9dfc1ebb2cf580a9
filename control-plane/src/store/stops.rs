//! Emergency stops. They have a locked sequence of their own and never take a revision.

use async_trait::async_trait;
use policy::glob::Glob;
use proto::v1;

use super::{
    error::StoreResult,
    types::{Act, Micros},
};

/// What a stop concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopScope {
    /// Everything.
    All,
    /// A namespace by its literal name.
    Namespace(String),
    /// Agents by glob.
    Agent(String),
    /// A session.
    Session {
        /// The session's id.
        id: String,
        /// Of this agent only.
        agent: Option<String>,
        /// Of this user only.
        user: Option<String>,
    },
    /// An upstream by its literal name.
    Upstream(String),
}

/// A stop to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopDraft {
    /// What it concerns.
    pub scope: StopScope,
    /// Only in this namespace; `None`: in all.
    pub in_namespace: Option<String>,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
}

/// A stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Random hex.
    pub id: String,
    /// Position in the order of stops and liftings.
    pub sequence: u64,
    /// What it concerns.
    pub scope: StopScope,
    /// Only in this namespace; `None`: in all.
    pub in_namespace: Option<String>,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
    /// When.
    pub created_at: Micros,
    /// When and by whom it was lifted; `None`: it holds.
    pub lifted: Option<(Micros, String)>,
}

impl Stop {
    /// Does it concern a call with these properties? Empty `user` and `session`: the call has none.
    #[must_use]
    pub fn concerns(&self, call: &StopSubject<'_>) -> bool {
        if self
            .in_namespace
            .as_deref()
            .is_some_and(|only| only != call.namespace)
        {
            return false;
        }
        match &self.scope {
            StopScope::All => true,
            StopScope::Namespace(name) => name == call.namespace,
            StopScope::Agent(glob) => glob_matches(glob, call.agent),
            StopScope::Session { id, agent, user } => {
                !call.session.is_empty()
                    && id == call.session
                    && agent.as_deref().is_none_or(|agent| agent == call.agent)
                    && user.as_deref().is_none_or(|user| user == call.user)
            }
            StopScope::Upstream(name) => name == call.upstream,
        }
    }
}

/// The properties of a call that stops look at.
#[derive(Clone, Copy, Debug)]
pub struct StopSubject<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its agent.
    pub agent: &'a str,
    /// Its user, or empty.
    pub user: &'a str,
    /// Its session, or empty.
    pub session: &'a str,
    /// The upstream of its tool, or empty.
    pub upstream: &'a str,
}

impl From<&Stop> for v1::Stop {
    fn from(stop: &Stop) -> Self {
        use v1::stop::Scope;
        let scope = match &stop.scope {
            StopScope::All => Scope::All(true),
            StopScope::Namespace(name) => Scope::Namespace(name.clone()),
            StopScope::Agent(glob) => Scope::Agent(glob.clone()),
            StopScope::Session { id, agent, user } => Scope::Session(v1::stop::SessionScope {
                id: id.clone(),
                agent: agent.clone().unwrap_or_default(),
                user: user.clone().unwrap_or_default(),
            }),
            StopScope::Upstream(name) => Scope::Upstream(name.clone()),
        };
        Self {
            id: stop.id.clone(),
            sequence: stop.sequence,
            scope: Some(scope),
            reason: stop.reason.clone(),
            by: stop.by.clone(),
            created_at: stop.created_at,
            in_namespace: stop.in_namespace.clone().unwrap_or_default(),
        }
    }
}

/// What making a stop did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopMade {
    /// The stop.
    pub stop: Stop,
    /// Pending approvals that it denied.
    pub denied: Vec<String>,
    /// Approved, unconsumed approvals that it cancelled.
    pub cancelled: Vec<String>,
}

/// The stops that hold, and the sequence that the set is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopsHead {
    /// Of the newest stop or lifting.
    pub sequence: u64,
    /// By sequence.
    pub stops: Vec<Stop>,
}

/// Stops.
#[async_trait]
pub trait Stops: Send + Sync {
    /// Makes a stop. In the same transaction, pending approvals that it concerns are denied, approved ones cancelled, and grants that it
    /// covers suspended.
    async fn create_stop(&self, draft: StopDraft, act: Act) -> StoreResult<StopMade>;

    /// Lifts a stop by its id or a unique prefix. Suspended grants that no other stop covers come back with the time they had left (a
    /// revision). [`Conflict`](super::StoreError::Conflict) when it was lifted before.
    async fn lift_stop(&self, id: &str, by: &str, act: Act) -> StoreResult<Stop>;

    /// Newest first; those that hold, or also lifted ones.
    async fn stops(&self, also_lifted: bool) -> StoreResult<Vec<Stop>>;

    /// Those that hold, with their sequence, from one consistent read.
    async fn stops_head(&self) -> StoreResult<StopsHead>;
}

/// A glob of the policy language. One that cannot be read matches everything: a stop must not fail to hold.
pub(crate) fn glob_matches(glob: &str, text: &str) -> bool {
    glob.parse::<Glob>().map_or(true, |glob| glob.matches(text))
}
