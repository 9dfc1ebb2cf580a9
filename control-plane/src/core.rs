//! What the parts of the control plane share.

use std::sync::Arc;
use std::time::Duration;

use chain::link::MacKey;
use net::clock::Clock;
use net::host::AllowedHosts;
use policy::document::Lists;
use proto::body::{self, FleetSettings};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::Approvals;
use crate::auth::{Accounts, AdminToken, OperatorIssuer, Sidecars};
use crate::documents::Directory;
use crate::grpc::Refusals;
use crate::keys::KeyRing;
use crate::metrics::Metrics;
use crate::quotas::Windows;
use crate::rollout::Rollout;
use crate::snapshot::{Hub, Primary};
use crate::stops::Stops;
use crate::store::catalogue::Pinning;
use crate::store::{Revision, SharedStore, StoreResult};
use crate::traces::{Ingest, Marks, Notice};

/// Bounds of the streams to sidecars.
#[derive(Clone, Debug)]
pub struct StreamLimits {
    /// Messages that wait for a receiver.
    pub queue: usize,
    /// How long a full queue is borne before the receiver is cut.
    pub patience: Duration,
    /// How long streams are told to reconnect within when the control plane goes down.
    pub drain: Duration,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            queue: 64,
            patience: Duration::from_secs(10),
            drain: Duration::from_secs(2),
        }
    }
}

/// How long things last.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    /// Of a sidecar's credential.
    pub credential: Duration,
    /// Between two checkpoints at most.
    pub checkpoint: Duration,
    /// The longest that a grant may be asked for.
    pub grant: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            credential: Duration::from_secs(3_600),
            checkpoint: Duration::from_secs(10),
            grant: Duration::from_secs(24 * 3_600),
        }
    }
}

/// The parts of a running control plane, shared by its services, its API and its tasks.
pub struct Core {
    /// The truth.
    pub store: SharedStore,
    /// The installation's keys.
    pub keys: Arc<KeyRing>,
    /// Desired state in memory.
    pub hub: Hub,
    /// The last successful read of the primary.
    pub primary: Primary,
    /// Stops that hold.
    pub stops: Stops,
    /// The approvals' feed.
    pub approvals: Approvals,
    /// Live streams and standing of sidecars.
    pub sidecars: Arc<Sidecars>,
    /// What sidecars say of themselves, on its way to the store.
    pub rollout: Rollout,
    /// Where the minutes of limits are counted.
    pub windows: Windows,
    /// The way of records into the chain.
    pub ingest: Ingest,
    /// How far the records of the sidecars with streams here have come.
    pub marks: Marks,
    /// The newest checkpoint.
    pub checkpoints: watch::Sender<Option<Arc<Notice>>>,
    /// The operator's token.
    pub admin_token: AdminToken,
    /// The identity provider of operators, where there is one.
    pub issuer: Option<OperatorIssuer>,
    /// The service accounts that enrol sidecars.
    pub accounts: Option<Accounts>,
    /// Enrolments that were refused, on their way to the record.
    pub(crate) refusals: Refusals,
    /// Any caller from this machine is an operator.
    pub loopback_operators: bool,
    /// Names under which this server is called, for callers that a browser could stand behind.
    pub hosts: AllowedHosts,
    /// Lists that policies may name.
    pub lists: Lists,
    /// The policy directory, where this process has one.
    pub directory: Option<Directory>,
    /// Keys by which the MACs of records are verified.
    pub trace_keys: Vec<MacKey>,
    /// What happens at the first use of an upstream, where pins are kept.
    pub first_use: Pinning,
    /// Bounds of streams.
    pub limits: StreamLimits,
    /// How long things last.
    pub lifetimes: Lifetimes,
    /// What `/metrics` shows.
    pub metrics: Metrics,
    /// The machine's clock, or a test's.
    pub clock: Clock,
    /// Owner of every task.
    pub tasks: TaskTracker,
    /// Cancelled first: no new streams, live ones are told to reconnect elsewhere.
    pub draining: CancellationToken,
    /// Cancelled last: tasks end.
    pub shutdown: CancellationToken,
}

impl Core {
    /// What the fleet decides for every sidecar, as in the view in memory.
    #[must_use]
    pub fn settings(&self) -> FleetSettings {
        let resource = self.hub.resource(body::SETTING, body::FLEET);
        let settings = resource.and_then(|entry| serde_json::from_slice(entry.body()).ok());
        settings.unwrap_or_default()
    }

    /// Starts a new generation of desired state and of the chain; `seen` is the generation in which the reason was seen.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn begin_generation(&self, seen: u64, reason: &str) -> StoreResult<Revision> {
        let revision = self.store.begin_generation(seen, reason, "system").await?;
        tracing::error!(%reason, generation = revision.generation, "began a new generation: commits may have been lost; every sidecar syncs in full");
        Ok(revision)
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("revision", &self.hub.revision())
            .finish_non_exhaustive()
    }
}
