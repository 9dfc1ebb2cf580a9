//! Which resources one sidecar may see: what its namespace, agents and upstreams can touch, and nothing else.

use policy::glob::Glob;

use crate::auth::Claims;

/// The part of a credential that decides what its sidecar sees. Sidecars with equal scopes share one channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    namespace: String,
    agents: Vec<String>,
    upstreams: Vec<String>,
}

impl Scope {
    /// The scope of a credential.
    #[must_use]
    pub fn of(claims: &Claims) -> Self {
        let sorted = |globs: &[String]| {
            let mut globs = globs.to_vec();
            globs.sort();
            globs.dedup();
            globs
        };
        Self {
            namespace: claims.namespace.clone(),
            agents: sorted(&claims.agents),
            upstreams: sorted(&claims.upstreams),
        }
    }

    /// Hex SHA-256 of namespace, agents and upstreams; stands in every signed state.
    #[must_use]
    pub fn id(&self) -> String {
        proto::view::scope_id(&self.namespace, &self.agents, &self.upstreams)
    }
}

/// Whom a resource concerns.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Every sidecar of the installation.
    Everyone,
    /// Every sidecar of one namespace.
    Namespace(String),
    /// Sidecars of matching namespaces that serve an agent that one of the globs matches.
    Agents {
        /// Globs over namespaces.
        namespaces: Vec<Glob>,
        /// Globs over agents.
        agents: Vec<Glob>,
    },
    /// Sidecars of one namespace that serve an agent that one of the globs matches.
    AgentsIn {
        /// The namespace, literally.
        namespace: String,
        /// Globs over agents.
        agents: Vec<Glob>,
    },
    /// No sidecar: it cannot be read, and nothing is loosened by leaving it out.
    Nobody,
    /// Sidecars of one namespace that may publish one upstream.
    Upstream {
        /// The namespace, literally.
        namespace: String,
        /// The upstream, literally.
        upstream: String,
    },
}

/// A scope, ready to be asked.
#[derive(Clone, Debug)]
pub struct Filter {
    namespace: String,
    agents: Vec<Glob>,
    upstreams: Vec<Glob>,
}

impl Filter {
    /// Compiles a scope; `None` when one of its globs is none. Enrolment refuses such scopes.
    #[must_use]
    pub fn new(scope: &Scope) -> Option<Self> {
        let globs = |texts: &[String]| {
            texts
                .iter()
                .map(|text| text.parse().ok())
                .collect::<Option<Vec<Glob>>>()
        };
        Some(Self {
            namespace: scope.namespace.clone(),
            agents: globs(&scope.agents)?,
            upstreams: globs(&scope.upstreams)?,
        })
    }

    /// Whether a resource of that reach can touch anything in this scope.
    #[must_use]
    pub fn admits(&self, reach: &Reach) -> bool {
        match reach {
            Reach::Everyone => true,
            Reach::Namespace(namespace) => *namespace == self.namespace,
            Reach::Agents { namespaces, agents } => {
                namespaces.iter().any(|glob| glob.matches(&self.namespace)) && self.serves(agents)
            }
            Reach::AgentsIn { namespace, agents } => *namespace == self.namespace && self.serves(agents),
            Reach::Nobody => false,
            Reach::Upstream { namespace, upstream } => {
                *namespace == self.namespace && self.upstreams.iter().any(|own| own.matches(upstream))
            }
        }
    }

    fn serves(&self, agents: &[Glob]) -> bool {
        agents
            .iter()
            .any(|glob| self.agents.iter().any(|own| own.intersects(glob)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(namespace: &str, agents: &[&str], upstreams: &[&str]) -> Scope {
        Scope::of(&Claims {
            sidecar: "s".into(),
            namespace: namespace.into(),
            epoch: 1,
            agents: agents.iter().map(|&a| a.to_owned()).collect(),
            upstreams: upstreams.iter().map(|&u| u.to_owned()).collect(),
            expires_at: 0,
        })
    }

    fn globs(texts: &[&str]) -> Vec<Glob> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_policy_reaches_sidecars_whose_agents_it_could_match() {
        let filter = Filter::new(&scope("prod", &["support-*"], &["*"])).unwrap();
        let reach = |namespaces: &[&str], agents: &[&str]| Reach::Agents {
            namespaces: globs(namespaces),
            agents: globs(agents),
        };
        assert!(filter.admits(&reach(&["*"], &["*"])));
        assert!(filter.admits(&reach(&["pro*"], &["*-eu"])));
        assert!(filter.admits(&reach(&["x", "prod"], &["billing", "support-1"])));
        assert!(!filter.admits(&reach(&["dev"], &["*"])));
        assert!(!filter.admits(&reach(&["*"], &["billing-*"])));
    }

    #[test]
    fn pins_stay_with_their_namespace_and_upstream() {
        let filter = Filter::new(&scope("prod", &["*"], &["github"])).unwrap();
        let reach = |namespace: &str, upstream: &str| Reach::Upstream {
            namespace: namespace.into(),
            upstream: upstream.into(),
        };
        assert!(filter.admits(&reach("prod", "github")));
        assert!(!filter.admits(&reach("dev", "github")));
        assert!(!filter.admits(&reach("prod", "mail")));
        assert!(!filter.admits(&Reach::Namespace("dev".into())));
    }

    #[test]
    fn equal_scopes_have_one_id_and_different_ones_never_share() {
        assert_eq!(
            scope("a", &["x", "y"], &[]).id(),
            scope("a", &["y", "x", "x"], &[]).id()
        );
        assert_ne!(scope("a", &["x"], &["y"]).id(), scope("a", &["x", "y"], &[]).id());
        assert_ne!(scope("ab", &["x"], &[]).id(), scope("a", &["bx"], &[]).id());
    }
}
