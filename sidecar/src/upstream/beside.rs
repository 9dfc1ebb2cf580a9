//! Work that goes on beside each upstream, for as long as it is configured.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Upstream, Upstreams};

/// The work beside one upstream.
struct Beside {
    number: u64,
    work: JoinSet<()>,
}

impl Upstreams {
    /// Runs `work` beside each upstream, from when it is configured until it is not; `gone` is told the name of one that is no longer
    /// configured, once its work has ended. Never returns; dropped, it ends all work.
    pub(crate) async fn beside_each<W>(&self, work: impl Fn(&Upstream) -> W, gone: impl Fn(&str))
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let (mut changes, running) = self.watched();
        let mut all: BTreeMap<Arc<str>, Beside> = BTreeMap::new();
        loop {
            let now = running();
            let (kept, ended): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut all)
                .into_iter()
                .partition(|(name, beside)| now.get(name).is_some_and(|entry| entry.number == beside.number));
            all = kept;
            for (name, mut beside) in ended {
                beside.work.shutdown().await;
                if !now.contains_key(&name) {
                    gone(&name);
                }
            }
            for (name, entry) in now
                .iter()
                .filter(|(name, _)| !all.contains_key(*name))
                .collect::<Vec<_>>()
            {
                let mut beside = Beside {
                    number: entry.number,
                    work: JoinSet::new(),
                };
                beside.work.spawn(work(&entry.upstream));
                all.insert(Arc::clone(name), beside);
            }
            if changes.changed().await.is_err() {
                // INVARIANT: `self` holds the sender.
                return std::future::pending().await;
            }
        }
    }
}
