//! What an operator may do, and where.

use std::sync::Arc;

use net::problem::Problem;
use policy::glob::Glob;
use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// What an operator may do. Each role may do what the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Answers approvals, gives grants, presses stops.
    Approver,
    /// Changes policies, pins, what is known of tools; sets limits back.
    Editor,
    /// Changes guardrails and settings, lifts stops, enrols and revokes sidecars, gives tokens to operators.
    Admin,
}

impl Role {
    /// From least to most.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Approver, Self::Editor, Self::Admin];

    /// As it is written in requests, tokens and configurations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Approver => "approver",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Where an operator may do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In every namespace, and over what belongs to none.
    Everywhere,
    /// In these namespaces only. What lies in others is not there for the operator.
    Within(Arc<[String]>),
}

/// One role, in some namespaces or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// What.
    pub role: Role,
    /// Where.
    pub reach: Reach,
}

impl Right {
    /// Where these rights amount to a role; `None`: nowhere.
    #[must_use]
    pub fn reach_of(rights: &[Self], role: Role) -> Option<Reach> {
        let mut namespaces = Vec::new();
        for right in rights.iter().filter(|right| right.role >= role) {
            match &right.reach {
                Reach::Everywhere => return Some(Reach::Everywhere),
                Reach::Within(within) => namespaces.extend(within.iter().cloned()),
            }
        }
        namespaces.sort();
        namespaces.dedup();
        (!namespaces.is_empty()).then(|| Reach::Within(namespaces.into()))
    }
}

impl Reach {
    /// Within these namespaces; none given: everywhere.
    #[must_use]
    pub fn of(namespaces: &[String]) -> Self {
        if namespaces.is_empty() {
            Self::Everywhere
        } else {
            Self::Within(namespaces.into())
        }
    }

    /// The namespaces, where it is confined to some.
    #[must_use]
    pub fn namespaces(&self) -> Option<&[String]> {
        match self {
            Self::Everywhere => None,
            Self::Within(namespaces) => Some(namespaces),
        }
    }

    /// Whether what lies in a namespace is there for the operator.
    #[must_use]
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces()
            .is_none_or(|namespaces| namespaces.iter().any(|own| own == namespace))
    }

    /// Whether something over namespaces, named by patterns, concerns one of the operator's.
    #[must_use]
    pub fn meets(&self, patterns: &[String]) -> bool {
        self.namespaces().is_none_or(|namespaces| {
            let mut globs = patterns.iter().filter_map(|pattern| pattern.parse::<Glob>().ok());
            globs.any(|glob| namespaces.iter().any(|own| glob.matches(own)))
        })
    }

    /// Whether something over namespaces, named by patterns, concerns none but the operator's.
    #[must_use]
    pub fn contains(&self, patterns: &[String]) -> bool {
        self.namespaces().is_none_or(|namespaces| {
            let is_own = |pattern: &String| !pattern.contains(['*', '?']) && namespaces.contains(pattern);
            !patterns.is_empty() && patterns.iter().all(is_own)
        })
    }

    /// Whether all of another reach lies in this one.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        match (self.namespaces(), other.namespaces()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(others)) => others.iter().all(|other| own.contains(other)),
        }
    }

    /// Refuses what lies in another namespace as if it were not there.
    ///
    /// # Errors
    /// 404.
    pub fn find(&self, namespace: &str, what: &'static str, id: &str) -> Result<(), Problem> {
        if self.covers(namespace) {
            return Ok(());
        }
        let id = id.to_owned();
        Err(StoreError::NotFound { what, id }.into())
    }

    /// Refuses to act in another namespace.
    ///
    /// # Errors
    /// 403.
    pub fn act_in(&self, namespace: &str) -> Result<(), Problem> {
        if self.covers(namespace) {
            return Ok(());
        }
        Err(Problem::forbidden(format!(
            "the namespace {namespace:?} is none of this credential's"
        )))
    }

    /// The namespace that a request means: the one it names, else the credential's own where that is one, else `default` where it has none.
    ///
    /// # Errors
    /// 403 for a namespace of others, 400 where it has to be named.
    pub fn choose(&self, named: Option<String>, default: &str) -> Result<String, Problem> {
        match (named, self.namespaces()) {
            (Some(named), _) => self.act_in(&named).map(|()| named),
            (None, None) => Ok(default.to_owned()),
            (None, Some([only])) => Ok(only.clone()),
            (None, Some(namespaces)) => Err(Problem::bad_request(format!(
                "this credential is for several namespaces; give `namespace`: {}",
                namespaces.join(", ")
            ))),
        }
    }

    /// Refuses what concerns more than single namespaces.
    ///
    /// # Errors
    /// 403 for a confined operator.
    pub fn everywhere(&self) -> Result<(), Problem> {
        match self {
            Self::Everywhere => Ok(()),
            Self::Within(namespaces) => Err(Problem::forbidden(format!(
                "this concerns every namespace; the credential is confined to {}",
                namespaces.join(", ")
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(namespaces: &[&str]) -> Reach {
        Reach::of(&texts(namespaces))
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn roles_are_in_order_and_have_names() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(Role::from_name(role.name()), Some(role));
        }
        assert_eq!(Role::from_name("root"), None);
    }

    #[test]
    fn a_confined_reach_covers_its_namespaces_and_nothing_that_goes_beyond() {
        let both = within(&["a", "b"]);
        assert!(both.covers("a") && !both.covers("c") && !both.covers(""));
        assert!(within(&[]).covers("c") && within(&[]).everywhere().is_ok());
        assert!(both.everywhere().is_err());
        for (patterns, meets, contains) in [
            (&["*"][..], true, false),
            (&["a"], true, true),
            (&["a", "b"], true, true),
            (&["a", "c"], true, false),
            (&["c"], false, false),
            (&["?"], true, false),
            (&[], false, false),
        ] {
            let patterns = texts(patterns);
            assert_eq!(
                (both.meets(&patterns), both.contains(&patterns)),
                (meets, contains),
                "{patterns:?}"
            );
        }
        assert!(both.includes(&within(&["b"])) && !both.includes(&within(&["b", "c"])));
        assert!(!both.includes(&Reach::Everywhere) && Reach::Everywhere.includes(&both));
    }

    #[test]
    fn several_rights_add_up_for_each_role() {
        let right = |role, namespaces: &[&str]| Right {
            role,
            reach: within(namespaces),
        };
        let rights = [
            right(Role::Viewer, &[]),
            right(Role::Editor, &["b"]),
            right(Role::Admin, &["a"]),
        ];
        assert_eq!(Right::reach_of(&rights, Role::Viewer), Some(Reach::Everywhere));
        assert_eq!(
            Right::reach_of(&rights, Role::Approver),
            Some(within(&["a", "b"]))
        );
        assert_eq!(Right::reach_of(&rights, Role::Admin), Some(within(&["a"])));
        assert_eq!(Right::reach_of(&rights[..1], Role::Approver), None);
    }

    #[test]
    fn a_request_means_the_namespace_it_names_or_the_only_one_there_is() {
        let chosen = |reach: &Reach, named: Option<&str>| {
            reach
                .choose(named.map(str::to_owned), "default")
                .map_err(|problem| problem.status().as_u16())
        };
        assert_eq!(chosen(&Reach::Everywhere, None), Ok("default".into()));
        assert_eq!(chosen(&Reach::Everywhere, Some("x")), Ok("x".into()));
        assert_eq!(chosen(&within(&["a"]), None), Ok("a".into()));
        assert_eq!(chosen(&within(&["a"]), Some("b")), Err(403));
        assert_eq!(chosen(&within(&["a", "b"]), None), Err(400));
    }
}
