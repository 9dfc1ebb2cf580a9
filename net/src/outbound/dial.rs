//! Opens connections: to checked addresses only, through a proxy where one is configured, encrypted where the URL says so.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::destination::Destination;
use super::error::OutboundError;
use super::proxy::Proxy;
use super::resolver::{Resolver, SystemResolver, checked_addresses};
use crate::tls::ClientTls;

const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// How connections are made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who named the URLs.
    pub destination: Destination,
    /// What is trusted; `None`: the public roots.
    pub tls: Option<Arc<ClientTls>>,
    /// Looks up names.
    pub resolver: Arc<dyn Resolver>,
    /// The proxy of configured URLs. What an agent or a document named never goes through it.
    pub proxy: Option<Arc<Proxy>>,
    /// How long a connection may take to be made.
    pub connect_patience: Duration,
    /// A network of the tests' own, in which addresses lead elsewhere: what is checked stays what was resolved.
    #[cfg(test)]
    pub(super) network: std::collections::HashMap<std::net::IpAddr, std::net::IpAddr>,
}

impl Options {
    /// The public roots, the operating system's resolver, no proxy.
    pub fn new(destination: Destination) -> Self {
        Self {
            destination,
            tls: None,
            resolver: Arc::new(SystemResolver),
            proxy: None,
            connect_patience: CONNECT_PATIENCE,
            #[cfg(test)]
            network: std::collections::HashMap::new(),
        }
    }

    /// Trusts the authority in this file instead of the public roots; the file is read again when it has changed.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn trusting(mut self, ca_file: Option<&Path>) -> Result<Self, OutboundError> {
        if ca_file.is_some() {
            let tls = ClientTls::load(ca_file).map_err(|error| OutboundError::Setup(error.to_string()))?;
            self.tls = Some(Arc::new(tls));
        }
        Ok(self)
    }
}

/// How a URL wants its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `http`.
    Plain,
    /// `https`.
    Tls,
}

/// Opens connections for URLs that were named by one kind of people. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Dialer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: Options,
    tls: Arc<ClientTls>,
}

impl Dialer {
    /// Opens connections so.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(options: Options) -> Result<Self, OutboundError> {
        let tls = match &options.tls {
            Some(tls) => Arc::clone(tls),
            None => {
                let tls = ClientTls::load(None).map_err(|error| OutboundError::Setup(error.to_string()))?;
                Arc::new(tls)
            }
        };
        Ok(Self(Arc::new(Inner { options, tls })))
    }

    pub(super) fn destination(&self) -> Destination {
        self.0.options.destination
    }

    /// What is trusted, as far as was looked.
    pub(super) fn trusted_so_far(&self) -> Arc<ClientConfig> {
        self.0.tls.current()
    }

    /// What is trusted now.
    pub(super) async fn trusted(&self) -> Arc<ClientConfig> {
        self.0.tls.latest().await
    }

    /// Connects to a host, which is a name or an address.
    ///
    /// # Errors
    /// When the host is refused, or there is no connection in time.
    pub async fn connect(&self, scheme: Scheme, host: &str, port: u16) -> Result<Dialed, OutboundError> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let patience = self.0.options.connect_patience;
        match tokio::time::timeout(patience, self.open(scheme, bare, port)).await {
            Ok(opened) => opened,
            Err(_) => Err(failed(bare, port, format!("no connection within {patience:?}"))),
        }
    }

    async fn open(&self, scheme: Scheme, host: &str, port: u16) -> Result<Dialed, OutboundError> {
        let stream = self.reach(host, port).await?;
        let problem = |error: io::Error| failed(host, port, error.to_string());
        stream.set_nodelay(true).map_err(problem)?;
        if scheme == Scheme::Plain {
            return Ok(Dialed(Box::new(stream)));
        }
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| failed(host, port, "a certificate cannot be of such a host".to_owned()))?;
        let connector = TlsConnector::from(self.trusted().await);
        let stream = connector.connect(name, stream).await.map_err(problem)?;
        Ok(Dialed(Box::new(stream)))
    }

    /// A connection to the first address that can be reached.
    async fn reach(&self, host: &str, port: u16) -> Result<TcpStream, OutboundError> {
        let options = &self.0.options;
        let resolver = options.resolver.as_ref();
        // Looked up once, and what was checked is connected to.
        let addresses = checked_addresses(options.destination, resolver, host, port).await?;
        let mut last = failed(host, port, "the name has no address".to_owned());
        for address in addresses {
            let proxy = match options.destination {
                Destination::Configured => options.proxy.as_ref(),
                Destination::Named => None,
            };
            let reached = match proxy.filter(|proxy| proxy.serves(host, address.ip())) {
                Some(proxy) => self.by_proxy(proxy, address).await,
                None => TcpStream::connect(self.lead(address)).await,
            };
            match reached {
                Ok(stream) => return Ok(stream),
                Err(error) => last = failed(host, port, error.to_string()),
            }
        }
        Err(last)
    }

    /// The proxy is named by the operator too, so it is checked and found like any other configured host.
    async fn by_proxy(&self, proxy: &Proxy, target: SocketAddr) -> io::Result<TcpStream> {
        let resolver = self.0.options.resolver.as_ref();
        let addresses = checked_addresses(Destination::Configured, resolver, proxy.host(), proxy.port());
        let addresses = addresses.await.map_err(io::Error::other)?;
        let stream = TcpStream::connect(addresses.as_slice())
            .await
            .map_err(|error| io::Error::other(format!("the proxy {proxy}: {error}")))?;
        proxy.tunnel(stream, target).await
    }

    fn lead(&self, address: SocketAddr) -> SocketAddr {
        #[cfg(test)]
        if let Some(elsewhere) = self.0.options.network.get(&address.ip()) {
            return SocketAddr::new(*elsewhere, address.port());
        }
        address
    }
}

fn failed(host: &str, port: u16, problem: String) -> OutboundError {
    OutboundError::Failed {
        host: format!("{host}:{port}"),
        problem,
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection.
pub struct Dialed(Box<dyn Stream>);

impl std::fmt::Debug for Dialed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialed")
    }
}

impl AsyncRead for Dialed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Dialed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

impl Connection for Dialed {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// How hyper's client asks for connections.
impl tower::Service<http::Uri> for Dialer {
    type Response = TokioIo<Dialed>;
    type Error = OutboundError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, OutboundError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OutboundError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        let dialer = self.clone();
        Box::pin(async move {
            let (scheme, default_port) = match uri.scheme_str() {
                Some("https") => (Scheme::Tls, 443),
                _ => (Scheme::Plain, 80),
            };
            let host = uri.host().ok_or(OutboundError::Url("it has no host"))?;
            let port = uri.port_u16().unwrap_or(default_port);
            dialer.connect(scheme, host, port).await.map(TokioIo::new)
        })
    }
}
