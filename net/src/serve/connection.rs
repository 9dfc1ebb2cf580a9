//! One connection, from the handshake to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::first_bytes::FirstBytes;
use super::{Limits, PeerCertificates};
use crate::tls::ServerTls;

const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
const MAX_STREAMS: u32 = 1024;
/// A peer that is gone without a word is noticed within interval and timeout together.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// What all connections of a listener share.
pub(super) struct Server {
    tls: Option<Arc<ServerTls>>,
    router: Router,
    header_timeout: Duration,
    http: auto::Builder<TokioExecutor>,
    shutdown: CancellationToken,
    abort: CancellationToken,
}

impl Server {
    pub(super) fn new(
        tls: Option<Arc<ServerTls>>,
        router: Router,
        limits: &Limits,
        shutdown: CancellationToken,
        abort: CancellationToken,
    ) -> Self {
        let header_timeout = limits.header_timeout;
        Self {
            tls,
            router,
            header_timeout,
            http: http(header_timeout),
            shutdown,
            abort,
        }
    }

    /// Serves one connection until it ends, is drained, or is aborted.
    pub(super) async fn run(&self, stream: TcpStream, peer: SocketAddr) {
        tokio::select! {
            () = self.abort.cancelled() => {}
            () = self.secured(stream, peer) => {}
        }
    }

    async fn secured(&self, stream: TcpStream, peer: SocketAddr) {
        let Some(tls) = &self.tls else {
            return self.serve(stream, peer, None).await;
        };
        let handshake = TlsAcceptor::from(tls.current()).accept(stream);
        let stream = tokio::select! {
            () = self.shutdown.cancelled() => return,
            shaken = tokio::time::timeout(self.header_timeout, handshake) => match shaken {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => return tracing::debug!(%peer, "a TLS handshake took too long"),
            },
        };
        let shown = stream.get_ref().1.peer_certificates();
        let certificates =
            shown.map(|chain| PeerCertificates(chain.iter().map(|one| one.clone().into_owned()).collect()));
        // Boxed: a TLS stream is large, and this future is held by every connection, plain ones too.
        Box::pin(self.serve(stream, peer, certificates)).await;
    }

    async fn serve<S>(&self, stream: S, peer: SocketAddr, certificates: Option<PeerCertificates>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = self
            .router
            .clone()
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(ConnectInfo(peer));
                if let Some(certificates) = &certificates {
                    request.extensions_mut().insert(certificates.clone());
                }
                request
            });
        let io = TokioIo::new(FirstBytes::new(stream, self.header_timeout));
        let connection = self.http.serve_connection(io, TowerToHyperService::new(service));
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.shutdown.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, error, "a connection ended with an error");
        }
    }
}

fn http(header_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS);
    builder
}
