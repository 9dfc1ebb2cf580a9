//! Following the primary: a poll every 100 ms that wake-ups only shorten.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::channel::Change;
use super::entry::{Entry, Key};
use crate::core::Core;
use crate::store::desired;
use crate::store::{Revision, Store, StoreError, StoreResult, Topic};
use tokio::sync::watch;

const POLL: Duration = Duration::from_millis(100);
/// Revisions read at a time.
const CHANGES_AT_ONCE: u32 = 500;

/// What shortens the wait for the next poll.
struct Wakes {
    changes: watch::Receiver<u64>,
    stops: watch::Receiver<u64>,
    approvals: watch::Receiver<u64>,
    sidecars: watch::Receiver<u64>,
}

impl Wakes {
    fn new(store: &dyn Store) -> Self {
        Self {
            changes: store.wake(Topic::Changes),
            stops: store.wake(Topic::Stops),
            approvals: store.wake(Topic::Approvals),
            sidecars: store.wake(Topic::Sidecars),
        }
    }

    /// Returns at news of any topic; never, once the store says no more.
    async fn any(&mut self) {
        tokio::select! {
            Ok(()) = self.changes.changed() => {}
            Ok(()) = self.stops.changed() => {}
            Ok(()) = self.approvals.changed() => {}
            Ok(()) = self.sidecars.changed() => {}
            else => std::future::pending().await,
        }
    }
}

/// Keeps the view, the stops, the approvals' feed and the sidecars' standing current until the shutdown.
pub(crate) async fn follow(core: Arc<Core>) {
    let mut wakes = Wakes::new(&*core.store);
    let mut was_reachable = true;
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            () = tokio::time::sleep(POLL) => {}
            () = wakes.any() => {}
        }
        let reachable = match read_primary(&core).await {
            Ok(()) => true,
            Err(error) => {
                if was_reachable {
                    tracing::warn!(%error, "cannot read the primary; leases age until it answers again");
                }
                false
            }
        };
        if reachable && !was_reachable {
            tracing::info!("the primary answers again");
        }
        was_reachable = reachable;
    }
}

/// Reads the primary once and brings everything here up to what it says. When a read fails, what was read before it is in force, but no
/// lease speaks of it yet.
///
/// INVARIANT: only the following task calls this, so the view moves in one order.
async fn read_primary(core: &Core) -> StoreResult<()> {
    let began = core.clock.boot_now();
    let head = core.store.head().await?;
    if head.revision.generation != core.hub.revision().generation {
        core.sidecars.restart(head.sidecar_sequence);
        core.approvals.restart(head.approval_cursor);
        core.stops.replace(core.store.stops_head().await?);
    }
    if head.sidecar_sequence != core.sidecars.sequence() {
        core.sidecars.refresh(&*core.store).await?;
    }
    if head.stop_sequence != core.stops.sequence() {
        core.stops.replace(core.store.stops_head().await?);
    }
    if head.revision != core.hub.revision() {
        catch_up(core, head.revision).await?;
    }
    core.primary.read(head, began);
    core.approvals.catch_up(&*core.store, head.approval_cursor).await
}

async fn catch_up(core: &Core, head: Revision) -> StoreResult<()> {
    let here = core.hub.revision();
    if head < here {
        let reason =
            format!("the database is at revision {head}, behind {here} that was read from it before");
        // What an older dump calls a new generation may be one that was here already.
        let mut last = head.generation;
        while last <= here.generation {
            last = core.begin_generation(last, &reason).await?.generation;
        }
    }
    loop {
        match core
            .store
            .changes_after(core.hub.revision(), CHANGES_AT_ONCE)
            .await
        {
            Ok(changes) => {
                let Some(last) = changes.last() else { return Ok(()) };
                core.hub.advance(last.revision, collapse(&changes));
                core.metrics.revision_changed(last.revision);
            }
            Err(StoreError::ChangesGone { .. }) => {
                let view = core.store.desired_state().await?;
                tracing::info!(revision = %view.revision, "read the desired state in full");
                core.hub.reset(
                    view.revision,
                    view.resources.into_iter().map(Entry::new).collect(),
                );
                core.metrics.revision_changed(view.revision);
            }
            Err(other) => return Err(other),
        }
    }
}

/// The net effect of several revisions: the last word on each resource.
fn collapse(changes: &[desired::Change]) -> Vec<Change> {
    let mut last: BTreeMap<Key, Change> = BTreeMap::new();
    for changed in changes.iter().flat_map(|change| &change.resources) {
        let key: Key = (changed.kind.clone(), changed.name.clone());
        let change = match &changed.resource {
            Some(resource) => Change::Set(Arc::new(Entry::new(resource.clone()))),
            None => Change::Removed(key.clone()),
        };
        last.insert(key, change);
    }
    last.into_values().collect()
}
