//! What sidecars say of themselves, gathered and written in batches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::auth::Claims;
use crate::core::Core;
use crate::store::sidecars::{RejectedResource, SidecarAck, SidecarHeartbeat, SidecarReport};
use crate::store::{Revision, Store, StoreResult};

const FLUSH: Duration = Duration::from_millis(200);
/// Beyond this many sidecars their unremarkable heartbeats are written less often.
const FEW: usize = 500;
const SELDOM: Duration = Duration::from_secs(10);

/// Gathers heartbeats and acknowledgements; only the newest of each sidecar is kept.
#[derive(Debug, Default)]
pub struct Rollout {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<String, SidecarReport>,
    /// When a heartbeat was last taken over, and with which stop sequence.
    written: HashMap<String, (Duration, u64)>,
}

impl Rollout {
    /// A heartbeat came at boot time `now`.
    pub fn heard(&self, claims: &Claims, heartbeat: SidecarHeartbeat, now: Duration) {
        let mut state = self.lock();
        let is_few = state.written.len() <= FEW;
        let last = state.written.get(&claims.sidecar);
        let is_due = last.is_none_or(|(at, stops)| {
            is_few || *stops != heartbeat.stop_sequence || now.saturating_sub(*at) >= SELDOM
        });
        if is_due {
            state
                .written
                .insert(claims.sidecar.clone(), (now, heartbeat.stop_sequence));
            state.report(claims).heartbeat = Some(heartbeat);
        }
    }

    /// A view was applied, but for the resources that were rejected.
    pub fn acknowledged(
        &self,
        claims: &Claims,
        revision: Revision,
        apply_us: u64,
        rejected: Vec<RejectedResource>,
    ) {
        let mut state = self.lock();
        state.report(claims).ack = Some(SidecarAck {
            revision,
            apply_us,
            rejected,
        });
    }

    /// Writes what was gathered. What could not be written is kept, unless something newer has come.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn flush(&self, store: &dyn Store) -> StoreResult<()> {
        let reports: Vec<SidecarReport> = self.lock().waiting.drain().map(|(_, report)| report).collect();
        if reports.is_empty() {
            return Ok(());
        }
        let result = store.report_sidecars(reports.clone()).await;
        if result.is_err() {
            let mut state = self.lock();
            for report in reports {
                state.waiting.entry(report.sidecar.clone()).or_insert(report);
            }
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn report(&mut self, claims: &Claims) -> &mut SidecarReport {
        let empty = || SidecarReport {
            sidecar: claims.sidecar.clone(),
            epoch: claims.epoch,
            heartbeat: None,
            ack: None,
        };
        let report = self.waiting.entry(claims.sidecar.clone()).or_insert_with(empty);
        if report.epoch < claims.epoch {
            *report = empty();
        }
        report
    }
}

/// Writes what was gathered until the shutdown, and once more then.
pub(crate) async fn keep_written(core: Arc<Core>) {
    loop {
        let is_last = tokio::select! {
            () = core.shutdown.cancelled() => true,
            () = tokio::time::sleep(FLUSH) => false,
        };
        if let Err(error) = core.rollout.flush(&*core.store).await {
            tracing::debug!(%error, "acknowledgements are not written yet");
        }
        if is_last {
            return;
        }
    }
}
