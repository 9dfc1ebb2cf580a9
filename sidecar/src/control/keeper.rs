//! Writes the view and the lease to disk, seldom enough not to wear it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::kept;
use super::shared::Shared;
use super::view::View;

/// The least time between two writes.
const PAUSE: Duration = Duration::from_secs(2);
/// How often the lease is kept while nothing else changes. A restart counts its age from the lease, so this costs only freshness.
const LEASE_EVERY: Duration = Duration::from_secs(5);

/// Keeps what is in force, until shutdown; then once more.
pub(super) async fn run(
    shared: Arc<Shared>,
    mut newest: watch::Receiver<Option<Arc<View>>>,
    shutdown: CancellationToken,
) {
    let mut written: Option<Arc<View>> = newest.borrow_and_update().clone();
    loop {
        let is_last = tokio::select! {
            biased;
            () = shutdown.cancelled() => true,
            changed = newest.changed() => changed.is_err(),
            () = tokio::time::sleep(LEASE_EVERY) => false,
        };
        let view = newest.borrow_and_update().clone();
        let is_new = match (&view, &written) {
            (Some(view), Some(written)) => !Arc::ptr_eq(view, written),
            (Some(_), None) => true,
            (None, _) => false,
        };
        let to_write = view.clone().filter(|_| is_new);
        let theirs = shared.clone();
        let saved = tokio::task::spawn_blocking(move || save(&theirs, to_write.as_deref())).await;
        match saved {
            Ok(Ok(())) => written = view,
            Ok(Err(error)) => {
                tracing::error!(%error, "the snapshot is not kept on disk: a restart during an outage would have an older one");
            }
            Err(_) => {}
        }
        if is_last {
            return;
        }
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

fn save(shared: &Shared, view: Option<&View>) -> std::io::Result<()> {
    if let Some(view) = view {
        kept::save_view(&shared.dir, view)?;
    }
    let lease = shared.in_force.lease();
    kept::save_lease(
        &shared.dir,
        lease.as_deref(),
        &shared.in_force.stops(),
        &shared.clock,
    )
}
