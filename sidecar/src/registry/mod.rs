//! The tools that are served here, with their classification and fingerprint.
//!
//! What an upstream declares becomes tools here, and goes on to the control plane, which keeps their pins.

mod build;
mod offered;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::id::{ToolName, UpstreamName};
use tools::model::Tool;

pub use offered::Listed;
use offered::{AllOffered, Offered};

use crate::control::Corrections;
use crate::upstream::{DeclaredCatalogue, Upstream, Upstreams};

/// Tools of one upstream that are judged at once, between calls.
const SOON: usize = 200;

/// All tools of one upstream, for the control plane to know and pin.
#[derive(Clone, Debug)]
pub struct PublishedCatalogue {
    /// The upstream.
    pub upstream: UpstreamName,
    /// Its usable tools, sorted by name.
    pub tools: Arc<Vec<Arc<Tool>>>,
}

/// The newest catalogue of each upstream that has been read.
pub type Published = BTreeMap<UpstreamName, PublishedCatalogue>;

/// The tools that are served here; cheap to clone.
#[derive(Clone, Debug)]
pub struct Registry {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    served: ArcSwap<Served>,
    /// Held only while a new state is made of an old one.
    known: Mutex<Known>,
    published_watch: watch::Sender<Arc<Published>>,
    version: watch::Sender<u64>,
}

/// The newest of each upstream.
#[derive(Debug, Default)]
struct Known {
    published: Published,
    offered: BTreeMap<UpstreamName, Offered>,
}

#[derive(Debug, Default)]
struct Served {
    offered: AllOffered,
    sorted: Arc<Vec<Arc<Tool>>>,
    by_name: HashMap<ToolName, Arc<Tool>>,
    corrections: Arc<Corrections>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry of no tools.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                served: ArcSwap::default(),
                known: Mutex::default(),
                published_watch: watch::Sender::default(),
                version: watch::Sender::new(0),
            }),
        }
    }

    /// Serves what these upstreams declare, until `stop`.
    pub fn follow(&self, upstreams: &Arc<Upstreams>, tasks: &TaskTracker, stop: &CancellationToken) {
        let (registry, stop, upstreams) = (self.clone(), stop.clone(), Arc::clone(upstreams));
        tasks.spawn(async move {
            let following = upstreams.beside_each(
                |upstream| registry.clone().follow_one(upstream.clone()),
                |name| registry.forget(name),
            );
            tokio::select! {
                () = following => {}
                () = stop.cancelled() => {}
            }
        });
    }

    async fn follow_one(self, upstream: Upstream) {
        let mut catalogue = upstream.catalogue();
        loop {
            let declared = Arc::clone(&catalogue.borrow_and_update());
            if declared.is_read {
                if declared.tools.len() <= SOON {
                    self.take(&declared);
                } else {
                    // Calls go on while thousands of tools are judged.
                    let registry = self.clone();
                    if tokio::task::spawn_blocking(move || registry.take(&declared))
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            }
            if catalogue.changed().await.is_err() {
                return;
            }
        }
    }

    /// Serves a catalogue in place of what its upstream declared before.
    pub fn take(&self, declared: &DeclaredCatalogue) {
        let upstream = match UpstreamName::try_from(&*declared.upstream) {
            Ok(upstream) => upstream,
            Err(error) => {
                tracing::warn!("the tools of an upstream are left out: {error}");
                return;
            }
        };
        let mut known = self.lock();
        let before = known
            .published
            .get(&upstream)
            .map(|catalogue| Arc::clone(&catalogue.tools));
        let before_tools = before.clone().unwrap_or_default();
        let tools = Arc::new(build::tools(
            &upstream,
            declared.named(),
            &declared.tools,
            |name| {
                let found = before_tools.binary_search_by(|tool| tool.name.cmp(name)).ok()?;
                before_tools.get(found).map(Arc::clone)
            },
        ));
        let offered = Offered::of(&upstream, declared);
        let has_same_tools = before.is_some_and(|before| build::are_same(&before, &tools));
        let is_same = known
            .offered
            .get(&upstream)
            .is_some_and(|before| before.is_same(&offered));
        if has_same_tools && is_same {
            return;
        }
        known.offered.insert(upstream.clone(), offered);
        if !has_same_tools {
            let catalogue = PublishedCatalogue {
                upstream: upstream.clone(),
                tools,
            };
            known.published.insert(upstream, catalogue);
        }
        self.serve(&known, !has_same_tools);
    }

    /// Serves nothing of an upstream any more.
    pub fn forget(&self, upstream: &str) {
        let Ok(upstream) = UpstreamName::try_from(upstream) else {
            return;
        };
        let mut known = self.lock();
        let had_tools = known.published.remove(&upstream).is_some();
        if known.offered.remove(&upstream).is_none() && !had_tools {
            return;
        }
        self.serve(&known, had_tools);
    }

    /// Serves what is known now.
    fn serve(&self, known: &Known, is_published_anew: bool) {
        let corrections = Arc::clone(&self.inner.served.load().corrections);
        self.inner.served.store(Arc::new(Served::of(known, corrections)));
        if is_published_anew {
            self.inner
                .published_watch
                .send_replace(Arc::new(known.published.clone()));
        }
        self.inner.version.send_modify(|version| *version += 1);
    }

    /// Judges the tools with these corrections from now on, unless newer ones are in force. Free when they are in force already.
    pub fn correct(&self, corrections: &Arc<Corrections>) {
        if Arc::ptr_eq(&self.inner.served.load().corrections, corrections) {
            return;
        }
        let known = self.lock();
        let held = Arc::clone(&self.inner.served.load().corrections);
        if Arc::ptr_eq(&held, corrections) || held.revision() > corrections.revision() {
            return;
        }
        let served = Served::of(&known, Arc::clone(corrections));
        self.inner.served.store(Arc::new(served));
        self.inner.version.send_modify(|version| *version += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool of this governed name; `__` is accepted in place of the dot after the upstream.
    #[must_use]
    pub fn lookup(&self, name: &str) -> Option<Arc<Tool>> {
        let served = self.inner.served.load();
        if let Some(tool) = served.by_name.get(name) {
            return Some(Arc::clone(tool));
        }
        name.match_indices("__").find_map(|(at, separator)| {
            let (upstream, rest) = name.split_at(at);
            let dotted = format!("{upstream}.{}", rest.strip_prefix(separator)?);
            served.by_name.get(dotted.as_str()).map(Arc::clone)
        })
    }

    /// All tools, sorted by name.
    #[must_use]
    pub fn tools(&self) -> Arc<Vec<Arc<Tool>>> {
        Arc::clone(&self.inner.served.load().sorted)
    }

    /// Changes whenever the tools do.
    #[must_use]
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.inner.version.subscribe()
    }

    /// What is to be published to the control plane; changes with each catalogue that differs from the one before.
    #[must_use]
    pub fn published(&self) -> watch::Receiver<Arc<Published>> {
        self.inner.published_watch.subscribe()
    }
}

impl Served {
    fn of(known: &Known, corrections: Arc<Corrections>) -> Self {
        let mut sorted: Vec<Arc<Tool>> = known
            .published
            .values()
            .flat_map(|catalogue| catalogue.tools.iter())
            .map(|tool| corrections.applied_to(tool))
            .collect();
        sorted.sort_by(|one, other| one.name.cmp(&other.name));
        let by_name = sorted
            .iter()
            .map(|tool| (tool.name.clone(), Arc::clone(tool)))
            .collect();
        Self {
            offered: AllOffered::of(&known.offered),
            sorted: Arc::new(sorted),
            by_name,
            corrections,
        }
    }
}
