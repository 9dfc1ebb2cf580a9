//! How far the records of the sidecars with streams here have come, as of the newest checkpoint.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::auth::{Sidecars, StreamKind};
use crate::store::sidecars::EpochMark;
use crate::store::{Store, StoreResult};

/// Marks by sidecar.
pub(super) type BySidecar = HashMap<String, Vec<EpochMark>>;

/// Read once per checkpoint for all streams here, instead of once per stream.
#[derive(Debug, Default)]
pub struct Marks {
    newest: watch::Sender<Arc<BySidecar>>,
}

impl Marks {
    /// Wakes at every newer reading.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<BySidecar>> {
        self.newest.subscribe()
    }

    /// Reads the marks of the sidecars that report here.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn refresh(&self, store: &dyn Store, sidecars: &Sidecars) -> StoreResult<()> {
        let ids = sidecars.with_stream(StreamKind::Reports);
        if ids.is_empty() {
            return Ok(());
        }
        let mut by_sidecar = BySidecar::new();
        for mark in store.open_marks(ids).await? {
            by_sidecar.entry(mark.sidecar.clone()).or_default().push(mark);
        }
        self.newest.send_replace(Arc::new(by_sidecar));
        Ok(())
    }
}
