//! Finds the policies of an agent without looking at all of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::document::Policy;
use crate::glob::{Glob, Specificity};

/// One agent pattern of a policy.
#[derive(Debug)]
struct Entry {
    glob: Glob,
    specificity: Specificity,
    rank: u32,
    policy: Arc<Policy>,
}

/// A policy that applies, with what orders it among others.
#[derive(Debug, Clone)]
pub(super) struct Match {
    pub(super) specificity: Specificity,
    /// The place in the load order.
    pub(super) rank: u32,
    pub(super) policy: Arc<Policy>,
}

/// Policies by their agent patterns.
#[derive(Debug, Default)]
pub(super) struct AgentIndex {
    /// Most specific first, equal ones in load order.
    entries: Vec<Entry>,
    exact: HashMap<Glob, Vec<u32>>,
    by_prefix: Affixes,
    by_suffix: Affixes,
    rest: Vec<u32>,
}

/// Patterns by the literal text that they start (or end) with.
#[derive(Debug, Default)]
struct Affixes {
    buckets: HashMap<Box<str>, Vec<u32>>,
    /// The lengths in bytes that occur.
    lengths: Vec<usize>,
}

impl Affixes {
    fn add(&mut self, affix: &str, place: u32) {
        self.buckets.entry(affix.into()).or_default().push(place);
        if let Err(at) = self.lengths.binary_search(&affix.len()) {
            self.lengths.insert(at, affix.len());
        }
    }
}

impl AgentIndex {
    /// An index of policies that come in load order, each with its rank there.
    pub(super) fn new<'p>(policies: impl Iterator<Item = (u32, &'p Arc<Policy>)>) -> Self {
        let mut index = Self::default();
        for (rank, policy) in policies {
            for glob in &policy.agents {
                index.entries.push(Entry {
                    glob: glob.clone(),
                    specificity: glob.specificity(),
                    rank,
                    policy: Arc::clone(policy),
                });
            }
        }
        index.entries.sort_by(|one, other| {
            other
                .specificity
                .cmp(&one.specificity)
                .then_with(|| one.rank.cmp(&other.rank))
        });
        for (place, entry) in (0_u32..).zip(&index.entries) {
            let glob = &entry.glob;
            if glob.literal().is_some() {
                index.exact.entry(glob.clone()).or_default().push(place);
            } else if !glob.literal_prefix().is_empty() {
                index.by_prefix.add(glob.literal_prefix(), place);
            } else if !glob.literal_suffix().is_empty() {
                index.by_suffix.add(glob.literal_suffix(), place);
            } else {
                index.rest.push(place);
            }
        }
        index
    }

    /// The policies of an agent in a namespace, most specific first, equal ones in load order; a policy with
    /// several matching patterns counts by its best.
    pub(super) fn matching(&self, namespace: &str, agent: &str) -> Vec<Match> {
        let mut places: Vec<u32> = Vec::new();
        if let Some(exact) = self.exact.get(agent) {
            places.extend(exact);
        }
        for length in &self.by_prefix.lengths {
            let Some(affix) = agent.get(..*length) else {
                continue;
            };
            places.extend(self.by_prefix.buckets.get(affix).into_iter().flatten());
        }
        for length in &self.by_suffix.lengths {
            let Some(affix) = agent
                .len()
                .checked_sub(*length)
                .and_then(|from| agent.get(from..))
            else {
                continue;
            };
            places.extend(self.by_suffix.buckets.get(affix).into_iter().flatten());
        }
        places.extend(&self.rest);
        places.sort_unstable();
        let mut seen: HashSet<u32> = HashSet::new();
        places
            .into_iter()
            .filter_map(|place| self.entries.get(place as usize))
            .filter(|entry| entry.glob.matches(agent) && entry.policy.covers_namespace(namespace))
            .filter(|entry| entry.policy.agents.len() == 1 || seen.insert(entry.rank))
            .map(|entry| Match {
                specificity: entry.specificity,
                rank: entry.rank,
                policy: Arc::clone(&entry.policy),
            })
            .collect()
    }
}
