//! What upstreams offer beside tools: resources, their templates, and prompts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use tools::id::UpstreamName;
use tools::model::Tool;
use tools::operation::Operation;

use crate::upstream::{DeclaredCatalogue, DeclaredEntry, Offers};

/// A list that agents can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

/// What one upstream offers beside tools; each list is sorted by governed name.
#[derive(Clone, Debug, Default)]
pub(super) struct Offered {
    pub(super) offers: Offers,
    pub(super) resources: Vec<Arc<Tool>>,
    pub(super) templates: Vec<Arc<Tool>>,
    pub(super) prompts: Vec<Arc<Tool>>,
}

impl Offered {
    /// What of a catalogue can be named; the rest is left out with a warning, as is what is declared a second time.
    pub(super) fn of(upstream: &UpstreamName, declared: &DeclaredCatalogue) -> Self {
        let all = |entries: &[DeclaredEntry], operation| entries_of(upstream, entries, operation);
        Self {
            offers: declared.offers,
            resources: all(&declared.resources, Operation::Resource),
            templates: all(&declared.templates, Operation::Resource),
            prompts: all(&declared.prompts, Operation::Prompt),
        }
    }

    /// Whether two say the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        use super::build::are_same;
        self.offers == other.offers
            && are_same(&self.resources, &other.resources)
            && are_same(&self.templates, &other.templates)
            && are_same(&self.prompts, &other.prompts)
    }
}

fn entries_of(upstream: &UpstreamName, entries: &[DeclaredEntry], operation: Operation) -> Vec<Arc<Tool>> {
    let mut found = BTreeMap::new();
    for entry in entries {
        match Tool::request(upstream, operation, &entry.key, Some(Arc::clone(&entry.declared))) {
            Ok(tool) => {
                let name = tool.name.clone();
                match found.entry(name) {
                    Entry::Vacant(place) => {
                        place.insert(Arc::new(tool));
                    }
                    Entry::Occupied(place) => {
                        tracing::warn!(%upstream, name = %place.key(), "declared twice; the second declaration is left out");
                    }
                }
            }
            Err(error) => tracing::warn!(%upstream, "an entry of a list is left out: {error}"),
        }
    }
    found.into_values().collect()
}

/// The entries of all upstreams, each list sorted by governed name.
#[derive(Debug, Default)]
pub(super) struct AllOffered {
    offers: BTreeMap<UpstreamName, Offers>,
    resources: Arc<Vec<Arc<Tool>>>,
    templates: Arc<Vec<Arc<Tool>>>,
    prompts: Arc<Vec<Arc<Tool>>>,
}

impl AllOffered {
    pub(super) fn of(offered: &BTreeMap<UpstreamName, Offered>) -> Self {
        let all = |list: fn(&Offered) -> &Vec<Arc<Tool>>| {
            let mut all: Vec<_> = offered
                .values()
                .flat_map(|one| list(one).iter().cloned())
                .collect();
            all.sort_by(|one, other| one.name.cmp(&other.name));
            Arc::new(all)
        };
        Self {
            offers: offered
                .iter()
                .map(|(upstream, one)| (upstream.clone(), one.offers))
                .collect(),
            resources: all(|one| &one.resources),
            templates: all(|one| &one.templates),
            prompts: all(|one| &one.prompts),
        }
    }
}

impl super::Registry {
    /// The entries of a list, sorted by governed name.
    #[must_use]
    pub fn entries(&self, list: Listed) -> Arc<Vec<Arc<Tool>>> {
        let served = self.inner.served.load();
        Arc::clone(match list {
            Listed::Tools => &served.sorted,
            Listed::Resources => &served.offered.resources,
            Listed::Templates => &served.offered.templates,
            Listed::Prompts => &served.offered.prompts,
        })
    }

    /// The entry of a list with this governed name.
    #[must_use]
    pub fn entry(&self, list: Listed, name: &str) -> Option<Arc<Tool>> {
        let entries = self.entries(list);
        let at = entries
            .binary_search_by(|tool| tool.name.as_str().cmp(name))
            .ok()?;
        entries.get(at).cloned()
    }

    /// The upstreams that offer something, by name.
    #[must_use]
    pub fn upstreams_with(&self, offers: impl Fn(&Offers) -> bool) -> Vec<UpstreamName> {
        let served = self.inner.served.load();
        let all = served.offered.offers.iter();
        all.filter(|(_, theirs)| offers(theirs))
            .map(|(upstream, _)| upstream.clone())
            .collect()
    }

    /// Whether what this upstream declared is served.
    #[must_use]
    pub fn serves(&self, upstream: &str) -> bool {
        let served = self.inner.served.load();
        served.offered.offers.contains_key(upstream)
    }

    /// Whether any upstream offers something.
    #[must_use]
    pub fn is_offered(&self, offers: impl Fn(&Offers) -> bool) -> bool {
        self.inner.served.load().offered.offers.values().any(offers)
    }
}
