//! Where Redis is, and how one connects to it.

use std::path::PathBuf;
use std::time::Duration;

use config::{Login, RedisMode, RedisUrl};
use net::tls::TlsError;
use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    RedisConnectionInfo, RedisResult, TlsCertificates, TlsMode,
};

/// How long connecting to one host may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How long an answer may take at most, whatever asked for it.
const ANSWER: Duration = Duration::from_secs(2);

/// The Redis of an installation. Its passwords are never shown.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it is.
    pub url: RedisUrl,
    /// Certificate authority in PEM form; without it, the public roots.
    pub ca_cert: Option<PathBuf>,
}

impl Server {
    /// Reads the certificate authority.
    pub(super) fn resolve(self) -> Result<Target, TlsError> {
        let root_cert = match &self.ca_cert {
            Some(path) => {
                // What rustls is to trust is checked now, not at each connection.
                net::tls::client_config(Some(path))?;
                let pem = std::fs::read(path).map_err(|source| TlsError::Read {
                    path: path.clone(),
                    source,
                })?;
                Some(pem)
            }
            None => None,
        };
        if self.url.is_tls {
            // The client of Redis takes the provider of the process; there is only this one.
            let _ = rustls::crypto::CryptoProvider::install_default(rustls::crypto::ring::default_provider());
        }
        Ok(Target {
            url: self.url,
            root_cert,
        })
    }
}

/// A connection. Cheap to clone.
#[derive(Clone)]
pub(super) enum Connection {
    /// To one server.
    One(MultiplexedConnection),
    /// To the nodes of a cluster.
    Cluster(ClusterConnection),
}

/// Where connections go.
pub(super) struct Target {
    url: RedisUrl,
    root_cert: Option<Vec<u8>>,
}

impl Target {
    pub(super) async fn connect(&self) -> RedisResult<Connection> {
        Ok(match &self.url.mode {
            RedisMode::Standalone => Connection::One(self.standalone().await?),
            RedisMode::Sentinel { service, login } => {
                Connection::One(self.by_sentinel(service, login).await?)
            }
            RedisMode::Cluster => Connection::Cluster(self.cluster()?.get_async_connection().await?),
        })
    }

    /// Text that may be shown: some servers repeat in an error what they were sent.
    pub(super) fn told(&self, error: &redis::RedisError) -> String {
        let mut text = error.to_string();
        let mut logins = vec![&self.url.login];
        if let RedisMode::Sentinel { login, .. } = &self.url.mode {
            logins.push(login);
        }
        for password in logins.into_iter().filter_map(|login| login.password.as_ref()) {
            text = text.replace(password.expose(), "(hidden)");
        }
        text
    }

    async fn standalone(&self) -> RedisResult<MultiplexedConnection> {
        let host = self.url.hosts.first();
        let (host, port) = host.map_or(("", 0), |(host, port)| (host.as_str(), *port));
        let info = self.info(host, port)?;
        let client = match self.certificates() {
            Some(certificates) => Client::build_with_tls(info, certificates)?,
            None => Client::open(info)?,
        };
        client
            .get_multiplexed_async_connection_with_config(&limits())
            .await
    }

    async fn by_sentinel(&self, service: &str, login: &Login) -> RedisResult<MultiplexedConnection> {
        let hosts = self.url.hosts.iter();
        let sentinels = hosts.map(|(host, port)| self.address(host, *port));
        let mut builder = SentinelClientBuilder::new(sentinels, service, SentinelServerType::Master)?
            .set_client_to_redis_db(self.url.database.into());
        if let Some(certificates) = self.certificates() {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates);
        }
        if let Some(username) = &self.url.login.username {
            builder = builder.set_client_to_redis_username(username);
        }
        if let Some(password) = &self.url.login.password {
            builder = builder.set_client_to_redis_password(password.expose());
        }
        if let Some(username) = &login.username {
            builder = builder.set_client_to_sentinel_username(username);
        }
        if let Some(password) = &login.password {
            builder = builder.set_client_to_sentinel_password(password.expose());
        }
        builder.build()?.get_async_connection_with_config(&limits()).await
    }

    fn cluster(&self) -> RedisResult<ClusterClient> {
        let nodes = self.url.hosts.iter();
        let nodes = nodes
            .map(|(host, port)| self.info(host, *port))
            .collect::<RedisResult<Vec<_>>>()?;
        let mut builder = ClusterClientBuilder::new(nodes)
            .retries(2)
            .connection_timeout(CONNECT)
            .response_timeout(ANSWER);
        if let Some(certificates) = self.certificates() {
            builder = builder.tls(TlsMode::Secure).certs(certificates);
        }
        builder.build()
    }

    fn info(&self, host: &str, port: u16) -> RedisResult<ConnectionInfo> {
        let mut login = RedisConnectionInfo::default().set_db(self.url.database.into());
        if let Some(username) = &self.url.login.username {
            login = login.set_username(username);
        }
        if let Some(password) = &self.url.login.password {
            login = login.set_password(password.expose());
        }
        let info = self.address(host, port).into_connection_info()?;
        Ok(info.set_redis_settings(login))
    }

    fn address(&self, host: &str, port: u16) -> ConnectionAddr {
        let host = host.to_owned();
        if self.url.is_tls {
            ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    /// `None`: connections are plain.
    fn certificates(&self) -> Option<TlsCertificates> {
        self.url.is_tls.then(|| TlsCertificates {
            client_tls: None,
            root_cert: self.root_cert.clone(),
        })
    }
}

fn limits() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT))
        .set_response_timeout(Some(ANSWER))
}
