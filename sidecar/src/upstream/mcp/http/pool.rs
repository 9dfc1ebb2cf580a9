//! Connections to one HTTP upstream that are kept open between requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::endpoint::Endpoint;
use crate::upstream::mcp::failure::Failure;

/// Connections kept without use; more are closed.
const MAX_IDLE: usize = 64;
/// How long a connection is kept without use.
const MAX_AGE: Duration = Duration::from_secs(50);

/// Connections to one HTTP upstream that are kept open between requests.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) endpoint: Arc<Endpoint>,
    idle: Mutex<Vec<(Instant, Connection)>>,
    tasks: TaskTracker,
    end: CancellationToken,
}

/// One connection, for one request at a time. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Pool {
    pub(super) fn new(endpoint: Arc<Endpoint>, tasks: &TaskTracker, end: CancellationToken) -> Self {
        Self {
            endpoint,
            idle: Mutex::default(),
            tasks: tasks.clone(),
            end,
        }
    }

    /// The connection that was used last, if one is kept.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((since, connection)) = idle.pop() {
            if since.elapsed() < MAX_AGE && !connection.sender.is_closed() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose last response was read to its end.
    pub(super) fn give(&self, connection: Connection) {
        if connection.sender.is_closed() || self.end.is_cancelled() {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(since, kept)| since.elapsed() < MAX_AGE && !kept.sender.is_closed());
        if idle.len() < MAX_IDLE {
            idle.push((Instant::now(), connection));
        }
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<Connection, Failure> {
        let stream = self.endpoint.connect().await?;
        let (sender, driving) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Failure::Unreachable(format!("the connection cannot be used: {error}")))?;
        let end = self.end.clone();
        let driver = self.tasks.spawn(async move {
            tokio::select! {
                outcome = driving => if let Err(error) = outcome {
                    tracing::debug!("connection to an upstream ended: {error}");
                },
                () = end.cancelled() => {}
            }
        });
        Ok(Connection {
            sender,
            driver: driver.abort_handle(),
        })
    }

    /// Closes what is not in use.
    pub(super) fn clear(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
