//! Listeners, TLS, and the credentials of sidecars.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::schema::{Keys, Seconds, section};
use crate::{NoProxy, ProxyUrl};

section! {
    /// Addresses to serve on: an IP address and a port each. All are loopback by default.
    Listen as "listen" {
        /// Where agents are served. Default: 127.0.0.1 and `port`.
        agent: Option<SocketAddr>,
        /// Where a control plane of its own serves operators and the console.
        operator: SocketAddr = "127.0.0.1:9095",
        /// Where a control plane of its own serves sidecars.
        grpc: SocketAddr = "127.0.0.1:9091",
        /// Host names under which this server is called, beside loopback names and IP addresses. Requests
        /// that name another host, or come from pages of another, are refused.
        hosts: Vec<String>,
    }
}

section! {
    /// TLS of every listener; changed files are read again. Without it connections are plain.
    Tls as "tls" {
        /// Certificate chain in PEM form.
        cert_file: Option<PathBuf>,
        /// Private key in PEM form.
        key_file: Option<PathBuf>,
        /// Authority whose client certificates are accepted: one that an agent shows says who it is. Without it none are
        /// asked for.
        client_ca_file: Option<PathBuf>,
    }
    check tls_is_whole
}

fn tls_is_whole(tls: &Tls, keys: &Keys<'_, '_>) {
    match (&tls.cert_file, &tls.key_file) {
        (Some(_), None) => keys.problem(
            Some("cert_file"),
            "tls.cert_file needs tls.key_file too".to_owned(),
        ),
        (None, Some(_)) => keys.problem(
            Some("key_file"),
            "tls.key_file needs tls.cert_file too".to_owned(),
        ),
        (None, None) if tls.client_ca_file.is_some() => {
            let message = "tls.client_ca_file needs tls.cert_file and tls.key_file too".to_owned();
            keys.problem(Some("client_ca_file"), message);
        }
        _ => {}
    }
}

section! {
    /// Requests of the programs themselves to URLs that this file names: keys of token issuers, MCP servers by HTTP, OpenAPI
    /// documents and services. Proxies of the environment are not used.
    Outbound as "outbound" {
        /// Proxy (`http://[user:password@]host[:port]`) through which they go, by tunnels (CONNECT) to addresses that were
        /// resolved and checked here. What an agent or a document names never goes through it. May hold a password: better
        /// set by its variable.
        proxy: Option<ProxyUrl>,
        /// What is reached without the proxy: hosts, each with all names below it, addresses, and networks such as
        /// `10.0.0.0/8`. This machine always is.
        no_proxy: Vec<NoProxy>,
    }
    check exceptions_need_a_proxy
}

impl Outbound {
    /// The names that are reached without the proxy.
    pub fn direct_names(&self) -> Vec<String> {
        let names = self.no_proxy.iter().filter_map(|exception| match exception {
            NoProxy::Name(name) => Some(name.clone()),
            NoProxy::Network(..) => None,
        });
        names.collect()
    }

    /// The networks that are, each an address and how many of its bits count.
    pub fn direct_networks(&self) -> Vec<(IpAddr, u8)> {
        let networks = self.no_proxy.iter().filter_map(|exception| match exception {
            NoProxy::Network(address, bits) => Some((*address, *bits)),
            NoProxy::Name(_) => None,
        });
        networks.collect()
    }
}

fn exceptions_need_a_proxy(outbound: &Outbound, keys: &Keys<'_, '_>) {
    if outbound.proxy.is_none() && !outbound.no_proxy.is_empty() {
        let message =
            "outbound.no_proxy needs outbound.proxy too: without one everything is reached directly";
        keys.problem(Some("no_proxy"), message.to_owned());
    }
}

section! {
    /// The credentials that the control plane gives to sidecars.
    Credentials as "credentials" {
        /// How long one is valid; sidecars renew it in time.
        ttl: Duration = "1h",
    }
    check credentials_last
}

fn credentials_last(credentials: &Credentials, keys: &Keys<'_, '_>) {
    if credentials.ttl < Duration::from_secs(2) {
        keys.problem(
            Some("ttl"),
            "credentials.ttl must be 2s at least, or no sidecar could renew in time".to_owned(),
        );
    }
}

section! {
    /// What happens on SIGTERM: nothing new is accepted, what runs goes on for a while.
    Drain as "drain" {
        /// How long.
        seconds: Duration as Seconds<0, 3600> = "10",
    }
}
