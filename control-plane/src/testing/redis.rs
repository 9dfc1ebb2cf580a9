//! Redis servers for tests: one alone, one by TLS, one under a Sentinel, a cluster of one node.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer after its start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Slots of a cluster.
const SLOTS: &str = "16383";

/// Why there is no Redis to test on. A test that gets this fails.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// A program of Redis is not installed, or cannot be run.
    #[error(
        "{program} cannot be run: {source}; install it with `make setup` (Debian: apt-get install redis-server redis-sentinel)"
    )]
    NotInstalled {
        /// Its name.
        program: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder, file or port could not be had.
    #[error("a test server's folder or port could not be had: {0}")]
    Io(#[from] std::io::Error),
    /// The certificate could not be made.
    #[error("a test server's certificate could not be made: {0}")]
    Certificate(String),
    /// The server did not come up, or refused a command.
    #[error("redis said: {0}")]
    Refused(String),
}

/// How a server is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedisOptions {
    /// The password of the default user.
    pub password: Option<&'static str>,
    /// Serves TLS, and nothing else.
    pub is_tls: bool,
    /// Is a node of a cluster.
    pub is_cluster: bool,
}

/// A running server, which keeps nothing on disk.
#[derive(Debug)]
pub struct RedisServer {
    folder: tempfile::TempDir,
    options: RedisOptions,
    port: u16,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts one on a free port.
    pub fn start(options: &RedisOptions) -> Result<Self, RedisError> {
        let folder = tempfile::Builder::new().prefix("toolgate-redis-").tempdir()?;
        if options.is_tls {
            let made = net::tls::self_signed(&["localhost", "127.0.0.1"], Duration::from_secs(3600));
            let certificates = made.map_err(|error| RedisError::Certificate(error.to_string()))?;
            certificates.write(folder.path())?;
        }
        let mut server = Self {
            folder,
            options: *options,
            port: free_port()?,
            child: None,
        };
        server.boot()?;
        Ok(server)
    }

    /// Starts it again on its port, with nothing in it.
    pub fn boot(&mut self) -> Result<(), RedisError> {
        let folder = self.folder.path();
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            "save \"\"".to_owned(),
            "appendonly no".to_owned(),
            format!("dir {}", folder.display()),
        ];
        if self.options.is_tls {
            let (ca, cert, key) = self.certificate_files();
            lines.push(format!("port 0\ntls-port {}", self.port));
            lines.push(format!("tls-ca-cert-file {}", ca.display()));
            lines.push(format!("tls-cert-file {}", cert.display()));
            lines.push(format!("tls-key-file {}", key.display()));
            lines.push("tls-auth-clients no".to_owned());
        } else {
            lines.push(format!("port {}", self.port));
        }
        if let Some(password) = self.options.password {
            lines.push(format!("requirepass \"{password}\""));
        }
        if self.options.is_cluster {
            lines.push(format!("cluster-enabled yes\ncluster-port {}", free_port()?));
        }
        self.child = Some(spawn("redis-server", folder, "redis.conf", &lines)?);
        wait_until(|| self.command(&["PING"]), "PONG")
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        end(&mut self.child);
    }

    /// Its URL, with the password where there is one.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.options.is_tls { "rediss" } else { "redis" };
        let login = self.options.password.map_or(String::new(), |password| {
            format!(":{}@", password.replace('@', "%40").replace(' ', "%20"))
        });
        format!("{scheme}://{login}127.0.0.1:{}", self.port)
    }

    /// Certificate authority of a server that serves TLS.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.certificate_files().0
    }

    /// Runs a command; answers what the server said.
    pub fn command(&self, words: &[&str]) -> Result<String, RedisError> {
        let mut command = Command::new("redis-cli");
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        if self.options.is_tls {
            command.arg("--tls").arg("--cacert").arg(self.ca_file());
        }
        if let Some(password) = self.options.password {
            command.env("REDISCLI_AUTH", password);
        }
        said(command.args(words))
    }

    fn certificate_files(&self) -> (PathBuf, PathBuf, PathBuf) {
        let file = |name: &str| self.folder.path().join(name);
        (file("ca.pem"), file("cert.pem"), file("key.pem"))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A Sentinel that watches one server.
#[derive(Debug)]
pub struct Sentinel {
    port: u16,
    child: Option<Child>,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    /// Starts one; it knows the server as `mymaster`.
    pub fn start(server: &RedisServer) -> Result<Self, RedisError> {
        let folder = tempfile::Builder::new().prefix("toolgate-sentinel-").tempdir()?;
        let port = free_port()?;
        let lines = [
            "bind 127.0.0.1".to_owned(),
            format!("port {port}"),
            format!("dir {}", folder.path().display()),
            format!("sentinel monitor mymaster 127.0.0.1 {} 1", server.port),
        ];
        let child = Some(spawn("redis-sentinel", folder.path(), "sentinel.conf", &lines)?);
        let sentinel = Self {
            port,
            child,
            _folder: folder,
        };
        let address = || {
            let mut command = Command::new("redis-cli");
            command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
            said(command.args(["SENTINEL", "get-master-addr-by-name", "mymaster"]))
        };
        wait_until(address, "127.0.0.1")?;
        Ok(sentinel)
    }

    /// The URL of the server that it watches.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis-sentinel://127.0.0.1:{}/mymaster", self.port)
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A cluster of one node.
#[derive(Debug)]
pub struct RedisCluster(RedisServer);

impl RedisCluster {
    /// Starts one that serves all slots.
    pub fn start() -> Result<Self, RedisError> {
        let server = RedisServer::start(&RedisOptions {
            is_cluster: true,
            ..RedisOptions::default()
        })?;
        server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", SLOTS])?;
        wait_until(|| server.command(&["CLUSTER", "INFO"]), "cluster_state:ok")?;
        Ok(Self(server))
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.url().replace("redis://", "redis-cluster://")
    }
}

fn spawn(program: &'static str, folder: &Path, file: &str, lines: &[String]) -> Result<Child, RedisError> {
    let path = folder.join(file);
    fs::write(&path, lines.join("\n"))?;
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"))?;
    Command::new(program)
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .map_err(|source| RedisError::NotInstalled { program, source })
}

fn said(command: &mut Command) -> Result<String, RedisError> {
    let program = "redis-cli";
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| RedisError::NotInstalled { program, source })?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        Ok(text)
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        Err(RedisError::Refused(format!("{text} {}", error.trim())))
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a test's thread may wait; nothing else runs on it"
)]
fn wait_until(probe: impl Fn() -> Result<String, RedisError>, expected: &str) -> Result<(), RedisError> {
    let begun = Instant::now();
    loop {
        match probe() {
            Ok(text) if text.contains(expected) => return Ok(()),
            other if begun.elapsed() > PATIENCE => {
                let last = other.unwrap_or_else(|error| error.to_string());
                return Err(RedisError::Refused(format!("not {expected} in time: {last}")));
            }
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// A loopback port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
