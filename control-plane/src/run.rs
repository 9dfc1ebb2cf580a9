//! A control plane as a process of its own: listeners, TLS, signals.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use config::{Change, Config, Environment, Program};
use net::clock::Clock;
use net::listen::{self, ListenError};
use net::reload::Reloads;
use net::serve::{self, Limits};
use net::tls::{ServerFiles, ServerTls, TlsError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::front;
use crate::options::Options;
use crate::start::{ControlPlane, StartError, start};

/// Connections of sidecars that one replica holds.
const SIDECAR_CONNECTIONS: usize = 16_384;

/// Why a control plane did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A listener could not be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Signals cannot be heard.
    #[error("signals cannot be heard: {0}")]
    Signals(std::io::Error),
}

struct Listeners {
    operator: TcpListener,
    grpc: TcpListener,
    tls: Option<Arc<ServerTls>>,
}

/// Runs a control plane until SIGTERM or SIGINT, then drains it. The listeners are opened before anything else is touched.
/// What can change while it runs is applied on SIGHUP and when `file`, which the configuration was read from, has changed.
///
/// # Errors
/// When it could not be started; nothing was changed then, but for what [`start`] says.
pub async fn run(config: &Config, file: Option<&Path>) -> Result<(), RunError> {
    let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
    net::shutdown::on_signal(&shutdown, &tasks).map_err(RunError::Signals)?;
    let reloads = match file {
        Some(file) => Some(Reloads::of(file).await.map_err(RunError::Signals)?),
        None => None,
    };
    let listeners = open(config).await?;
    let plane = start(Options::from(config)).await?;
    tokio::select! {
        () = serve_until(&plane, listeners, config, shutdown) => {}
        () = keep_reloaded(&plane, config, reloads) => {}
    }
    plane.shutdown().await;
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Never returns.
async fn keep_reloaded(plane: &ControlPlane, config: &Config, reloads: Option<Reloads>) {
    let Some(reloads) = reloads else {
        return std::future::pending().await;
    };
    let mut current = config.clone();
    let load = |path: &Path| Config::load_without_upstreams(path, &Environment::of_process());
    let apply = async |next: Config| {
        let change = Change::between(&current, &next, Program::ControlPlane);
        match plane.reload(&current, &next).await {
            Ok(()) => {
                tracing::info!(applied = ?change.applied, at_next_start = ?change.at_next_start, "the configuration has changed");
                current = next;
            }
            Err(error) => tracing::error!(%error, "the changed configuration is not applied"),
        }
    };
    reloads.keep(load, apply).await;
}

async fn open(config: &Config) -> Result<Listeners, RunError> {
    let tls = match (&config.tls.cert_file, &config.tls.key_file) {
        (Some(cert_file), Some(key_file)) => {
            let files = ServerFiles {
                cert_file: cert_file.clone(),
                key_file: key_file.clone(),
                client_ca_file: config.tls.client_ca_file.clone(),
            };
            Some(Arc::new(ServerTls::load(files, Clock::machine()).await?))
        }
        _ => {
            tracing::warn!("no TLS: tls.cert_file and tls.key_file are not set, so connections are plain");
            None
        }
    };
    Ok(Listeners {
        operator: listen::bind(config.listen.operator, "listen.operator").await?,
        grpc: listen::bind(config.listen.grpc, "listen.grpc").await?,
        tls,
    })
}

/// Serves until the signal; then streams are told first, so that the listeners drain by themselves.
async fn serve_until(
    plane: &ControlPlane,
    listeners: Listeners,
    config: &Config,
    shutdown: CancellationToken,
) {
    let Listeners { operator, grpc, tls } = listeners;
    let closing = CancellationToken::new();
    let limits = Limits {
        drain: config.drain.seconds,
        ..Limits::default()
    };
    let grpc_limits = Limits {
        max_connections: SIDECAR_CONNECTIONS,
        ..limits.clone()
    };
    tracing::info!(
        operator = %address(&operator), grpc = %address(&grpc), tls = tls.is_some(), "control plane serves"
    );
    let routes: Router = plane.grpc_routes().into_axum_router();
    let both = front::router(plane.router(), routes.clone());
    let operators = serve::serve(operator, tls.clone(), both, limits, closing.clone());
    let sidecars = serve::serve(grpc, tls, routes, grpc_limits, closing.clone());
    let ending = async {
        shutdown.cancelled().await;
        plane.drain().await;
        closing.cancel();
    };
    tokio::join!(operators, sidecars, ending);
}

fn address(listener: &TcpListener) -> String {
    listener
        .local_addr()
        .map_or_else(|_| "?".to_owned(), |address: SocketAddr| address.to_string())
}
