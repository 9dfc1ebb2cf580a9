//! A fleet on this machine: control planes and sidecars as processes of their own, over TLS, on a Postgres of its own.

use std::fmt::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use control_plane::testing::Cluster;
use net::tls::TestCertificates;

use crate::agent::Agent;
use crate::operator::Operator;
use crate::process::Process;
use crate::programs::built;
use crate::wait;

/// The operator's token of every fleet.
pub const TOKEN: &str = "operator-token-of-the-tests";
/// The key that control planes encrypt their keys under.
const MASTER_KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Says where a process is to die, in builds with `crash-points`.
const CRASH_AT: &str = "TOOLGATE_CRASH_AT";

/// Control planes on one database, and what sidecars need to join them.
pub struct Fleet {
    /// Everything that the fleet writes.
    pub folder: tempfile::TempDir,
    /// The database, when it is Postgres.
    pub cluster: Option<Cluster>,
    /// The control planes.
    pub planes: Vec<Plane>,
    ca_file: PathBuf,
    cert_file: PathBuf,
    key_file: PathBuf,
    extra: String,
    database: Option<String>,
}

/// One control plane.
pub struct Plane {
    /// The process.
    pub process: Process,
    /// Port of the REST API.
    pub operator_port: u16,
    /// Port of the gRPC services.
    pub grpc_port: u16,
    folder: PathBuf,
}

/// One sidecar, and the fixture server behind it.
pub struct Sidecar {
    /// The process.
    pub process: Process,
    /// Where agents reach it.
    pub url: String,
    /// Its own folder, with the spool in `spool`.
    pub folder: PathBuf,
    ca_file: PathBuf,
    /// An agent that it serves.
    agent: String,
}

/// What a sidecar is to be.
#[derive(Clone, Debug)]
pub struct SidecarOptions {
    /// Its name, unique in the fleet.
    pub name: String,
    /// Namespace of its join token.
    pub namespace: String,
    /// Agents of its join token.
    pub agents: Vec<String>,
    /// The projected token of its pod, by which it enrols instead of a join token.
    pub pod_token: Option<String>,
    /// Which control plane it talks to.
    pub plane: usize,
    /// Another address of it, such as that of a [`crate::meter::Meter`].
    pub control_url: Option<String>,
    /// YAML that is appended to its configuration.
    pub extra: String,
    /// Variables of its environment.
    pub environment: Vec<(String, String)>,
}

impl SidecarOptions {
    /// A sidecar for all agents of the namespace `default`, at the first control plane.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            agents: vec!["*".to_owned()],
            pod_token: None,
            plane: 0,
            control_url: None,
            extra: String::new(),
            environment: Vec::new(),
        }
    }
}

impl Fleet {
    /// Replicas on a Postgres of their own, over TLS, with credentials that live 3 seconds unless `extra` says otherwise; `extra` is appended to their configuration.
    pub async fn on_postgres(replicas: usize, extra: &str) -> Self {
        let cluster = Cluster::start().unwrap();
        let url = cluster.database("toolgate").unwrap();
        Self::start(Some(cluster), Some(url), replicas, extra).await
    }

    /// One control plane on SQLite, over TLS, with credentials that live 3 seconds unless `extra` says otherwise; `extra` is appended to its configuration.
    pub async fn on_sqlite(extra: &str) -> Self {
        Self::start(None, None, 1, extra).await
    }

    async fn start(cluster: Option<Cluster>, database: Option<String>, replicas: usize, extra: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("toolgate-test-")
            .tempdir()
            .unwrap();
        let certificates =
            net::tls::self_signed(&["localhost", "127.0.0.1"], Duration::from_secs(3600)).unwrap();
        let (ca_file, cert_file, key_file) = written(&certificates, folder.path());
        let mut fleet = Self {
            folder,
            cluster,
            planes: Vec::new(),
            ca_file,
            cert_file,
            key_file,
            extra: extra.to_owned(),
            database,
        };
        for _ in 0..replicas {
            fleet.add_plane().await;
        }
        fleet
    }

    /// Starts one more replica.
    pub async fn add_plane(&mut self) {
        let index = self.planes.len();
        let folder = self.folder.path().join(format!("plane-{index}"));
        std::fs::create_dir(&folder).unwrap();
        let plane = self.spawn_plane(&folder, free_port(), free_port(), &[]);
        self.planes.push(plane);
        self.ready(index).await;
    }

    /// Starts a control plane again that has ended, with the same ports and folder.
    pub async fn restart_plane(&mut self, index: usize) {
        let (operator_port, grpc_port) = (self.planes[index].operator_port, self.planes[index].grpc_port);
        let folder = self.planes[index].folder.clone();
        self.planes[index].process.kill();
        self.planes[index] = self.spawn_plane(&folder, operator_port, grpc_port, &[]);
        self.ready(index).await;
    }

    /// Starts a control plane again that is to die at a named point (`net::crash`); does not wait for anything.
    pub fn restart_plane_to_crash_at(&mut self, index: usize, point: &str) {
        let (operator_port, grpc_port) = (self.planes[index].operator_port, self.planes[index].grpc_port);
        let folder = self.planes[index].folder.clone();
        self.planes[index].process.kill();
        self.planes[index] = self.spawn_plane(&folder, operator_port, grpc_port, &[(CRASH_AT, point)]);
    }

    fn spawn_plane(
        &self,
        folder: &Path,
        operator_port: u16,
        grpc_port: u16,
        environment: &[(&str, &str)],
    ) -> Plane {
        let mut yaml = format!(
            "data_dir: {folder}\nlisten:\n  operator: 127.0.0.1:{operator_port}\n  grpc: 127.0.0.1:{grpc_port}\n\
             tls:\n  cert_file: {cert}\n  key_file: {key}\n{extra}",
            folder = folder.display(),
            cert = self.cert_file.display(),
            key = self.key_file.display(),
            extra = self.extra,
        );
        for (key, default) in [("drain", "seconds: 2"), ("credentials", "ttl: 3s")] {
            if !self.extra.contains(&format!("{key}:")) {
                write!(yaml, "\n{key}:\n  {default}\n").unwrap();
            }
        }
        let file = folder.join("control-plane.yaml");
        std::fs::write(&file, yaml).unwrap();
        let mut command = Command::new(built("toolgate-control-plane"));
        command.arg("run").arg("--config").arg(&file);
        command
            .env("TOOLGATE_ADMIN_TOKEN", TOKEN)
            .env("TOOLGATE_MASTER_KEY", MASTER_KEY)
            .envs(environment.iter().copied());
        if let Some(database) = &self.database {
            command.env("TOOLGATE_DATABASE_URL", database);
        }
        let process = Process::spawn(command, &folder.join("log"));
        Plane {
            process,
            operator_port,
            grpc_port,
            folder: folder.to_owned(),
        }
    }

    /// Waits until a control plane is ready.
    pub async fn ready(&mut self, index: usize) {
        let operator = self.operator_of(index);
        wait::until("the control plane is ready", || async {
            let (status, _) = operator
                .try_send(operator.request(reqwest::Method::GET, "/readyz"))
                .await;
            (status == 200).then_some(())
        })
        .await;
    }

    /// The operator at the first control plane.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator_of(0)
    }

    /// The operator at one of the control planes.
    #[must_use]
    pub fn operator_of(&self, index: usize) -> Operator {
        let url = format!("https://localhost:{}", self.planes[index].operator_port);
        Operator::new(&url, TOKEN, Some(&self.ca_file))
    }

    /// The certificate authority of the fleet.
    #[must_use]
    pub fn ca_file(&self) -> &Path {
        &self.ca_file
    }

    /// The gRPC address of one of the control planes.
    #[must_use]
    pub fn grpc_url(&self, index: usize) -> String {
        format!("https://localhost:{}", self.planes[index].grpc_port)
    }

    /// A join token of the given scope.
    pub async fn join_token(&self, namespace: &str, agents: &[String]) -> String {
        let body = serde_json::json!({"namespace": namespace, "agents": agents, "uses": 1000});
        let token = self.operator().post("/sidecars/tokens", body).await;
        token["token"].as_str().unwrap().to_owned()
    }

    /// Starts a sidecar with one upstream, `fixture`, and waits until it serves the fixture's tools.
    pub async fn sidecar(&self, options: &SidecarOptions) -> Sidecar {
        let sidecar = self.start_sidecar(options).await;
        sidecar.ready().await;
        sidecar
    }

    /// As [`Fleet::sidecar`], for one that may well be refused: waits for nothing.
    pub async fn start_sidecar(&self, options: &SidecarOptions) -> Sidecar {
        let folder = self.folder.path().join(&options.name);
        std::fs::create_dir_all(&folder).unwrap();
        let (token, token_key) = match &options.pod_token {
            Some(token) => (token.clone(), "service_account_file"),
            None => (
                self.join_token(&options.namespace, &options.agents).await,
                "token_file",
            ),
        };
        std::fs::write(folder.join("token"), token).unwrap();
        let port = free_port();
        let control_url = options
            .control_url
            .clone()
            .unwrap_or_else(|| self.grpc_url(options.plane));
        let mut yaml = format!(
            "listen:\n  agent: 127.0.0.1:{port}\ncontrol_plane:\n  url: {control_url}\n  ca_cert: {ca}\n  {token_key}: {folder}/token\n\
             sidecar:\n  name: {name}\nspool:\n  dir: {folder}/spool\ndata_dir: {folder}\ndrain:\n  seconds: 2\n",
            ca = self.ca_file.display(),
            folder = folder.display(),
            name = options.name,
        );
        if !options.extra.contains("mcp_servers:") {
            write!(
                yaml,
                "mcp_servers:\n  - name: fixture\n    transport: stdio\n    command: {}\n    args: [stdio, {}/ran]\n",
                built("fixture-mcp").display(),
                folder.display()
            )
            .unwrap();
        }
        yaml.push_str(&options.extra);
        let file = folder.join("sidecar.yaml");
        std::fs::write(&file, yaml).unwrap();
        let process = spawn_sidecar(&folder, &options.environment);
        Sidecar {
            process,
            url: format!("http://127.0.0.1:{port}"),
            folder,
            ca_file: self.ca_file.clone(),
            agent: options.agents[0].replace(['*', '?'], "x"),
        }
    }

    /// What the database holds.
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        let cluster = self.cluster.as_ref().expect("a fleet on Postgres");
        cluster.tool("pg_dump", &["toolgate"]).unwrap()
    }

    /// Kills the control planes and starts them on another database server, which holds what a dump says.
    pub async fn restore(&mut self, dump: &[u8]) {
        use std::os::unix::fs::PermissionsExt;
        for plane in &mut self.planes {
            plane.process.kill();
        }
        drop(self.cluster.take());
        let restored = Cluster::start().unwrap();
        self.database = Some(restored.database("toolgate").unwrap());
        let file = self.folder.path().join("dump.sql");
        std::fs::write(&file, dump).unwrap();
        std::fs::set_permissions(self.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let file = file.display().to_string();
        let arguments = ["-q", "-d", "toolgate", "-v", "ON_ERROR_STOP=1", "-f", &file];
        restored.tool("psql", &arguments).unwrap();
        self.cluster = Some(restored);
        for index in 0..self.planes.len() {
            self.restart_plane(index).await;
        }
    }
}

fn spawn_sidecar(folder: &Path, environment: &[(String, String)]) -> Process {
    let mut command = Command::new(built("toolgate-sidecar"));
    command
        .arg("run")
        .arg("--config")
        .arg(folder.join("sidecar.yaml"));
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    Process::spawn(command, &folder.join("log"))
}

impl Sidecar {
    /// Starts the process again, after it has ended.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = spawn_sidecar(&self.folder, &[]);
    }

    /// Starts the process again; it is to die at a named point (`net::crash`).
    pub fn restart_to_crash_at(&mut self, point: &str) {
        self.process.kill();
        self.process = spawn_sidecar(&self.folder, &[(CRASH_AT.to_owned(), point.to_owned())]);
    }

    /// Waits until it serves at least one tool.
    pub async fn ready(&self) {
        let http = crate::operator::client(None);
        wait::until("the sidecar serves its upstream's tools", || async {
            let servers = http.get(format!("{}/mcp-servers", self.url));
            let answer = servers
                .bearer_auth(format!("agent:{}", self.agent))
                .send()
                .await
                .ok()?;
            let servers: serde_json::Value = answer.json().await.ok()?;
            let all = servers.as_array()?;
            all.iter()
                .all(|server| server["state"] == "connected")
                .then_some(())
        })
        .await;
        wait::until("the sidecar is ready", || async {
            let answer = http.get(format!("{}/readyz", self.url)).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
    }

    /// An agent that has opened a legacy session here.
    pub async fn agent(&self, name: &str) -> Agent {
        self.stateless_agent(name).connect().await
    }

    /// An agent that has no session.
    #[must_use]
    pub fn stateless_agent(&self, name: &str) -> Agent {
        Agent::new(&self.url, name, None)
    }

    /// What the fixture server says that it ran: lines as `fixture-mcp` writes them.
    #[must_use]
    pub fn ran(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("ran")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The certificate authority of its fleet.
    #[must_use]
    pub fn ca_file(&self) -> &Path {
        &self.ca_file
    }
}

fn written(certificates: &TestCertificates, folder: &Path) -> (PathBuf, PathBuf, PathBuf) {
    let (ca_file, files) = certificates.write(folder).unwrap();
    (ca_file, files.cert_file, files.key_file)
}

/// A loopback port that was free a moment ago.
#[must_use]
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
