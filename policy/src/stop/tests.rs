use super::*;

struct Names {
    namespace: Namespace,
    agent: AgentId,
    user: UserId,
    session: SessionId,
}

impl Names {
    fn new() -> Self {
        Self {
            namespace: "prod".parse().unwrap(),
            agent: "claude-1".parse().unwrap(),
            user: "ann".parse().unwrap(),
            session: "s1".parse().unwrap(),
        }
    }

    fn subject(&self) -> CallSubject<'_> {
        CallSubject {
            namespace: &self.namespace,
            agent: &self.agent,
            user: Some(&self.user),
            session: Some(&self.session),
            upstream: Some("github"),
        }
    }
}

fn stop(scope: &str, sequence: u64) -> Stop {
    Stop {
        id: Arc::from(format!("id{sequence}")),
        scope: StopScope::parse(scope, None, None).unwrap(),
        reason: Arc::from("test"),
        by: Arc::from("me"),
        sequence,
    }
}

#[test]
fn every_scope_covers_what_it_names() {
    let names = Names::new();
    for scope in [
        "all",
        "namespace:prod",
        "agent:claude-*",
        "session:s1",
        "upstream:github",
    ] {
        assert!(stop(scope, 1).matches(&names.subject()), "{scope}");
    }
    for scope in ["namespace:dev", "agent:codex", "session:s2", "upstream:gitlab"] {
        assert!(!stop(scope, 1).matches(&names.subject()), "{scope}");
    }
}

#[test]
fn a_session_of_another_agent_or_user_is_not_covered() {
    let names = Names::new();
    let covers = |agent: Option<&str>, user: Option<&str>| {
        let agent = agent.map(|agent| agent.parse().unwrap());
        let user = user.map(|user| user.parse().unwrap());
        let scope = StopScope::parse("session:s1", agent, user).unwrap();
        Stop {
            scope,
            ..stop("all", 1)
        }
        .matches(&names.subject())
    };
    assert!(covers(Some("claude-1"), Some("ann")));
    assert!(!covers(Some("codex"), None));
    assert!(!covers(None, Some("bob")));
}

#[test]
fn unknown_scopes_are_refused_with_the_valid_forms() {
    let error = StopScope::parse("tool:x", None, None).unwrap_err();
    assert!(error.to_string().contains("agent:<pattern>"));
    for scope in ["agent:", "all:x", "upstream:mesh", "agent:a[b]"] {
        assert!(StopScope::parse(scope, None, None).is_err(), "{scope}");
    }
    assert!(StopScope::parse("all", Some("a".parse().unwrap()), None).is_err());
}

#[test]
fn stops_travel_as_json() {
    let scope = StopScope::parse("session:s1", Some("a".parse().unwrap()), None).unwrap();
    let stop = Stop {
        scope,
        ..stop("all", 3)
    };
    let json = serde_json::to_string(&stop).unwrap();
    assert!(
        json.contains("\"scope\":\"session:s1\",\"agent\":\"a\""),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<Stop>(&json).unwrap(), stop);
}

#[test]
fn changes_follow_their_own_sequence() {
    let mut set = StopSet::default();
    set.press(Arc::new(stop("all", 1))).unwrap();
    assert_eq!(
        set.press(Arc::new(stop("all", 1))),
        Err(StopError::OutOfOrder { found: 1, current: 1 })
    );
    assert!(set.covering(&Names::new().subject()).is_some());
    assert_eq!(set.lift("other", 2), Err(StopError::NotHeld("other".to_owned())));
    let before = set.clone();
    set.lift("id1", 2).unwrap();
    assert!(set.is_empty() && set.sequence() == 2);
    assert!(!set.advance(before), "an older view brings no stop back");
    assert!(set.advance(StopSet::new(3, [Arc::new(stop("all", 3))])));
}
