//! A sidecar as a process of its own: its listener, and its end on a signal.

use std::io;
use std::path::Path;
use std::sync::Arc;

use config::{Change, Config, Environment, Program};
use net::clock::Clock;
use net::listen::{self, ListenError};
use net::reload::Reloads;
use net::serve::{self, Limits};
use net::tls::{ServerFiles, ServerTls, TlsError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::link_thread::LinkThread;
use crate::start::{Options, Sidecar, StartError, start};

/// Why the process ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The sidecar cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The certificate files cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There is no thread for the link.
    #[error("cannot start the thread that talks to the control plane: {0}")]
    Link(#[source] io::Error),
    /// Signals cannot be taken.
    #[error("cannot listen for signals: {0}")]
    Signals(#[source] io::Error),
}

/// Serves agents until SIGTERM or SIGINT, then drains. What can change while it runs is applied on SIGHUP and when `file`, which the
/// configuration was read from, has changed. Calls are served on the current runtime, which is meant to have one
/// thread only; the link to the control plane has a thread of its own.
///
/// # Errors
/// When the sidecar cannot start or its address cannot be bound; nothing is served then.
pub async fn run(config: &Config, file: Option<&Path>) -> Result<(), RunError> {
    let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
    net::shutdown::on_signal(&shutdown, &tasks).map_err(RunError::Signals)?;
    let reloads = match file {
        Some(file) => Some(Reloads::of(file).await.map_err(RunError::Signals)?),
        None => None,
    };
    let tls = match (&config.tls.cert_file, &config.tls.key_file) {
        (Some(cert_file), Some(key_file)) => {
            let files = ServerFiles {
                cert_file: cert_file.clone(),
                key_file: key_file.clone(),
                client_ca_file: config.tls.client_ca_file.clone(),
            };
            Some(Arc::new(ServerTls::load(files, Clock::machine()).await?))
        }
        _ => None,
    };
    let setting = if config.listen.agent.is_some() {
        "listen.agent"
    } else {
        "port"
    };
    let listener = listen::bind(config.agent_address(), setting).await?;
    let link = LinkThread::start().map_err(RunError::Link)?;
    let mut options = Options::from_config(Arc::new(config.clone()))?;
    options.link_runtime = Some(link.runtime().clone());
    options.owns_process = true;
    let sidecar = start(options)?;
    match listener.local_addr() {
        Ok(address) => tracing::info!(%address, tls = tls.is_some(), "sidecar serves agents"),
        Err(error) => tracing::info!(%error, "sidecar serves agents"),
    }
    let limits = Limits {
        drain: config.drain.seconds,
        ..Limits::default()
    };
    let closing = CancellationToken::new();
    let serving = serve::serve(listener, tls, sidecar.router(), limits, closing.clone());
    let ending = async {
        shutdown.cancelled().await;
        sidecar.begin_shutdown();
        closing.cancel();
    };
    tokio::select! {
        _ = async { tokio::join!(serving, ending) } => {}
        () = keep_reloaded(&sidecar, config, reloads) => {}
    }
    sidecar.shutdown().await;
    drop(link);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Never returns.
async fn keep_reloaded(sidecar: &Sidecar, config: &Config, reloads: Option<Reloads>) {
    let Some(reloads) = reloads else {
        return std::future::pending().await;
    };
    let mut current = config.clone();
    let load = |path: &Path| Config::load(path, &Environment::of_process());
    let apply = async |next: Config| {
        let change = Change::between(&current, &next, Program::Sidecar);
        let upstreams = sidecar.reload(&next);
        tracing::info!(?upstreams, at_next_start = ?change.at_next_start, "the configuration has changed");
        current = next;
    };
    reloads.keep(load, apply).await;
}
