//! Where Redis is: one server, the master that Sentinels name, or a cluster.

use std::str::FromStr;

use crate::Secret;

/// What every URL of Redis begins with, and what it means.
const SCHEMES: [(&str, Kind, bool); 6] = [
    ("redis", Kind::One, false),
    ("rediss", Kind::One, true),
    ("redis-sentinel", Kind::Sentinel, false),
    ("rediss-sentinel", Kind::Sentinel, true),
    ("redis-cluster", Kind::Cluster, false),
    ("rediss-cluster", Kind::Cluster, true),
];
/// The most hosts that one URL names.
const MOST_HOSTS: usize = 64;
/// The port of a server, and of a Sentinel.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    Sentinel,
    Cluster,
}

/// How Redis is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisMode {
    /// One server.
    Standalone,
    /// Sentinels that name the master.
    Sentinel {
        /// The name under which they know it.
        service: String,
        /// Who asks the Sentinels, where they want to know.
        login: Login,
    },
    /// A cluster, of which some nodes are named.
    Cluster,
}

/// A name and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The name; `None`: the default user.
    pub username: Option<String>,
    /// The password.
    pub password: Option<Secret>,
}

impl Login {
    /// Name and password, one of which may be empty; `None`: nobody logs in.
    pub fn pair(&self) -> Option<(String, String)> {
        let password = self
            .password
            .as_ref()
            .map(|password| password.expose().to_owned());
        if self.username.is_none() && password.is_none() {
            return None;
        }
        Some((
            self.username.clone().unwrap_or_default(),
            password.unwrap_or_default(),
        ))
    }
}

/// Where Redis is. Passwords in it are never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisUrl {
    /// How it is run.
    pub mode: RedisMode,
    /// Whether connections are by TLS.
    pub is_tls: bool,
    /// Servers, Sentinels or nodes: host and port.
    pub hosts: Vec<(String, u16)>,
    /// Who logs in at the servers.
    pub login: Login,
    /// Number of the database.
    pub database: u16,
}

/// What is wrong with a URL of Redis. It never repeats the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisUrlError {
    /// Not one of the schemes.
    #[error(
        "expected a URL that starts with redis://, redis-sentinel:// or redis-cluster://, or with rediss… for TLS"
    )]
    Scheme,
    /// No host, or one that cannot be read.
    #[error("the URL names no host where one is expected; write host:port, several separated by commas")]
    Host,
    /// A port that is none.
    #[error("the URL holds a port that is not a number from 1 to 65535")]
    Port,
    /// Several hosts where one server is meant.
    #[error("redis:// names one host; use redis-sentinel:// or redis-cluster:// for several")]
    Several,
    /// More hosts than anybody needs.
    #[error("the URL names more than {MOST_HOSTS} hosts")]
    TooMany,
    /// Sentinels without the master's name.
    #[error(
        "redis-sentinel:// needs the master's name as its path, as in redis-sentinel://host:26379/mymaster"
    )]
    Service,
    /// A database that is none.
    #[error("the path of the URL is not the number of a database")]
    Database,
    /// A database in a cluster.
    #[error("a cluster has no numbered databases; remove the path of the URL")]
    ClusterDatabase,
    /// A part that is not percent-encoded UTF-8.
    #[error(
        "the name or password in the URL is not percent-encoded UTF-8; write @ as %40, : as %3A and / as %2F"
    )]
    Encoding,
    /// A parameter that does not exist.
    #[error(
        "the URL takes no parameters but sentinel_username and sentinel_password, with redis-sentinel:// only"
    )]
    Parameter,
}

impl FromStr for RedisUrl {
    type Err = RedisUrlError;

    fn from_str(text: &str) -> Result<Self, RedisUrlError> {
        let (scheme, rest) = text.split_once("://").ok_or(RedisUrlError::Scheme)?;
        let (_, kind, is_tls) = SCHEMES
            .into_iter()
            .find(|(known, _, _)| *known == scheme)
            .ok_or(RedisUrlError::Scheme)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (login_of(login)?, hosts),
            None => (Login::default(), authority),
        };
        let port = if kind == Kind::Sentinel {
            SENTINEL_PORT
        } else {
            PORT
        };
        let hosts = hosts_of(hosts, port)?;
        if kind == Kind::One && hosts.len() > 1 {
            return Err(RedisUrlError::Several);
        }
        let sentinel_login = parameters(query, kind)?;
        let (mode, database) = match kind {
            Kind::One => (RedisMode::Standalone, path),
            Kind::Cluster if path.is_empty() => (RedisMode::Cluster, ""),
            Kind::Cluster => return Err(RedisUrlError::ClusterDatabase),
            Kind::Sentinel => {
                let (service, database) = path.split_once('/').unwrap_or((path, ""));
                let service = decoded(service)?;
                if service.is_empty() {
                    return Err(RedisUrlError::Service);
                }
                let login = sentinel_login;
                (RedisMode::Sentinel { service, login }, database)
            }
        };
        Ok(Self {
            mode,
            is_tls,
            hosts,
            login,
            database: database_of(database)?,
        })
    }
}

pub(crate) fn login_of(text: &str) -> Result<Login, RedisUrlError> {
    let (username, password) = match text.split_once(':') {
        Some((username, password)) => (decoded(username)?, Some(decoded(password)?)),
        None => (decoded(text)?, None),
    };
    Ok(Login {
        username: Some(username).filter(|name| !name.is_empty()),
        password: password.filter(|text| !text.is_empty()).map(Secret::new),
    })
}

fn hosts_of(text: &str, default: u16) -> Result<Vec<(String, u16)>, RedisUrlError> {
    let hosts = text
        .split(',')
        .map(|host| host_of(host, default))
        .collect::<Result<Vec<_>, _>>()?;
    if hosts.len() > MOST_HOSTS {
        return Err(RedisUrlError::TooMany);
    }
    Ok(hosts)
}

pub(crate) fn host_of(text: &str, default: u16) -> Result<(String, u16), RedisUrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(RedisUrlError::Host)?;
            let host: std::net::Ipv6Addr = host.parse().map_err(|_| RedisUrlError::Host)?;
            let port = match port.strip_prefix(':') {
                Some(port) => Some(port),
                None if port.is_empty() => None,
                None => return Err(RedisUrlError::Host),
            };
            (host.to_string(), port)
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (text.to_owned(), None),
        },
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    if host.is_empty() || !host.bytes().all(is_name) {
        return Err(RedisUrlError::Host);
    }
    let port = match port {
        None => default,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or(RedisUrlError::Port)?,
    };
    Ok((host, port))
}

fn database_of(text: &str) -> Result<u16, RedisUrlError> {
    match text {
        "" => Ok(0),
        text => text.parse().map_err(|_| RedisUrlError::Database),
    }
}

fn parameters(query: &str, kind: Kind) -> Result<Login, RedisUrlError> {
    let mut login = Login::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(RedisUrlError::Parameter)?;
        let value = decoded(value)?;
        match (kind, name) {
            (Kind::Sentinel, "sentinel_username") => login.username = Some(value),
            (Kind::Sentinel, "sentinel_password") => login.password = Some(Secret::new(value)),
            _ => return Err(RedisUrlError::Parameter),
        }
    }
    Ok(login)
}

/// Percent-decoded.
fn decoded(text: &str) -> Result<String, RedisUrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(RedisUrlError::Encoding);
        };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| RedisUrlError::Encoding)?);
    }
    String::from_utf8(bytes).map_err(|_| RedisUrlError::Encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> RedisUrl {
        text.parse().unwrap()
    }

    fn hosts(url: &RedisUrl) -> Vec<String> {
        url.hosts
            .iter()
            .map(|(host, port)| format!("{host}|{port}"))
            .collect()
    }

    #[test]
    fn one_server_has_a_login_a_port_and_a_database() {
        let plain = url("redis://cache.internal");
        assert_eq!(
            (hosts(&plain), plain.is_tls, plain.database),
            (vec!["cache.internal|6379".into()], false, 0)
        );
        assert_eq!(
            (plain.mode, plain.login),
            (RedisMode::Standalone, Login::default())
        );
        let full = url("rediss://tool%3Agate:p%40ss@[::1]:7000/3");
        assert_eq!(
            (hosts(&full), full.is_tls, full.database),
            (vec!["::1|7000".into()], true, 3)
        );
        assert_eq!(full.login.username.as_deref(), Some("tool:gate"));
        assert_eq!(full.login.password.unwrap().expose(), "p@ss");
        assert_eq!(url("redis://:secret@h").login.username, None);
    }

    #[test]
    fn sentinels_name_the_master_and_may_want_a_login_of_their_own() {
        let found =
            url("redis-sentinel://u:p@one,two:27000/mymaster/2?sentinel_username=s&sentinel_password=q%21");
        assert_eq!(hosts(&found), ["one|26379", "two|27000"]);
        assert_eq!(found.database, 2);
        let RedisMode::Sentinel { service, login } = found.mode else {
            panic!("not by Sentinel");
        };
        assert_eq!(
            (service.as_str(), login.username.as_deref()),
            ("mymaster", Some("s"))
        );
        assert_eq!(login.password.unwrap().expose(), "q!");
    }

    #[test]
    fn a_cluster_is_found_by_some_of_its_nodes() {
        let found = url("rediss-cluster://:p@a:7000,b:7001");
        assert_eq!(
            (hosts(&found), found.is_tls),
            (vec!["a|7000".into(), "b|7001".into()], true)
        );
        assert_eq!(found.mode, RedisMode::Cluster);
    }

    #[test]
    fn what_is_wrong_is_said_and_a_password_is_not_repeated() {
        for (text, expected) in [
            ("", RedisUrlError::Scheme),
            ("http://hunter2@x", RedisUrlError::Scheme),
            ("redis://", RedisUrlError::Host),
            ("redis://u:hunter2@", RedisUrlError::Host),
            ("redis://a b", RedisUrlError::Host),
            ("redis://[::1", RedisUrlError::Host),
            ("redis://[::1]x", RedisUrlError::Host),
            ("redis://a,", RedisUrlError::Host),
            ("redis://h:0", RedisUrlError::Port),
            ("redis://h:hunter2", RedisUrlError::Port),
            ("redis://a,b", RedisUrlError::Several),
            ("redis://h/x", RedisUrlError::Database),
            ("redis://h?x=1", RedisUrlError::Parameter),
            ("redis://h?sentinel_password=x", RedisUrlError::Parameter),
            ("redis-sentinel://h", RedisUrlError::Service),
            ("redis-sentinel://h//2", RedisUrlError::Service),
            ("redis-sentinel://h/m/x", RedisUrlError::Database),
            ("redis-cluster://h/1", RedisUrlError::ClusterDatabase),
            ("redis://u:%zz@h", RedisUrlError::Encoding),
            ("redis://u:%ff@h", RedisUrlError::Encoding),
            ("redis://u:hunter2/@h", RedisUrlError::Port),
        ] {
            let found = text.parse::<RedisUrl>().unwrap_err();
            assert_eq!(found, expected, "{text}");
            assert!(!found.to_string().contains("hunter2"), "{text}");
        }
        let many = vec!["h"; 65].join(",");
        assert_eq!(
            format!("redis-cluster://{many}").parse::<RedisUrl>(),
            Err(RedisUrlError::TooMany)
        );
        assert!(!format!("{:?}", url("redis://u:hunter2@h")).contains("hunter2"));
    }
}
