//! Approvals as they happen: the ordered feed, waiting for a resolution, deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::core::Core;
use crate::store::approvals::{Approval, ApprovalEvent, ApprovalStatus};
use crate::store::{Store, StoreResult};

/// Events that a reader may be behind before it reads the store instead.
const FEED: usize = 4_096;
const EVENTS_AT_ONCE: u32 = 500;
/// How often overdue approvals and grants are ended.
const SWEEP: Duration = Duration::from_millis(250);

/// The feed of approval events, read once from the store and handed to every reader here.
#[derive(Debug)]
pub struct Approvals {
    cursor: AtomicU64,
    feed: broadcast::Sender<Arc<ApprovalEvent>>,
}

impl Approvals {
    /// A feed of what comes after `cursor`.
    #[must_use]
    pub fn new(cursor: u64) -> Self {
        Self {
            cursor: AtomicU64::new(cursor),
            feed: broadcast::Sender::new(FEED),
        }
    }

    /// The newest event that was handed on.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Acquire)
    }

    /// Events from now on. A reader that lags is told so and reads the store from its cursor.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<ApprovalEvent>> {
        self.feed.subscribe()
    }

    /// Reads and hands on the events up to the head.
    ///
    /// # Errors
    /// When the store fails; what was handed on stays so.
    pub(crate) async fn catch_up(&self, store: &dyn Store, head: u64) -> StoreResult<()> {
        while self.cursor() < head {
            let events = store.approval_events_after(self.cursor(), EVENTS_AT_ONCE).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                let cursor = event.cursor;
                // Nobody may be listening.
                let _ = self.feed.send(Arc::new(event));
                self.cursor.store(cursor, Ordering::Release);
            }
        }
        Ok(())
    }

    /// A new generation began: the feed goes on from its head.
    pub(crate) fn restart(&self, cursor: u64) {
        self.cursor.store(cursor, Ordering::Release);
    }

    /// Waits until an approval is no longer pending, at most for `patience`; answers with it as it is then.
    ///
    /// # Errors
    /// When it does not exist or the store fails.
    pub async fn wait(&self, store: &dyn Store, id: &str, patience: Duration) -> StoreResult<Approval> {
        let mut feed = self.subscribe();
        let approval = store.approval(id, None).await?;
        if approval.status != ApprovalStatus::Pending {
            return Ok(approval);
        }
        let resolved = async {
            loop {
                match feed.recv().await {
                    Ok(event)
                        if event.approval.id == approval.id && event.status != ApprovalStatus::Pending =>
                    {
                        return;
                    }
                    Ok(_) => {}
                    // Behind, or over: look at the row itself.
                    Err(_) => return,
                }
            }
        };
        let _ = tokio::time::timeout(patience, resolved).await;
        store.approval(&approval.id, None).await
    }
}

/// Ends what is overdue by the database's clock, until the shutdown. Any number of replicas may do so.
pub(crate) async fn sweep(core: Arc<Core>) {
    loop {
        tokio::select! {
            () = core.shutdown.cancelled() => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        let swept = match core.store.sweep_approvals().await {
            Ok(_) => core.store.sweep_grants().await,
            failed => failed,
        };
        if let Err(error) = swept {
            tracing::debug!(%error, "overdue approvals and grants are not ended yet");
        }
    }
}
