//! Connections to one HTTP upstream that are kept open between requests.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::endpoint::Endpoint;
use super::outflow::{Backlog, Outflow};
use crate::upstream::mcp::failure::Failure;

/// Connections kept without use; more are closed.
const MAX_IDLE: usize = 64;
/// How long a connection is kept without use, unless its upstream says that it closes it sooner.
const MAX_AGE: Duration = Duration::from_secs(50);
/// How long before its upstream does a connection is closed: a request that crosses with that would be lost.
const AHEAD: Duration = Duration::from_secs(1);
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// How often connections without use are looked at.
const TIDYING: Duration = Duration::from_secs(10);

/// Connections to one HTTP upstream that are kept open between requests.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) endpoint: Arc<Endpoint>,
    idle: Arc<Mutex<Idle>>,
    tasks: TaskTracker,
    end: CancellationToken,
}

/// Connections without use, with when they are closed, the one that was used last at the end.
#[derive(Debug, Default)]
struct Idle {
    connections: Vec<(Instant, Connection)>,
    /// A task closes what is too old or was closed by the upstream.
    is_tidied: bool,
}

/// One connection, for one request at a time. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) driver: Driver,
    /// How long it is kept without use.
    kept_for: Duration,
}

/// Reads and writes for a connection, for as long as it is polled. It is polled by the one who uses the connection, in that
/// one's task: a task of its own would cost each request two more wake-ups.
pub(super) struct Driver {
    /// None once the connection has ended.
    driving: Option<Pin<Box<Driving>>>,
    /// What was written and has not left.
    backlog: Backlog,
    /// Ends the connection, in use or not.
    end: CancellationToken,
}

type Driving = http1::Connection<TokioIo<Outflow>, Full<Bytes>>;

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("is_open", &self.driving.is_some())
            .finish()
    }
}

impl Driver {
    /// Waits for something that the connection brings about, which is an error once the connection has ended.
    pub(super) async fn until<F: Future>(&mut self, awaited: F) -> F::Output {
        let mut awaited = pin!(awaited);
        let end = self.end.clone();
        let mut ended = pin!(end.cancelled());
        poll_fn(|context| {
            if let Poll::Ready(output) = awaited.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            self.poll(context);
            if self.driving.is_some() && ended.as_mut().poll(context).is_ready() {
                self.driving = None;
            }
            awaited.as_mut().poll(context)
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        let Some(driving) = &mut self.driving else { return };
        if let Poll::Ready(outcome) = driving.as_mut().poll(context) {
            if let Err(error) = outcome {
                tracing::debug!("connection to an upstream ended: {error}");
            }
            self.driving = None;
        }
    }
}

impl Connection {
    /// Takes what a response says about how long its upstream keeps the connection open.
    pub(super) fn heed(&mut self, headers: &HeaderMap) {
        self.kept_for = kept_for(headers);
    }

    /// Whether another request can be sent, as far as is known without waiting. It cannot where the last one was answered before the
    /// upstream had read it: what is left of that one stands in the way.
    fn is_usable(&mut self) -> bool {
        self.driver.poll(&mut Context::from_waker(Waker::noop()));
        self.driver.driving.is_some() && self.sender.is_ready() && self.driver.backlog.is_empty()
    }
}

impl Idle {
    /// Closes what is too old, or was closed by the upstream.
    fn tidy(&mut self) {
        self.connections
            .retain_mut(|(until, kept)| Instant::now() < *until && kept.is_usable());
    }
}

impl Pool {
    pub(super) fn new(endpoint: Arc<Endpoint>, tasks: &TaskTracker, end: CancellationToken) -> Self {
        Self {
            endpoint,
            idle: Arc::default(),
            tasks: tasks.clone(),
            end,
        }
    }

    /// The connection that was used last, if one is kept.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut idle = locked(&self.idle);
        while let Some((until, mut connection)) = idle.connections.pop() {
            if Instant::now() < until && connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose last response was read to its end.
    pub(super) fn give(&self, mut connection: Connection) {
        if connection.kept_for.is_zero() || !connection.is_usable() {
            return;
        }
        let mut idle = locked(&self.idle);
        // Asked under the lock: what is put here after the end would not be closed.
        if self.end.is_cancelled() || idle.connections.len() >= MAX_IDLE {
            return;
        }
        let until = Instant::now() + connection.kept_for;
        idle.connections.push((until, connection));
        if !idle.is_tidied {
            idle.is_tidied = true;
            self.tasks.spawn(tidy(Arc::clone(&self.idle), self.end.clone()));
        }
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        let (stream, backlog) = Outflow::new(self.endpoint.connect().await?);
        let (sender, driving) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Failure::Unreachable(format!("the connection cannot be used: {error}")))?;
        Ok(Connection {
            sender,
            driver: Driver {
                driving: Some(Box::pin(driving)),
                backlog,
                end: self.end.clone(),
            },
            kept_for: MAX_AGE,
        })
    }

    /// Closes what is not in use.
    pub(super) fn clear(&self) {
        locked(&self.idle).connections.clear();
    }
}

/// Looks at connections without use until there are none.
async fn tidy(idle: Arc<Mutex<Idle>>, end: CancellationToken) {
    loop {
        tokio::select! {
            () = end.cancelled() => return locked(&idle).connections.clear(),
            () = tokio::time::sleep(TIDYING) => {}
        }
        let mut idle = locked(&idle);
        idle.tidy();
        if idle.connections.is_empty() {
            idle.is_tidied = false;
            return;
        }
    }
}

/// How long a connection can be kept after a response: the `timeout` of its `Keep-Alive`, in seconds (RFC 2068, section 19.7.1.1).
fn kept_for(headers: &HeaderMap) -> Duration {
    let said = headers
        .get_all(KEEP_ALIVE)
        .iter()
        .filter_map(|value| HeaderValue::to_str(value).ok())
        .flat_map(|value| value.split(','))
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))
        .and_then(|(_, seconds)| seconds.trim().parse().ok());
    said.map_or(MAX_AGE, |seconds| {
        Duration::from_secs(seconds).saturating_sub(AHEAD).min(MAX_AGE)
    })
}

fn locked(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_closed_before_its_upstream_would() {
        let cases = [
            ("timeout=5", 4),
            ("max=100, timeout=5", 4),
            ("timeout=1", 0),
            ("Timeout = 3", 2),
            ("timeout=0", 0),
            ("timeout=900", 50),
            ("timeout=soon", 50),
            ("max=100", 50),
        ];
        for (said, expected) in cases {
            let headers = HeaderMap::from_iter([(KEEP_ALIVE, HeaderValue::from_static(said))]);
            assert_eq!(kept_for(&headers), Duration::from_secs(expected), "{said}");
        }
        assert_eq!(kept_for(&HeaderMap::new()), MAX_AGE);
    }
}
