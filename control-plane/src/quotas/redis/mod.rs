//! Windows in Redis: one atomic script for each thing that is done to a window, by Redis' clock.

mod link;
mod script;
mod server;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use net::tls::TlsError;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::link::Link;
pub(super) use self::link::Up;
use self::script::Scripts;
pub use self::server::Server;
use crate::keys::hex;
use crate::metrics::Metrics;
use crate::store::quotas::{QuotaFilter, QuotaKey, QuotaKind, QuotaLot, QuotaRequest, QuotaUse, TakenLot};

/// How long Redis may take to answer. A sidecar waits two seconds for its lot, and there is another place to ask.
const ANSWER: Duration = Duration::from_secs(1);
/// Windows that one listing reads.
const MOST_LISTED: usize = 10_000;
/// Windows that are read at a time.
const AT_ONCE: usize = 32;

/// A request for a lot, with what this replica knows.
pub(super) struct Lease<'r> {
    pub(super) request: &'r QuotaRequest,
    /// Up to where the lots in Redis were seen, by its clock.
    pub(super) seen: u64,
    /// A lot that Redis knows, unless it has forgotten the window.
    pub(super) anchor: Option<Arc<str>>,
    /// Lots that were given out elsewhere.
    pub(super) carried: Vec<TakenLot>,
}

/// What Redis answered to a request for a lot.
#[derive(Debug)]
pub(super) struct Taken {
    /// Redis does not know the anchor: nothing was taken.
    pub(super) is_forgotten: bool,
    pub(super) lot: QuotaLot,
    /// Up to where [`Taken::news`] goes.
    pub(super) seen: u64,
    /// Lots that were taken since the last time, by whatever replica.
    pub(super) news: Vec<TakenLot>,
}

/// The windows in one Redis.
#[derive(Debug)]
pub(super) struct Redis {
    link: Link,
    scripts: Scripts,
    length: Duration,
}

impl Redis {
    /// Begins to connect; the task ends with `shutdown`.
    pub(super) fn start(
        server: Server,
        length: Duration,
        metrics: &Metrics,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Result<Self, TlsError> {
        Ok(Self {
            link: Link::start(server.resolve()?, metrics.redis_up.clone(), tasks, shutdown),
            scripts: Scripts::new(),
            length,
        })
    }

    /// The connection, if there is one now.
    pub(super) fn up(&self) -> Option<Up> {
        self.link.up()
    }

    /// The number of the newest connection.
    pub(super) fn epoch(&self) -> u64 {
        self.link.epoch()
    }

    /// The connection does not do what it should: it is not used again.
    pub(super) fn lost(&self, up: &Up) {
        self.link.lost(up);
    }

    /// Takes a lot. `None`: it failed.
    pub(super) async fn lease(&self, up: &Up, lease: &Lease<'_>) -> Option<Taken> {
        let QuotaRequest {
            key,
            lease_id,
            want,
            limit,
        } = lease.request;
        let mut call = self.scripts.lease.call(&Places::of(key), self.length);
        call.arg(lease_id)
            .arg(*want)
            .arg(*limit)
            .arg(lease.seen)
            .arg(lease.anchor.as_deref().unwrap_or_default());
        for lot in &lease.carried {
            call.arg(&lot.lease_id).arg(lot.granted).arg(millis(lot.age));
        }
        script::taken(&self.ask(up, &call).await?)
    }

    /// Gives back what was not used of a lot. `None`: it failed.
    pub(super) async fn give_back(&self, up: &Up, key: &QuotaKey, lease_id: &str, unused: u32) -> Option<()> {
        let mut call = self.scripts.give_back.call(&Places::of(key), self.length);
        call.arg(lease_id).arg(unused);
        self.ask(up, &call).await.map(|_| ())
    }

    /// Enters a window in the list of windows, for those who ask what is used.
    pub(super) async fn list(&self, up: &Up, key: &QuotaKey) {
        let mut call = self.scripts.list.call(&Places::list(), self.length * 2);
        call.arg(name(key));
        // What is missing from the list still counts.
        let _ = self.ask(up, &call).await;
    }

    /// What was taken in the last minute. `None`: it failed.
    pub(super) async fn uses(&self, up: &Up, filter: &QuotaFilter) -> Option<Vec<QuotaUse>> {
        let used = |key: QuotaKey| async {
            let call = self.scripts.used.call(&Places::of(&key), self.length);
            let used = self.ask(up, &call).await?.first()?.parse().ok()?;
            Some(QuotaUse { key, used })
        };
        let found: Vec<_> = stream::iter(self.listed(up, filter).await?)
            .map(used)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        found.into_iter().collect()
    }

    /// Sets windows back to nothing; answers how many. `None`: it failed.
    pub(super) async fn reset(&self, up: &Up, filter: &QuotaFilter) -> Option<u64> {
        let mut touched = 0;
        for key in self.listed(up, filter).await? {
            let call = self.scripts.reset.call(&Places::of(&key), self.length);
            self.ask(up, &call).await?;
            touched += 1;
        }
        Some(touched)
    }

    async fn listed(&self, up: &Up, filter: &QuotaFilter) -> Option<Vec<QuotaKey>> {
        let mut call = self.scripts.listed.call(&Places::list(), self.length * 2);
        call.arg(MOST_LISTED);
        let names = self.ask(up, &call).await?;
        let keys = names.iter().filter_map(|name| key_of(name));
        Some(keys.filter(|key| filter.covers(key)).collect())
    }

    async fn ask(&self, up: &Up, call: &script::Call<'_>) -> Option<Vec<String>> {
        match tokio::time::timeout(ANSWER, up.run(call)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                tracing::debug!(error = self.link.told(&error), "Redis refused a script");
                None
            }
            Err(_) => None,
        }
    }
}

/// The two keys of a window: what its lots count, and their order. Braces keep them on one node of a cluster.
pub(super) struct Places([String; 2]);

impl Places {
    fn of(key: &QuotaKey) -> Self {
        let digest = Sha256::digest(name(key));
        let id = hex::encode(digest.get(..16).unwrap_or_default());
        Self([
            format!("toolgate:{{{id}}}:lots"),
            format!("toolgate:{{{id}}}:order"),
        ])
    }

    /// Of the list of windows.
    fn list() -> Self {
        Self([
            "toolgate:{windows}:list".to_owned(),
            "toolgate:{windows}:order".to_owned(),
        ])
    }
}

/// A window in one text. No name holds a line feed.
fn name(key: &QuotaKey) -> String {
    format!("{}\n{}\n{}", key.policy, key.namespace, key.agent)
}

fn key_of(name: &str) -> Option<QuotaKey> {
    let mut parts = name.splitn(3, '\n').map(str::to_owned);
    Some(QuotaKey {
        policy: parts.next()?,
        namespace: parts.next()?,
        agent: parts.next()?,
        kind: QuotaKind::PerMinute,
    })
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
