//! What the tasks of the link share.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use net::clock::Clock;
use tokio::sync::{Notify, watch};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use super::auth::{Attach, Authenticated};
use super::credentials::TrustedKeys;
use super::identity::SidecarIdentity;
use super::in_force::InForce;
use super::snapshot::LocalBounds;
use crate::spool::Spool;

/// How the link stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Not enrolled in this process yet; it keeps trying.
    Connecting {
        /// What the last attempt ran into.
        last_error: Option<String>,
    },
    /// Enrolled.
    Enrolled {
        /// The epoch of this process.
        epoch: u64,
    },
    /// The control plane refuses this sidecar until its configuration changes.
    Refused {
        /// What it said.
        message: String,
    },
}

/// Shared by all tasks of the link.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dir: PathBuf,
    pub(super) clock: Clock,
    pub(super) channel: Channel,
    pub(super) attach: Attach,
    pub(super) spool: Spool,
    pub(super) in_force: InForce,
    pub(super) local: LocalBounds,
    pub(super) identity: ArcSwapOption<SidecarIdentity>,
    pub(super) keys: ArcSwap<TrustedKeys>,
    pub(super) state: watch::Sender<LinkState>,
    /// A call was refused for its credential.
    pub(super) renew_now: Notify,
    /// Configuration may have changed.
    pub(super) reconfigured: Notify,
    /// Names of the upstreams that are published; changes are asked for at once where the credential does not cover them.
    pub(super) upstreams: watch::Sender<Vec<String>>,
    /// Whether records are being delivered.
    pub(super) is_delivering: watch::Sender<bool>,
}

impl Shared {
    pub(super) fn authenticated(&self) -> Authenticated {
        InterceptedService::new(self.channel.clone(), self.attach.clone())
    }

    /// Waits until this process has enrolled; the epoch.
    pub(super) async fn enrolled(self: &Arc<Self>) -> u64 {
        let mut state = self.state.subscribe();
        loop {
            if let LinkState::Enrolled { epoch } = *state.borrow_and_update() {
                return epoch;
            }
            if state.changed().await.is_err() {
                // INVARIANT: `self` holds the sender; nothing else can end the wait.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the epoch is another one than this.
    pub(super) async fn epoch_after(self: &Arc<Self>, epoch: u64) {
        let mut state = self.state.subscribe();
        let is_other =
            |state: &LinkState| matches!(state, LinkState::Enrolled { epoch: now } if *now != epoch);
        if state.wait_for(is_other).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
