//! The accept loop of every listener: TLS or plain, HTTP/1.1 or HTTP/2, bounded, drained at the end.

mod connection;
mod first_bytes;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::tls::ServerTls;

/// How often changed certificate files are looked for.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(2);
/// How long to wait after an accept that failed for want of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Bounds of a listener.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open connections; more wait in the operating system's queue.
    pub max_connections: usize,
    /// For the TLS handshake, for the first bytes, and for each request's header.
    pub header_timeout: Duration,
    /// How long requests in flight may go on after the shutdown began.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            header_timeout: Duration::from_secs(30),
            drain: Duration::from_secs(10),
        }
    }
}

/// The certificates a client showed and proved, leaf first: a request extension on TLS connections
/// where it showed any. The peer's address is the extension `axum::extract::ConnectInfo<SocketAddr>`.
#[derive(Clone, Debug)]
pub struct PeerCertificates(pub Arc<[CertificateDer<'static>]>);

/// Serves `router` until `shutdown`, then drains: no new connections, requests in flight go on for
/// `limits.drain` at most. Returns when every connection has ended. Dropping the future ends them at once.
/// tonic services are served as `Routes::into_axum_router()`.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerTls>>,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();
    let _ended_with_this_future = abort.clone().drop_guard();
    let server = connection::Server::new(tls.clone(), router, &limits, shutdown.clone(), abort.clone());
    let accepting = accept_all(&listener, &limits, &connections, Arc::new(server));
    tokio::select! {
        () = accepting => {}
        () = keep_certificates_fresh(tls) => {}
        () = shutdown.cancelled() => {}
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(limits.drain, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            connections = connections.len(),
            "closing connections that did not drain in time"
        );
        abort.cancel();
        connections.wait().await;
    }
}

async fn accept_all(
    listener: &TcpListener,
    limits: &Limits,
    connections: &TaskTracker,
    server: Arc<connection::Server>,
) {
    let room = Arc::new(Semaphore::new(limits.max_connections));
    // INVARIANT: the semaphore is never closed, so this only ends by being dropped.
    while let Ok(permit) = room.clone().acquire_owned().await {
        let (stream, peer) = accept(listener).await;
        let server = server.clone();
        connections.spawn(async move {
            server.run(stream, peer).await;
            drop(permit);
        });
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, std::net::SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => match stream.set_nodelay(true) {
                Ok(()) => return (stream, peer),
                Err(error) => tracing::debug!(%peer, %error, "a connection ended before it was served"),
            },
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Never ends by itself.
async fn keep_certificates_fresh(tls: Option<Arc<ServerTls>>) {
    let Some(tls) = tls else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(CERTIFICATE_CHECK).await;
        match tls.reload().await {
            Ok(false) => {}
            Ok(true) => tracing::info!("took over changed TLS certificates"),
            Err(error) => {
                tracing::warn!(%error, "changed TLS files are not used; the former certificate stays")
            }
        }
    }
}
