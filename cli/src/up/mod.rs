//! `toolgate up`: both planes in one process, on one port, over an in-memory link.

mod front;

use std::fs::{File, TryLockError};
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::{Change, Config, Environment, Program};
use control_plane::ControlPlane;
use http::HeaderMap;
use net::clock::Clock;
use net::problem::Problem;
use net::reload::Reloads;
use net::serve::{self, Limits};
use net::tls::{ServerFiles, ServerTls};
use sidecar::Sidecar;
use sidecar::control::{Freshness, JoinProof, Link, Secret};
use sidecar::identity::LaunchKey;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing_subscriber::EnvFilter;

use crate::args::{Global, UpArgs};
use crate::connection::{RUNNING_FILE, running};
use crate::error::CliError;
use crate::mcp::LAUNCH_KEY_FILE;
use crate::output;

/// How long the sidecar may take to enrol and to get its first lease.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How often that is looked at.
const READY_PROBE: Duration = Duration::from_millis(5);

/// Where the sidecar of `up` and its agents are.
const NAMESPACE: &str = "default";

/// Held by the one `up` of a data directory.
const LOCK_FILE: &str = "up.lock";

/// Both planes, running.
pub(crate) struct Up {
    control_plane: Arc<ControlPlane>,
    sidecar: Sidecar,
    config: Config,
    address: SocketAddr,
    scheme: &'static str,
    running_file: PathBuf,
    closing: CancellationToken,
    tasks: TaskTracker,
    _lock: File,
}

/// Runs until SIGTERM or SIGINT.
pub(crate) async fn run(global: &Global, args: UpArgs) -> Result<(), CliError> {
    let filter = EnvFilter::try_from_env("TOOLGATE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("info,sqlx::postgres::notice=warn"));
    tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let (signal, tasks) = (CancellationToken::new(), TaskTracker::new());
    net::shutdown::on_signal(&signal, &tasks)?;
    let reloads = Reloads::of(&args.config).await?;
    let up = Up::start(&args.config, global.data_dir.as_deref(), None).await?;
    output::line(&format!("toolgate is up at {}", up.url()))?;
    tokio::select! {
        () = signal.cancelled() => {}
        () = up.keep_reloaded(reloads) => {}
    }
    up.shutdown().await;
    tasks.close();
    tasks.wait().await;
    Ok(())
}

impl Up {
    /// Reads the configuration and starts both planes; `data_dir` and `address` win over the file's. Nothing is left running on an error.
    pub(crate) async fn start(
        file: &Path,
        data_dir: Option<&Path>,
        address: Option<SocketAddr>,
    ) -> Result<Self, CliError> {
        let mut config = Config::load(file, &Environment::of_process()).map_err(CliError::Problems)?;
        if let Some(data_dir) = data_dir {
            data_dir.clone_into(&mut config.data_dir);
        }
        let tls = certificate(&config).await?;
        let listener = net::listen::bind(address.unwrap_or_else(|| config.agent_address()), "port")
            .await
            .map_err(failed)?;
        let address = listener.local_addr()?;
        let lock = lock(&config.data_dir)?;
        let control_plane = control_plane::start(control_plane::Options::from(&config))
            .await
            .map_err(failed)?;
        let control_plane = Arc::new(control_plane);
        let sidecar = match start_sidecar(&control_plane, &config).await {
            Ok(sidecar) => sidecar,
            Err(error) => {
                end(control_plane).await;
                return Err(error);
            }
        };
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let router = front::router(&control_plane, &sidecar);
        let limits = Limits {
            drain: config.drain.seconds,
            ..Limits::default()
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        tasks.spawn(serve::serve(listener, tls, router, limits, closing.clone()));
        let running_file = config.data_dir.join(RUNNING_FILE);
        let up = Self {
            control_plane,
            sidecar,
            config,
            address,
            scheme,
            running_file,
            closing,
            tasks,
            _lock: lock,
        };
        up.announce()?;
        Ok(up)
    }

    /// Applies what can be applied of a configuration file that has changed. Never returns.
    async fn keep_reloaded(&self, reloads: Reloads) {
        let mut current = self.config.clone();
        let data_dir = &self.config.data_dir;
        let load = |path: &Path| {
            let mut config = Config::load(path, &Environment::of_process())?;
            // As at the start, the command line wins.
            config.data_dir.clone_from(data_dir);
            Ok::<_, Vec<config::Problem>>(config)
        };
        let apply = async |next: Config| {
            let change = Change::between(&current, &next, Program::Both);
            if let Err(error) = self.control_plane.reload(&current, &next).await {
                tracing::error!(%error, "the changed configuration is not applied");
                return;
            }
            let upstreams = self.sidecar.reload(&next);
            tracing::info!(applied = ?change.applied, ?upstreams, at_next_start = ?change.at_next_start, "the configuration has changed");
            current = next;
        };
        reloads.keep(load, apply).await;
    }

    /// Where agents and operators reach it.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Lets the commands of this machine find it.
    fn announce(&self) -> Result<(), CliError> {
        let document = serde_json::json!({"url": self.url(), "pid": std::process::id()});
        net::files::write_private(&self.running_file, document.to_string().as_bytes()).map_err(failed)
    }

    /// Ends both planes: agents first, so that what they did is still reported.
    pub(crate) async fn shutdown(self) {
        // A file that cannot be removed names a server that does not answer: the commands say so.
        let _ = std::fs::remove_file(&self.running_file);
        self.sidecar.begin_shutdown();
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.sidecar.shutdown().await;
        end(self.control_plane).await;
    }
}

/// Keeps a second `up` from the data directory before it changes anything there.
fn lock(data_dir: &Path) -> Result<File, CliError> {
    let path = data_dir.join(LOCK_FILE);
    let cannot = |error: std::io::Error| CliError::Failed(format!("cannot lock {}: {error}", path.display()));
    net::files::create_private_dir(data_dir).map_err(failed)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(cannot)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let at = running(data_dir).map(|running| format!(" at {}", running.url));
            Err(CliError::Failed(format!(
                "another `toolgate up` runs{} with the data directory {}; end it, or give this one a directory of its own by --data-dir",
                at.unwrap_or_default(),
                data_dir.display()
            )))
        }
        Err(TryLockError::Error(error)) => Err(cannot(error)),
    }
}

async fn end(control_plane: Arc<ControlPlane>) {
    if let Some(control_plane) = Arc::into_inner(control_plane) {
        control_plane.shutdown().await;
    }
}

async fn certificate(config: &Config) -> Result<Option<Arc<ServerTls>>, CliError> {
    let (Some(cert_file), Some(key_file)) = (&config.tls.cert_file, &config.tls.key_file) else {
        return Ok(None);
    };
    let files = ServerFiles {
        cert_file: cert_file.clone(),
        key_file: key_file.clone(),
        client_ca_file: config.tls.client_ca_file.clone(),
    };
    ServerTls::load(files, Clock::machine())
        .await
        .map(|tls| Some(Arc::new(tls)))
        .map_err(failed)
}

/// The sidecar of this process enrols like any other, only over memory.
async fn start_sidecar(control_plane: &Arc<ControlPlane>, config: &Config) -> Result<Sidecar, CliError> {
    let token = control_plane.local_join_token().await.map_err(failed)?;
    // Weak: the sidecar must not keep the control plane from ending.
    let operators = Arc::downgrade(control_plane);
    let options = sidecar::Options {
        config: Arc::new(config.clone()),
        link: Link::Channel(control_plane.in_memory_channel()),
        join: Some(JoinProof::Token(Secret::new(token))),
        has_own_rules: false,
        clock: Clock::machine(),
        bound_agent: None,
        launch_key: Some(LaunchKey::new(launch_key(&config.data_dir)?, Clock::machine())),
        operators: Some(Arc::new(move |headers: &HeaderMap| {
            let (plane, headers) = (operators.upgrade(), headers.clone());
            Box::pin(async move {
                match plane {
                    Some(plane) => plane.check_asking(&headers, NAMESPACE).await,
                    None => Err(Problem::unavailable("the control plane has ended")),
                }
            })
        })),
        link_runtime: None,
        owns_process: true,
    };
    let sidecar = sidecar::start(options).map_err(failed)?;
    if tokio::time::timeout(READY_WITHIN, until_ready(&sidecar))
        .await
        .is_err()
    {
        sidecar.shutdown().await;
        return Err(CliError::Failed(format!(
            "the sidecar was not ready within {READY_WITHIN:?}; see the log above"
        )));
    }
    Ok(sidecar)
}

/// The first snapshot and lease come over memory: a moment.
async fn until_ready(sidecar: &Sidecar) {
    while sidecar.control().freshness() != Freshness::Fresh {
        tokio::time::sleep(READY_PROBE).await;
    }
}

/// The key by which `toolgate mcp` proves that this user launched it; made once.
fn launch_key(data_dir: &Path) -> Result<String, CliError> {
    let path = data_dir.join(LAUNCH_KEY_FILE);
    if net::files::read_optional(&path).map_err(failed)?.is_none() {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| CliError::Failed(format!("no randomness: {error}")))?;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        net::files::write_private(&path, hex.as_bytes()).map_err(failed)?;
    }
    net::files::read_secret(&path).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Failed(error.to_string())
}
