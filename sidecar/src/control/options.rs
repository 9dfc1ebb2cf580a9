//! What the link to the control plane is told by configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use net::clock::Clock;
use tonic::transport::Channel;

/// How the control plane is reached.
#[derive(Clone, Debug)]
pub enum Link {
    /// Over the network.
    Url {
        /// `https://host:port`, or `http://` for a plaintext listener.
        url: String,
        /// Certificates to trust instead of the public roots.
        ca_file: Option<PathBuf>,
    },
    /// A channel that is there already, as in one process with the control plane.
    Channel(Channel),
}

/// A secret text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, to be sent and nowhere else shown.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What a new sidecar proves itself by.
#[derive(Clone, Debug)]
pub enum JoinProof {
    /// A join token.
    Token(Secret),
    /// A file that holds a join token; read again at each attempt.
    TokenFile(PathBuf),
    /// A file with a projected service-account token; read again at each attempt.
    ServiceAccountFile(PathBuf),
}

/// Everything that the link needs to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the control plane is reached.
    pub link: Link,
    /// The directory for credentials and the kept snapshot: the spool's.
    pub dir: PathBuf,
    /// What a new sidecar proves itself by; a known one has its renewal secret.
    pub join: Option<JoinProof>,
    /// Name for operators.
    pub name: String,
    /// Labels for operators.
    pub labels: BTreeMap<String, String>,
    /// Globs over the agents that are served; empty: all that the join token allows.
    pub agents: Vec<String>,
    /// Names of the upstreams that are published.
    pub upstreams: Vec<String>,
    /// Tightens the fleet's `staleness.write`.
    pub staleness_write: Option<Duration>,
    /// Tightens the fleet's `staleness.read`.
    pub staleness_read: Option<Duration>,
    /// Time.
    pub clock: Clock,
}

impl Options {
    /// Options with nothing but the link and the directory.
    pub fn new(link: Link, dir: impl Into<PathBuf>) -> Self {
        Self {
            link,
            dir: dir.into(),
            join: None,
            name: String::new(),
            labels: BTreeMap::new(),
            agents: Vec::new(),
            upstreams: Vec::new(),
            staleness_write: None,
            staleness_read: None,
            clock: Clock::machine(),
        }
    }
}
