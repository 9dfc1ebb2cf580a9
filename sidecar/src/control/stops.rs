//! The emergency stops that hold here.

use std::sync::Arc;

use policy::stop::{CallSubject, Stop, StopScope};
use proto::v1;
use proto::v1::stop::Scope as WireScope;

/// A stop with the namespace that it is confined to.
#[derive(Clone, Debug)]
struct Confined {
    stop: Arc<Stop>,
    in_namespace: Option<String>,
}

impl Confined {
    fn new(wire: &v1::Stop) -> Self {
        let stop = Stop {
            id: wire.id.as_str().into(),
            // A scope that cannot be read stops everything.
            scope: scope(wire.scope.as_ref()).unwrap_or(StopScope::All),
            reason: wire.reason.as_str().into(),
            by: wire.by.as_str().into(),
            sequence: wire.sequence,
        };
        Self {
            stop: Arc::new(stop),
            in_namespace: Some(wire.in_namespace.clone()).filter(|name| !name.is_empty()),
        }
    }

    fn matches(&self, subject: &CallSubject<'_>) -> bool {
        let is_here = self
            .in_namespace
            .as_deref()
            .is_none_or(|only| only == subject.namespace.as_str());
        is_here && self.stop.matches(subject)
    }
}

fn scope(wire: Option<&WireScope>) -> Option<StopScope> {
    match wire? {
        WireScope::All(_) => Some(StopScope::All),
        WireScope::Namespace(name) => name.parse().ok().map(StopScope::Namespace),
        WireScope::Agent(glob) => glob.parse().ok().map(StopScope::Agent),
        WireScope::Session(session) => Some(StopScope::Session {
            session: session.id.parse().ok()?,
            agent: optional(&session.agent)?,
            user: optional(&session.user)?,
        }),
        WireScope::Upstream(name) => name.parse().ok().map(StopScope::Upstream),
    }
}

/// An empty text means any; `None` is a text that is no name.
fn optional<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
    if text.is_empty() {
        Some(None)
    } else {
        text.parse().ok().map(Some)
    }
}

/// All stops that hold here.
#[derive(Clone, Debug, Default)]
pub struct StopSet {
    stops: Vec<Confined>,
    sequence: u64,
    /// The generation that `sequence` belongs to: a restored database counts anew.
    generation: u64,
    wire: Arc<v1::StopSet>,
}

impl PartialEq for StopSet {
    fn eq(&self, other: &Self) -> bool {
        self.generation == other.generation && self.wire == other.wire
    }
}

impl StopSet {
    pub(super) fn new(set: v1::StopSet, generation: u64) -> Self {
        Self {
            stops: set.stops.iter().map(Confined::new).collect(),
            sequence: set.sequence,
            generation,
            wire: Arc::new(set),
        }
    }

    /// The first stop that covers a call.
    pub fn covering(&self, subject: &CallSubject<'_>) -> Option<&Arc<Stop>> {
        self.stops
            .iter()
            .find(|stop| stop.matches(subject))
            .map(|held| &held.stop)
    }

    /// The newest stop or lifting that this set contains.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The stops.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Stop>> {
        self.stops.iter().map(|held| &held.stop)
    }

    /// Whether nothing is stopped.
    pub fn is_empty(&self) -> bool {
        self.stops.is_empty()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn to_wire(&self) -> &v1::StopSet {
        &self.wire
    }

    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        (self.generation, self.sequence) < (other.generation, other.sequence)
    }
}

#[cfg(test)]
mod tests {
    use tools::id::{AgentId, Namespace, SessionId, UserId};

    use super::*;

    fn matches(scope: Option<WireScope>, in_namespace: &str) -> bool {
        let stop = Confined::new(&v1::Stop {
            scope,
            in_namespace: in_namespace.into(),
            ..v1::Stop::default()
        });
        let (agent, user): (AgentId, UserId) = ("support-1".parse().unwrap(), "ann".parse().unwrap());
        let session: SessionId = "s1".parse().unwrap();
        stop.matches(&CallSubject {
            namespace: &Namespace::default(),
            agent: &agent,
            user: Some(&user),
            session: Some(&session),
            upstream: Some("github"),
        })
    }

    fn session(user: &str) -> Option<WireScope> {
        Some(WireScope::Session(v1::stop::SessionScope {
            id: "s1".into(),
            agent: String::new(),
            user: user.into(),
        }))
    }

    #[test]
    fn each_scope_matches_its_own_and_no_other() {
        assert!(matches(Some(WireScope::Agent("support-*".into())), ""));
        assert!(!matches(Some(WireScope::Agent("billing-*".into())), ""));
        assert!(matches(Some(WireScope::Upstream("github".into())), ""));
        assert!(!matches(Some(WireScope::Upstream("mail".into())), ""));
        assert!(matches(Some(WireScope::Namespace("default".into())), ""));
        assert!(matches(session("ann"), "") && matches(session(""), ""));
        assert!(!matches(session("bob"), ""));
    }

    #[test]
    fn a_scope_that_cannot_be_read_stops_everything() {
        assert!(matches(None, ""));
        assert!(matches(Some(WireScope::Agent("[".into())), ""));
        assert!(matches(session("line\nbreak"), ""));
    }

    #[test]
    fn a_stop_of_another_namespace_does_not_reach_here() {
        assert!(matches(Some(WireScope::Agent("*".into())), "default"));
        assert!(!matches(Some(WireScope::Agent("*".into())), "other"));
    }

    #[test]
    fn a_restored_database_counts_stops_anew() {
        let set = |sequence, generation| {
            StopSet::new(
                v1::StopSet {
                    sequence,
                    stops: vec![],
                },
                generation,
            )
        };
        assert!(set(4, 1).is_older_than(&set(5, 1)));
        assert!(!set(5, 1).is_older_than(&set(5, 1)));
        assert!(!set(1, 2).is_older_than(&set(5, 1)));
    }
}
