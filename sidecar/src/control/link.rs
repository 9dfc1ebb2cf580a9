//! The handle on the link, and its start and end.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::approvals::{ApprovalsClient, Feed, FeedStream};
use super::auth::{self, Attach};
use super::catalogue::{Catalogue, Published, Publisher, Shelf};
use super::credentials::{Credentials, TrustedKeys};
use super::enrol::Enrolment;
use super::identity::SidecarIdentity;
use super::in_force::InForce;
use super::kept::{self, Kept};
use super::lease::Freshness;
use super::options::Options;
use super::quotas::QuotaClient;
use super::reports::Reports;
use super::shared::{LinkState, Shared};
use super::snapshot::{LocalBounds, Snapshot};
use super::stops::StopSet;
use super::stream::keep_open;
use super::view::View;
use super::watch::Watch;
use super::{Revision, keeper};
use crate::spool::Spool;

/// Why the link cannot start. An unreachable control plane is no reason: the sidecar starts, denies, and keeps trying.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The URL, or the certificates to trust, cannot be used.
    #[error("the control plane at {url} cannot be used: {reason}")]
    Link {
        /// The URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The kept credentials cannot be used.
    #[error("the credentials in {} cannot be used: {reason}; remove the file to enrol anew", path.display())]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// The link to the control plane. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Control {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    approvals: ApprovalsClient,
    quotas: QuotaClient,
    shelf: Arc<Shelf>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Control {
    /// Puts in force what an earlier process kept, and starts to talk to the control plane. Blocks on the disk; needs a runtime.
    ///
    /// # Errors
    /// The link's URL or the kept credentials cannot be used.
    pub fn start(options: &Options, spool: Spool) -> Result<Self, StartError> {
        let credentials = Credentials::load(&options.dir)?;
        let keys = credentials
            .as_ref()
            .map_or_else(TrustedKeys::default, |kept| kept.public_keys.clone());
        let shared = Arc::new(Shared {
            dir: options.dir.clone(),
            clock: options.clock.clone(),
            channel: auth::channel(&options.link)?,
            attach: Attach::default(),
            spool,
            in_force: InForce::new(options.clock.clone()),
            local: LocalBounds {
                write: options.staleness_write,
                read: options.staleness_read,
            },
            identity: ArcSwapOption::new(credentials.as_ref().map(|kept| Arc::new(kept.identity(0)))),
            keys: ArcSwap::from_pointee(keys),
            state: watch::Sender::new(LinkState::Connecting { last_error: None }),
            renew_now: Notify::new(),
            reconfigured: Notify::new(),
            upstreams: watch::Sender::new(options.upstreams.clone()),
            is_delivering: watch::Sender::new(false),
        });
        let view = restore(&shared, credentials.as_ref());
        let control = Self {
            inner: Arc::new(Inner::new(shared)),
        };
        control.spawn(options, credentials, view);
        Ok(control)
    }

    fn spawn(&self, options: &Options, credentials: Option<Credentials>, view: Option<Arc<View>>) {
        let Inner {
            shared,
            approvals: _,
            quotas: _,
            shelf,
            shutdown,
            tasks,
        } = &*self.inner;
        let newest = watch::Sender::new(view.clone());
        tasks.spawn(keeper::run(shared.clone(), newest.subscribe(), shutdown.clone()));
        tasks.spawn(Enrolment::new(shared.clone(), options, credentials).run(shutdown.clone()));
        let watch = Watch::new(shared.clone(), view, newest);
        tasks.spawn(keep_open("snapshots", shared.clone(), shutdown.clone(), watch));
        let reports = Reports::new(shared.clone());
        tasks.spawn(keep_open("reports", shared.clone(), shutdown.clone(), reports));
        let feed = FeedStream::new(shared.clone(), self.inner.approvals.feed());
        tasks.spawn(keep_open("approvals", shared.clone(), shutdown.clone(), feed));
        let publisher = Publisher::new(shared.clone(), shelf.clone());
        tasks.spawn(keep_open(
            "catalogue",
            shared.clone(),
            shutdown.clone(),
            publisher,
        ));
    }

    /// The view in force. Before the first it is empty and denies everything.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.inner.shared.in_force.snapshot()
    }

    /// What may run now, by the age of the lease.
    pub fn freshness(&self) -> Freshness {
        self.inner.shared.in_force.freshness()
    }

    /// Age of the lease that covers the view; `None`: none does.
    pub fn lease_age(&self) -> Option<Duration> {
        self.inner.shared.in_force.lease_age()
    }

    /// The stops that hold.
    pub fn stops(&self) -> Arc<StopSet> {
        self.inner.shared.in_force.stops()
    }

    /// Changes whenever another view is in force.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.inner.shared.in_force.changed()
    }

    /// Changes whenever other stops hold: calls in flight are to be looked at again.
    pub fn stops_changed(&self) -> watch::Receiver<u64> {
        self.inner.shared.in_force.stops_changed()
    }

    /// Waits until the view and the stops are at least as new as these, at most for `limit`. Answers whether they are.
    pub async fn caught_up(&self, revision: Revision, stop_sequence: u64, limit: Duration) -> bool {
        let in_force = &self.inner.shared.in_force;
        let is_there =
            || in_force.snapshot().revision >= revision && in_force.stops().sequence() >= stop_sequence;
        let (mut changed, mut stops_changed) = (in_force.changed(), in_force.stops_changed());
        let reached = async {
            while !is_there() {
                let ended = tokio::select! {
                    changed = changed.changed() => changed.is_err(),
                    changed = stops_changed.changed() => changed.is_err(),
                };
                if ended {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(limit, reached).await;
        is_there()
    }

    /// Questions to people.
    pub fn approvals(&self) -> &ApprovalsClient {
        &self.inner.approvals
    }

    /// Limits that the fleet shares.
    pub fn quotas(&self) -> &QuotaClient {
        &self.inner.quotas
    }

    /// Publishes the catalogue of an upstream, now and to whatever control plane comes later.
    pub fn publish(&self, catalogue: Catalogue) {
        self.inner.shelf.put(catalogue);
    }

    /// What the control plane answered to catalogues, by upstream.
    pub fn published(&self) -> watch::Receiver<HashMap<String, Arc<Published>>> {
        self.inner.shelf.answers()
    }

    /// Who this sidecar is; `None` before its first enrolment.
    pub fn identity(&self) -> Option<Arc<SidecarIdentity>> {
        self.inner.shared.identity.load_full()
    }

    /// How the link stands.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.inner.shared.state.subscribe()
    }

    /// The database's time in Unix microseconds, mapped onto the boot clock; never earlier than it really is.
    pub fn database_now(&self) -> i64 {
        self.inner.shared.in_force.database_now()
    }

    /// These upstreams are published from now on. What the credential does not cover is asked for by enrolling again.
    pub fn serve_upstreams(&self, names: Vec<String>) {
        self.inner.shared.upstreams.send_if_modified(|known| {
            let is_new = *known != names;
            *known = names;
            is_new
        });
        self.reconfigured();
    }

    /// Configuration or token files may have changed: tries again what was refused for good.
    pub fn reconfigured(&self) {
        self.inner.shared.reconfigured.notify_waiters();
    }

    /// Ends the link: gives back quotas, delivers what it can within `limit`, ends the epoch, keeps the view. Calls must have ended.
    pub async fn shutdown(&self, limit: Duration) {
        let inner = &self.inner;
        inner.quotas.return_all();
        let _ = tokio::time::timeout(limit, deliver_rest(&inner.shared)).await;
        inner.shutdown.cancel();
        inner.tasks.close();
        if tokio::time::timeout(Duration::from_secs(5), inner.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("tasks of the link to the control plane did not end in time");
        }
    }
}

impl Inner {
    fn new(shared: Arc<Shared>) -> Self {
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        Self {
            approvals: ApprovalsClient::new(shared.authenticated(), Arc::new(Feed::default())),
            quotas: QuotaClient::new(shared.clone(), tasks.clone(), shutdown.clone()),
            shelf: Arc::new(Shelf::default()),
            shutdown,
            tasks,
            shared,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Puts in force what an earlier process kept.
fn restore(shared: &Arc<Shared>, credentials: Option<&Credentials>) -> Option<Arc<View>> {
    let Kept { view, lease, stops } = kept::load(&shared.dir, &shared.keys.load(), &shared.clock);
    if let Some(stops) = stops {
        shared.in_force.replace_stops(stops);
    }
    let view = view?;
    let scope = credentials.map(Credentials::scope);
    if scope.as_deref() != Some(view.proof.scope.as_str()) {
        tracing::error!("the kept snapshot is of another credential and is not used");
        return None;
    }
    shared
        .in_force
        .install(Snapshot::compile(&view, shared.local, None));
    if let Some(lease) = lease {
        shared.in_force.renew(lease);
    }
    tracing::info!(revision = %view.revision, freshness = ?shared.in_force.freshness(), "going on with the kept snapshot");
    Some(Arc::new(view))
}

/// Ends the epoch and waits until the control plane has everything. Without a link the epoch stays open, so that the next process can
/// go on in it.
async fn deliver_rest(shared: &Arc<Shared>) {
    if !*shared.is_delivering.borrow() {
        return;
    }
    match shared.spool.end_epoch() {
        Ok(true) => {}
        Ok(false) => tracing::warn!("calls are still open: their epoch is not ended"),
        Err(error) => tracing::error!(%error, "the epoch is not ended"),
    }
    let mut delivering = shared.is_delivering.subscribe();
    let is_taken = || {
        shared
            .spool
            .epochs()
            .iter()
            .all(|epoch| epoch.closed || !epoch.ended)
    };
    while !is_taken() {
        tokio::select! {
            gone = delivering.wait_for(|is_delivering| !is_delivering) => { let _ = gone; return; }
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
        }
    }
}
