//! The proxy through which configured URLs are reached, and what is reached without it.

use std::net::IpAddr;
use std::str::FromStr;

use crate::redis::{host_of, login_of};
use crate::{Login, RedisUrlError};

/// The port of a proxy whose URL names none.
const PORT: u16 = 3128;

/// Where a proxy is. Its password is never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyUrl {
    /// Its host, a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who logs in.
    pub login: Login,
}

/// What is wrong with a proxy's URL. It never repeats the URL, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyUrlError {
    /// Another scheme.
    #[error(
        "expected a URL that starts with http://: what goes through the tunnel is encrypted where its own URL says so"
    )]
    Scheme,
    /// No host, or one that cannot be read.
    #[error("the URL names no host where one is expected; write http://host:port")]
    Host,
    /// A port that is none.
    #[error("the URL holds a port that is not a number from 1 to 65535")]
    Port,
    /// A part that is not percent-encoded UTF-8.
    #[error(
        "the name or password in the URL is not percent-encoded UTF-8; write @ as %40, : as %3A and / as %2F"
    )]
    Encoding,
    /// More than a host.
    #[error("the URL of a proxy has no path and no query")]
    Path,
}

impl From<RedisUrlError> for ProxyUrlError {
    fn from(error: RedisUrlError) -> Self {
        match error {
            RedisUrlError::Port => Self::Port,
            RedisUrlError::Encoding => Self::Encoding,
            _ => Self::Host,
        }
    }
}

impl FromStr for ProxyUrl {
    type Err = ProxyUrlError;

    fn from_str(text: &str) -> Result<Self, ProxyUrlError> {
        let rest = text.strip_prefix("http://").ok_or(ProxyUrlError::Scheme)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err(ProxyUrlError::Path);
        }
        let (login, host) = match rest.rsplit_once('@') {
            Some((login, host)) => (login_of(login)?, host),
            None => (Login::default(), rest),
        };
        let (host, port) = host_of(host, PORT)?;
        Ok(Self { host, port, login })
    }
}

/// What is reached without the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoProxy {
    /// A host, with all names below it.
    Name(String),
    /// The addresses that begin with so many bits of this one.
    Network(IpAddr, u8),
}

/// The text names neither a host nor a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a host such as svc.cluster.local, which stands for all names below it too, an address, or a network such as 10.0.0.0/8"
)]
pub struct NoProxyError;

impl FromStr for NoProxy {
    type Err = NoProxyError;

    fn from_str(text: &str) -> Result<Self, NoProxyError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(address, width(address)));
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| NoProxyError)?;
            let bits = bits.parse().map_err(|_| NoProxyError)?;
            return if bits <= width(address) {
                Ok(Self::Network(address, bits))
            } else {
                Err(NoProxyError)
            };
        }
        let name = text.strip_prefix('.').unwrap_or(text);
        let is_label = |label: &str| {
            let mut bytes = label.bytes();
            !label.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if name.split('.').all(is_label) {
            Ok(Self::Name(name.to_owned()))
        } else {
            Err(NoProxyError)
        }
    }
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}
