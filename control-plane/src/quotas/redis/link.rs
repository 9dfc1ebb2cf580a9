//! The connection to Redis: made, tried out each second, and made again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::backoff::Backoff;
use prometheus_client::metrics::gauge::Gauge;
use redis::{Cmd, RedisError, RedisResult};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::script::Call;
use super::server::{Connection, Target};

/// How long a whole attempt to connect may take, several hosts included.
const CONNECT: Duration = Duration::from_secs(10);
/// How often an idle connection is tried out, and how long that may take.
const TRIAL: Duration = Duration::from_secs(1);
/// Between attempts, at first and at last. Replicas that find Redis back at different moments count in two places meanwhile.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// A connection that was there when it was asked for. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Up {
    connection: Connection,
    epoch: u64,
}

impl Up {
    /// The number of the connection.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) async fn run(&self, call: &Call<'_>) -> RedisResult<Vec<String>> {
        match self.connection.clone() {
            Connection::One(mut one) => call.invoke_async(&mut one).await,
            Connection::Cluster(mut cluster) => call.invoke_async(&mut cluster).await,
        }
    }

    /// Whether it can be written to: a replica, or a server that is full or cannot save, takes no lots.
    async fn try_out(&self) -> RedisResult<()> {
        let mut write = Cmd::new();
        write
            .arg("SET")
            .arg("toolgate:alive")
            .arg(1)
            .arg("PX")
            .arg(60_000);
        match self.connection.clone() {
            Connection::One(mut one) => write.exec_async(&mut one).await,
            Connection::Cluster(mut cluster) => write.exec_async(&mut cluster).await,
        }
    }
}

struct Shared {
    target: Target,
    up: watch::Sender<Option<Up>>,
    epoch: AtomicU64,
    gauge: Gauge,
}

/// The way to Redis.
pub(super) struct Link(Arc<Shared>);

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("epoch", &self.epoch())
            .finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn start(
        target: Target,
        gauge: Gauge,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Self {
        let shared = Arc::new(Shared {
            target,
            up: watch::Sender::new(None),
            epoch: AtomicU64::new(0),
            gauge,
        });
        tasks.spawn(keep(Arc::clone(&shared), shutdown.clone()));
        Self(shared)
    }

    pub(super) fn up(&self) -> Option<Up> {
        self.0.up.borrow().clone()
    }

    pub(super) fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Acquire)
    }

    pub(super) fn lost(&self, up: &Up) {
        self.0.drop_if(up.epoch);
    }

    pub(super) fn told(&self, error: &RedisError) -> String {
        self.0.target.told(error)
    }
}

impl Shared {
    /// A connection is used no more, if it still was.
    fn drop_if(&self, epoch: u64) {
        self.up.send_if_modified(|up| {
            let is_it = up.as_ref().is_some_and(|up| up.epoch == epoch);
            if is_it {
                *up = None;
            }
            is_it
        });
    }

    async fn connect(&self) -> Result<Up, String> {
        let told = |error: RedisError| self.target.told(&error);
        let made = async {
            let up = Up {
                connection: self.target.connect().await.map_err(told)?,
                epoch: self.epoch.load(Ordering::Acquire) + 1,
            };
            up.try_out().await.map_err(told)?;
            Ok(up)
        };
        let ended = tokio::time::timeout(CONNECT, made).await;
        ended.unwrap_or_else(|_| Err("it did not answer in time".to_owned()))
    }

    /// Uses a connection until it fails; says why it did.
    async fn hold(&self, up: &Up, backoff: &mut Backoff) -> String {
        let mut in_use = self.up.subscribe();
        loop {
            tokio::select! {
                // INVARIANT: `self` holds the sender, so the wait ends only so.
                _ = in_use.wait_for(Option::is_none) => return "a script was not run".to_owned(),
                () = tokio::time::sleep(TRIAL) => {}
            }
            match tokio::time::timeout(TRIAL, up.try_out()).await {
                Ok(Ok(())) => backoff.reset(),
                Ok(Err(error)) => return self.target.told(&error),
                Err(_) => return "it did not answer in time".to_owned(),
            }
        }
    }
}

/// Owns the connection.
async fn keep(shared: Arc<Shared>, shutdown: CancellationToken) {
    let mut backoff = Backoff::new(FIRST, LONGEST);
    let mut is_told = false;
    let work = async {
        loop {
            match shared.connect().await {
                Ok(up) => {
                    shared.epoch.store(up.epoch, Ordering::Release);
                    shared.up.send_replace(Some(up.clone()));
                    shared.gauge.set(1);
                    tracing::info!("rate limits are counted in Redis");
                    let reason = shared.hold(&up, &mut backoff).await;
                    shared.drop_if(up.epoch);
                    shared.gauge.set(0);
                    tracing::warn!(
                        reason,
                        "Redis is lost: rate limits are counted elsewhere until it is back"
                    );
                    is_told = true;
                }
                Err(reason) if is_told => tracing::debug!(reason, "Redis cannot be reached"),
                Err(reason) => {
                    tracing::warn!(
                        reason,
                        "Redis cannot be reached: rate limits are counted elsewhere until it is"
                    );
                    is_told = true;
                }
            }
            backoff.wait().await;
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = work => {}
    }
}
