//! The proxy through which configured URLs are reached.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest answer to CONNECT that is read.
const MAX_HEAD: usize = 8 * 1024;

/// A proxy as it is configured.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProxyOptions {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User and password, where it wants them.
    pub login: Option<(String, String)>,
    /// Names that are reached without it, each with all names below it.
    pub direct_names: Vec<String>,
    /// Networks that are reached without it: an address and how many of its bits count.
    pub direct_networks: Vec<(IpAddr, u8)>,
}

/// A proxy that opens tunnels (`CONNECT`). It is told addresses that were checked here, never names.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    options: ProxyOptions,
    /// The value of `Proxy-Authorization`.
    authorization: Option<String>,
}

impl Proxy {
    /// A proxy.
    #[must_use]
    pub fn new(options: ProxyOptions) -> Self {
        let login = options.login.as_ref();
        let authorization = login.map(|(user, password)| {
            let login = STANDARD.encode(format!("{user}:{password}"));
            format!("Basic {login}")
        });
        Self {
            options,
            authorization,
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.options.host
    }

    pub(super) fn port(&self) -> u16 {
        self.options.port
    }

    /// Whether a host is reached through it at this address. What is on this machine never is.
    pub(super) fn serves(&self, host: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_named = |name: &String| {
            let name = name.trim_start_matches('.').to_ascii_lowercase();
            host == name || host.ends_with(&format!(".{name}"))
        };
        let is_within = |network: &(IpAddr, u8)| contains(*network, address);
        !address.is_loopback()
            && !self.options.direct_names.iter().any(is_named)
            && !self.options.direct_networks.iter().any(is_within)
    }

    /// Asks for a tunnel to an address.
    pub(super) async fn tunnel(&self, mut stream: TcpStream, target: SocketAddr) -> io::Result<TcpStream> {
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(authorization) = &self.authorization {
            head.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        let refused = |what: String| io::Error::other(format!("the proxy {self} {what}"));
        let answer = self.answer(&mut stream).await?;
        let line = answer.lines().next().unwrap_or_default();
        let mut words = line.split(' ');
        let (version, status) = (words.next().unwrap_or_default(), words.next());
        let status = status.and_then(|status| status.parse::<u16>().ok());
        match status {
            Some(200..=299) if version.starts_with("HTTP/1.") => Ok(stream),
            Some(407) => Err(refused(
                "wants a login; correct the one in outbound.proxy".to_owned(),
            )),
            Some(status) => Err(refused(format!("answered CONNECT {target} with status {status}"))),
            None => Err(refused("does not answer as a proxy does".to_owned())),
        }
    }

    /// The head of an answer, byte by byte: what follows it belongs to the tunnel.
    async fn answer(&self, stream: &mut TcpStream) -> io::Result<String> {
        let refused = |what: &str| io::Error::other(format!("the proxy {self} {what}"));
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MAX_HEAD {
                return Err(refused("answers CONNECT with too much"));
            }
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return Err(refused("ended the connection")),
            }
        }
        String::from_utf8(head).map_err(|_| refused("does not answer as a proxy does"))
    }
}

/// Host and port: not the login.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.options.host, self.options.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

fn contains((network, bits): (IpAddr, u8), address: IpAddr) -> bool {
    let same = |network: u128, address: u128, width: u8| {
        let shift = u32::from(width.saturating_sub(bits));
        network.checked_shr(shift) == address.checked_shr(shift)
    };
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            same(network.to_bits().into(), address.to_bits().into(), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => same(network.to_bits(), address.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_reached_without_the_proxy() {
        let proxy = Proxy::new(ProxyOptions {
            host: "proxy.internal".to_owned(),
            port: 3128,
            login: Some(("u".to_owned(), "hunter2".to_owned())),
            direct_names: vec!["svc.cluster.local".to_owned(), ".corp".to_owned()],
            direct_networks: vec![("10.0.0.0".parse().unwrap(), 8), ("fd00::".parse().unwrap(), 8)],
        });
        let serves = |host: &str, address: &str| proxy.serves(host, address.parse().unwrap());
        assert!(serves("example.com", "1.1.1.1"));
        assert!(serves("notcorp", "11.0.0.1"));
        assert!(serves("svc.cluster.local.example", "2606:4700::1"));
        assert!(!serves("a.svc.cluster.local", "1.1.1.1"));
        assert!(!serves("SVC.cluster.local.", "1.1.1.1"));
        assert!(!serves("wiki.corp", "1.1.1.1"));
        assert!(!serves("example.com", "10.255.0.1"));
        assert!(!serves("example.com", "::ffff:10.0.0.1"));
        assert!(!serves("example.com", "fd12::1"));
        assert!(!serves("example.com", "127.0.0.1"));
        assert!(!serves("example.com", "::1"));
        let shown = format!("{proxy} {proxy:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_network_of_no_bits_is_everything_of_its_family() {
        let everything = ("0.0.0.0".parse().unwrap(), 0);
        assert!(contains(everything, "8.8.8.8".parse().unwrap()));
        assert!(!contains(everything, "2606:4700::1".parse().unwrap()));
        let one = ("8.8.8.8".parse().unwrap(), 32);
        assert!(contains(one, "8.8.8.8".parse().unwrap()) && !contains(one, "8.8.8.9".parse().unwrap()));
    }
}
