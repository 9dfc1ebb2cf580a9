//! Emergency stops: what they cover, and the set of those that hold.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tools::id::{AgentId, IdError, Namespace, SessionId, UpstreamName, UserId};

use crate::glob::{Glob, GlobError};

/// What a stop covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopScope {
    /// Everything.
    All,
    /// One namespace.
    Namespace(Namespace),
    /// Agents, in every namespace.
    Agent(Glob),
    /// One session; agent and user where sessions of several have the same id.
    Session {
        /// The session.
        session: SessionId,
        /// Only this agent's.
        agent: Option<AgentId>,
        /// Only this user's.
        user: Option<UserId>,
    },
    /// One upstream.
    Upstream(UpstreamName),
}

/// Why a text is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// None of the known forms.
    #[error(
        "stop scope \"{0}\" is unknown; write all, namespace:<name>, agent:<pattern>, session:<id> or upstream:<name>"
    )]
    Unknown(String),
    /// A name in it is not valid.
    #[error("stop scope: {0}")]
    Id(#[from] IdError),
    /// The agent pattern is not valid.
    #[error("stop scope: {0}")]
    Glob(#[from] GlobError),
    /// Agent or user given with a scope other than a session.
    #[error("\"agent\" and \"user\" tell sessions apart; scope \"{0}\" takes neither")]
    NotASession(String),
}

impl StopScope {
    /// Reads `all`, `namespace:<name>`, `agent:<pattern>`, `session:<id>` (with agent and user) or `upstream:<name>`.
    ///
    /// # Errors
    /// When the text has none of these forms, or a name in it is not valid.
    pub fn parse(text: &str, agent: Option<AgentId>, user: Option<UserId>) -> Result<Self, ScopeError> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        if kind != "session" && (agent.is_some() || user.is_some()) {
            return Err(ScopeError::NotASession(text.to_owned()));
        }
        match kind {
            "all" if text == "all" => Ok(Self::All),
            "namespace" => Ok(Self::Namespace(name.parse()?)),
            "agent" => Ok(Self::Agent(name.parse()?)),
            "session" => Ok(Self::Session {
                session: name.parse()?,
                agent,
                user,
            }),
            "upstream" => Ok(Self::Upstream(name.parse()?)),
            _ => Err(ScopeError::Unknown(text.to_owned())),
        }
    }
}

/// The text form, without a session's agent and user.
impl fmt::Display for StopScope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => out.write_str("all"),
            Self::Namespace(name) => write!(out, "namespace:{name}"),
            Self::Agent(glob) => write!(out, "agent:{glob}"),
            Self::Session { session, .. } => write!(out, "session:{session}"),
            Self::Upstream(name) => write!(out, "upstream:{name}"),
        }
    }
}

/// One stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Stop {
    /// Its id.
    pub id: Arc<str>,
    /// What it covers.
    pub scope: StopScope,
    /// Why it was pressed.
    pub reason: Arc<str>,
    /// Who pressed it.
    pub by: Arc<str>,
    /// The number of the change that pressed it; stops have a sequence of their own.
    pub sequence: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    id: Arc<str>,
    scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<UserId>,
    reason: Arc<str>,
    by: Arc<str>,
    sequence: u64,
}

impl TryFrom<Wire> for Stop {
    type Error = ScopeError;

    fn try_from(wire: Wire) -> Result<Self, ScopeError> {
        let scope = StopScope::parse(&wire.scope, wire.agent, wire.user)?;
        Ok(Self {
            id: wire.id,
            scope,
            reason: wire.reason,
            by: wire.by,
            sequence: wire.sequence,
        })
    }
}

impl From<Stop> for Wire {
    fn from(stop: Stop) -> Self {
        let scope = stop.scope.to_string();
        let (agent, user) = match stop.scope {
            StopScope::Session { agent, user, .. } => (agent, user),
            StopScope::All | StopScope::Namespace(_) | StopScope::Agent(_) | StopScope::Upstream(_) => {
                (None, None)
            }
        };
        Self {
            id: stop.id,
            scope,
            agent,
            user,
            reason: stop.reason,
            by: stop.by,
            sequence: stop.sequence,
        }
    }
}

/// What stops look at: a call, a pending approval, or a grant's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSubject<'a> {
    /// Where it happens.
    pub namespace: &'a Namespace,
    /// Who calls.
    pub agent: &'a AgentId,
    /// For whom.
    pub user: Option<&'a UserId>,
    /// In which conversation.
    pub session: Option<&'a SessionId>,
    /// Which upstream is called.
    pub upstream: Option<&'a str>,
}

impl Stop {
    /// Whether the stop covers a call.
    pub fn matches(&self, subject: &CallSubject<'_>) -> bool {
        match &self.scope {
            StopScope::All => true,
            StopScope::Namespace(namespace) => namespace == subject.namespace,
            StopScope::Agent(glob) => glob.matches(subject.agent.as_str()),
            StopScope::Session { session, agent, user } => {
                subject.session == Some(session)
                    && agent.as_ref().is_none_or(|agent| agent == subject.agent)
                    && user.as_ref().is_none_or(|user| subject.user == Some(user))
            }
            StopScope::Upstream(upstream) => subject.upstream == Some(upstream.as_str()),
        }
    }
}

/// The stops that hold, as of a number in their own sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopSet {
    sequence: u64,
    held: BTreeMap<Arc<str>, Arc<Stop>>,
}

/// Why a change of stops is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// A number that is not the next.
    #[error("stop change {found} does not follow {current}")]
    OutOfOrder {
        /// The number of the change.
        found: u64,
        /// The number that the set stands at.
        current: u64,
    },
    /// A stop of this id is held already.
    #[error("stop \"{0}\" is held already")]
    AlreadyHeld(Arc<str>),
    /// No stop of this id is held.
    #[error("no stop \"{0}\" is held")]
    NotHeld(String),
}

impl StopSet {
    /// The stops that hold as of a number.
    pub fn new(sequence: u64, stops: impl IntoIterator<Item = Arc<Stop>>) -> Self {
        Self {
            sequence,
            held: stops
                .into_iter()
                .map(|stop| (Arc::clone(&stop.id), stop))
                .collect(),
        }
    }

    /// The number of the last change.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The stops that hold, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Stop>> {
        self.held.values()
    }

    /// Whether nothing is stopped.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The first stop that covers a call.
    pub fn covering(&self, subject: &CallSubject<'_>) -> Option<&Arc<Stop>> {
        self.held.values().find(|stop| stop.matches(subject))
    }

    /// Holds one more stop.
    ///
    /// # Errors
    /// When its number is not beyond the set's, or its id is held.
    pub fn press(&mut self, stop: Arc<Stop>) -> Result<(), StopError> {
        self.must_follow(stop.sequence)?;
        if self.held.contains_key(&stop.id) {
            return Err(StopError::AlreadyHeld(Arc::clone(&stop.id)));
        }
        self.sequence = stop.sequence;
        self.held.insert(Arc::clone(&stop.id), stop);
        Ok(())
    }

    /// Lifts a stop, as change `sequence`.
    ///
    /// # Errors
    /// When the number is not beyond the set's, or no such stop is held.
    pub fn lift(&mut self, id: &str, sequence: u64) -> Result<Arc<Stop>, StopError> {
        self.must_follow(sequence)?;
        let lifted = self
            .held
            .remove(id)
            .ok_or_else(|| StopError::NotHeld(id.to_owned()))?;
        self.sequence = sequence;
        Ok(lifted)
    }

    /// Takes the newer of two views; an older one changes nothing. Says whether this one changed.
    pub fn advance(&mut self, other: StopSet) -> bool {
        let newer = other.sequence > self.sequence;
        if newer {
            *self = other;
        }
        newer
    }

    fn must_follow(&self, found: u64) -> Result<(), StopError> {
        if found > self.sequence {
            Ok(())
        } else {
            Err(StopError::OutOfOrder {
                found,
                current: self.sequence,
            })
        }
    }
}

#[cfg(test)]
mod tests;
