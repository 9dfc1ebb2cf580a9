//! What words say, as `data/verbs.txt` and `data/things.txt` write it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{Risk, SideEffectKind};

const VERBS_FILE: &str = include_str!("data/verbs.txt");
const THINGS_FILE: &str = include_str!("data/things.txt");

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Act {
    Read,
    Write,
    Execute,
    Send,
    Delete,
    Admin,
    Pay,
}

impl Act {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Read, "read"),
        (Self::Write, "write"),
        (Self::Execute, "execute"),
        (Self::Send, "send"),
        (Self::Delete, "delete"),
        (Self::Admin, "admin"),
        (Self::Pay, "pay"),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, own)| *own == name)
            .map(|(act, _)| act)
    }

    /// The class of risk of doing this; `local`: to files or within a closed world.
    pub(super) fn risk(self, local: bool) -> Risk {
        match self {
            Self::Read => Risk::Read,
            Self::Write if local => Risk::LocalWrite,
            Self::Write => Risk::ExternalWrite,
            Self::Execute => Risk::Execution,
            Self::Send => Risk::Communication,
            Self::Delete => Risk::Delete,
            Self::Admin => Risk::PermissionChange,
            Self::Pay => Risk::Financial,
        }
    }

    pub(super) fn side_effect(self) -> SideEffectKind {
        match self {
            Self::Read => SideEffectKind::Read,
            Self::Write | Self::Execute | Self::Send | Self::Pay => SideEffectKind::Write,
            Self::Delete => SideEffectKind::Delete,
            Self::Admin => SideEffectKind::Admin,
        }
    }

    /// The second half of a capability.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "run",
            Self::Send => "send",
            Self::Delete => "delete",
            Self::Admin => "permit",
            Self::Pay => "pay",
        }
    }
}

/// Where in a name a word counts as a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    Head,
    HeadIfAlone,
    Last,
}

impl Place {
    fn named(name: &str) -> Option<Self> {
        match name {
            "anywhere" => Some(Self::Anywhere),
            "head" => Some(Self::Head),
            "head if alone" => Some(Self::HeadIfAlone),
            "last" => Some(Self::Last),
            _ => None,
        }
    }
}

/// A word that can be a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verb {
    pub(super) act: Act,
    pub(super) place: Place,
}

impl Verb {
    pub(super) fn writes(self) -> bool {
        self.act != Act::Read
    }

    pub(super) fn is_plain(self) -> bool {
        self.place == Place::Anywhere
    }
}

/// What a word says about a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Domain {
    pub(super) name: &'static str,
    /// Files that are elsewhere.
    pub(super) is_remote: bool,
}

/// Things whose writing is of a graver class.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) act: Act,
    /// With these verbs; none: with any.
    pub(super) verbs: Option<Vec<&'static str>>,
    pub(super) things: Vec<&'static str>,
}

struct Things {
    domains: HashMap<&'static str, Domain>,
    objects: Vec<Object>,
}

static VERBS: LazyLock<HashMap<&'static str, Verb>> = LazyLock::new(|| {
    verb_lines()
        .filter_map(|(head, words)| Some((verb_head(head)?, words)))
        .flat_map(|(verb, words)| words.split_whitespace().map(move |word| (word, verb)))
        .collect()
});

static THINGS: LazyLock<Things> = LazyLock::new(|| {
    let mut things = Things {
        domains: HashMap::new(),
        objects: Vec::new(),
    };
    for (head, words) in lines(THINGS_FILE) {
        if let Some(name) = head.strip_prefix("domain ") {
            let (name, is_remote) = match name.strip_suffix(" remote") {
                Some(name) => (name, true),
                None => (name, false),
            };
            let domain = Domain { name, is_remote };
            things
                .domains
                .extend(words.split_whitespace().map(|word| (word, domain)));
        } else if let Some(object) = object(head, words) {
            things.objects.push(object);
        }
    }
    things
});

fn object(head: &'static str, words: &'static str) -> Option<Object> {
    let (act, verbs) = head.strip_prefix("object ")?.split_once(" after ")?;
    Some(Object {
        act: Act::named(act)?,
        verbs: (verbs != "*").then(|| verbs.split_whitespace().collect()),
        things: words.split_whitespace().collect(),
    })
}

fn verb_head(head: &str) -> Option<Verb> {
    let (act, place) = head.split_once(' ')?;
    Some(Verb {
        act: Act::named(act)?,
        place: Place::named(place)?,
    })
}

fn lines(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(": "))
}

/// The lines of the vocabulary: class and place, and words.
pub(super) fn verb_lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(VERBS_FILE)
}

/// The lines of the things.
#[cfg(test)]
pub(super) fn thing_lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(THINGS_FILE)
}

/// What a word says as a verb.
pub(super) fn verb(word: &str) -> Option<Verb> {
    VERBS.get(word).copied()
}

/// The domain that a word names.
pub(super) fn domain(word: &str) -> Option<Domain> {
    THINGS.domains.get(word).copied()
}

/// Things whose writing is of a graver class.
pub(super) fn objects() -> &'static [Object] {
    &THINGS.objects
}
