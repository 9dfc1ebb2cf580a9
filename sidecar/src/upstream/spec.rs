//! What is configured about an upstream.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use config::model::Transport;
use net::outbound::Proxy;
use net::tls::ClientTls;

use super::Asks;
use super::cli::CliSpec;
use super::openapi::OpenApiSpec;
use super::retry::RetryPolicy;

/// One configured source of tools, of whichever kind.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceSpec {
    /// An MCP server.
    Mcp(UpstreamSpec),
    /// An OpenAPI service.
    OpenApi(OpenApiSpec),
    /// A command-line program.
    Cli(CliSpec),
}

impl SourceSpec {
    /// All that a configuration names, in its order.
    #[must_use]
    pub fn all_of(config: &config::Config) -> Vec<Self> {
        let proxy = crate::settings::proxy(&config.outbound);
        let message_bytes = config.limits.message_bytes;
        let documents = config.documents_dir();
        let servers = config.mcp_servers.iter();
        let services = config.openapi.iter().enumerate();
        let programs = config.cli_tools.iter();
        servers
            .map(|server| UpstreamSpec::of(server, message_bytes, proxy.as_ref()).into())
            .chain(services.map(|(place, service)| {
                OpenApiSpec::of(service, place, &documents, message_bytes, proxy.as_ref()).into()
            }))
            .chain(programs.map(|tool| Self::Cli(CliSpec::of(tool, message_bytes))))
            .collect()
    }

    /// Its name, the prefix of its tools.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Mcp(spec) => &spec.name,
            Self::OpenApi(spec) => &spec.name,
            Self::Cli(spec) => &spec.name,
        }
    }
}

impl From<UpstreamSpec> for SourceSpec {
    fn from(spec: UpstreamSpec) -> Self {
        Self::Mcp(spec)
    }
}

impl From<OpenApiSpec> for SourceSpec {
    fn from(spec: OpenApiSpec) -> Self {
        Self::OpenApi(spec)
    }
}

/// One MCP server that is configured as an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSpec {
    /// Its name, the prefix of its tools.
    pub name: Arc<str>,
    /// How it is reached.
    pub transport: TransportSpec,
    /// Whether calls carry the verified agent and user in `_meta`.
    pub forward_identity: bool,
    /// Whether agents share one connection; `None`: by whether the upstream keeps state.
    pub share: Option<bool>,
    /// What it may ask agents for; `None`: everything, where they do not share a connection.
    pub asks: Option<Asks>,
    /// Bounds of its messages and calls.
    pub limits: UpstreamLimits,
    /// When a connection is tried again.
    pub retry: RetryPolicy,
}

impl UpstreamSpec {
    /// What the configuration says about a server. Its headers have their variables replaced already.
    #[must_use]
    pub fn of(server: &config::model::McpServer, message_bytes: usize, proxy: Option<&Arc<Proxy>>) -> Self {
        let exposed = |pairs: &BTreeMap<String, config::Secret>| {
            pairs
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect()
        };
        let http = || HttpSpec {
            url: server.url.clone().unwrap_or_default(),
            headers: exposed(&server.headers),
            proxy: proxy.cloned(),
            tls: None,
        };
        let transport = match server.transport {
            Transport::Stdio => TransportSpec::Stdio(StdioSpec {
                command: server.command.clone().unwrap_or_default(),
                args: server
                    .args
                    .iter()
                    .map(|argument| argument.expose().to_owned())
                    .collect(),
                env: exposed(&server.env),
            }),
            Transport::Sse => TransportSpec::Sse(http()),
            Transport::StreamableHttp => TransportSpec::StreamableHttp(http()),
        };
        Self {
            name: server.name.as_str().into(),
            transport,
            forward_identity: server.forward_identity,
            share: server.share,
            asks: server.server_requests.as_deref().map(Asks::of),
            limits: UpstreamLimits {
                message_bytes,
                ..UpstreamLimits::default()
            },
            retry: RetryPolicy::default(),
        }
    }
}

impl UpstreamSpec {
    /// What the upstream may ask agents for: nothing where its connection is certain to be everybody's.
    pub(super) fn asks(&self) -> Asks {
        let is_shared = match (self.share, &self.transport) {
            (Some(is_shared), _) => is_shared,
            (None, TransportSpec::Stdio(_)) => self.asks.is_none(),
            (None, TransportSpec::Sse(_) | TransportSpec::StreamableHttp(_)) => false,
        };
        if is_shared {
            return Asks::default();
        }
        self.asks.unwrap_or(Asks::ALL)
    }

    /// Whether agents share one connection; `has_session`: the upstream has begun a session with us.
    pub(super) fn is_shared(&self, has_session: bool) -> bool {
        match (self.share, &self.transport) {
            (Some(is_shared), _) => is_shared,
            (None, TransportSpec::Stdio(_)) => self.asks.unwrap_or_default() == Asks::default(),
            (None, TransportSpec::StreamableHttp(_)) => !has_session,
            // Each connection is a session.
            (None, TransportSpec::Sse(_)) => false,
        }
    }
}

/// How an upstream is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum TransportSpec {
    /// A child process that speaks over its standard streams.
    Stdio(StdioSpec),
    /// An event stream over HTTP, and POSTs to an address that it names.
    Sse(HttpSpec),
    /// An HTTP endpoint.
    StreamableHttp(HttpSpec),
}

/// A child process that is an MCP server. Its arguments and environment may hold secrets and are never shown.
#[derive(Clone, Default, PartialEq)]
pub struct StdioSpec {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment, literal, added to the sidecar's own.
    pub env: Vec<(String, String)>,
}

/// An MCP endpoint over HTTP. The values of its headers are secrets and are never shown.
#[derive(Clone, Default)]
pub struct HttpSpec {
    /// The endpoint, `http` or `https`.
    pub url: String,
    /// Headers sent with every request, variables in them already replaced.
    pub headers: Vec<(String, String)>,
    /// The proxy on the way there.
    pub proxy: Option<Arc<Proxy>>,
    /// What is trusted; `None`: the public certificate authorities.
    pub tls: Option<Arc<ClientTls>>,
}

/// Bounds of an upstream's messages and calls.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamLimits {
    /// The largest message, either way.
    pub message_bytes: usize,
    /// The most calls in flight.
    pub calls_in_flight: usize,
    /// The longest call, where the request states no bound.
    pub call_timeout: Duration,
    /// How long a modern answer to the first request is waited for.
    pub probe_timeout: Duration,
    /// The longest handshake or page of a catalogue.
    pub handshake_timeout: Duration,
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            message_bytes: 16 * 1024 * 1024,
            calls_in_flight: 4096,
            call_timeout: Duration::from_secs(300),
            probe_timeout: Duration::from_millis(2500),
            handshake_timeout: Duration::from_secs(30),
        }
    }
}

/// What makes an upstream's configuration unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The URL cannot be used.
    #[error("url {url:?} is not usable: {problem}")]
    Url {
        /// The URL as configured.
        url: String,
        /// What is wrong.
        problem: String,
    },
    /// A header's name is not one.
    #[error("{name:?} is not an HTTP header name")]
    HeaderName {
        /// The name as configured.
        name: String,
    },
    /// A header's value cannot be sent.
    #[error("the value of header {name:?} holds characters that HTTP does not allow")]
    HeaderValue {
        /// The header.
        name: String,
    },
}

/// How TLS is done is no part of the configuration, and is not compared.
impl PartialEq for HttpSpec {
    fn eq(&self, other: &Self) -> bool {
        self.url == other.url && self.headers == other.headers && self.proxy == other.proxy
    }
}

impl fmt::Debug for StdioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioSpec")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSpec")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}
