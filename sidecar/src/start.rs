//! Puts the parts of a sidecar together, and takes them apart again.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use config::Config;
use config::model::Outbound;
use net::clock::Clock;
use net::host::AllowedHosts;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::id::AgentId;

use crate::agent::attended::Tasks;
use crate::agent::calls::Calls;
use crate::agent::mcp::hub::{self, Hub};
use crate::agent::mcp::rounds::Rounds;
use crate::agent::mcp::sessions::Sessions;
use crate::agent::mcp::tasks::OwnTasks;
use crate::agent::state::{AgentState, OperatorCheck};
use crate::control::{Control, JoinProof, Link};
use crate::gate::{Gate, LocalRules, Parts};
use crate::identity::{Identities, LaunchKey, SetupError};
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::settings;
use crate::spool::{Spool, SpoolError};
use crate::upstream::children::{Children, ChildrenError};
use crate::upstream::{Applied, Upstreams};
use crate::{agent, control, publish};

/// Legacy sessions at once.
const MAX_SESSIONS: usize = 10_000;
/// A legacy session that is not used for this long ends.
const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// How often idle sessions are looked for.
const SESSION_CHECK: Duration = Duration::from_secs(30);
/// How long calls that were ended may take to write their records.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// What a sidecar is started with.
pub struct Options {
    /// The configuration; the sidecar uses its part.
    pub config: Arc<Config>,
    /// How the control plane is reached.
    pub link: Link,
    /// What a new sidecar proves itself by; one that has enrolled before has its renewal secret.
    pub join: Option<JoinProof>,
    /// Whether the configuration makes stricter what the fleet decides. It does not where it is the fleet's own: then all of that comes
    /// with the snapshot.
    pub has_own_rules: bool,
    /// Time.
    pub clock: Clock,
    /// Fixes every caller to one agent.
    pub bound_agent: Option<AgentId>,
    /// The key by which processes prove which agent they were launched for, where such are served.
    pub launch_key: Option<LaunchKey>,
    /// Tells operators, where both planes share a port.
    pub operators: Option<OperatorCheck>,
    /// Where the link to the control plane runs; on the current runtime by default.
    pub link_runtime: Option<Handle>,
    /// Whether every child of this process is the sidecar's, and its executable begins with [`keep_if_asked`](crate::keep_if_asked): then nothing
    /// of a program outlives its call, nor this process.
    pub owns_process: bool,
}

impl Options {
    /// Options as the configuration says.
    ///
    /// # Errors
    /// When it names no control plane.
    pub fn from_config(config: Arc<Config>) -> Result<Self, StartError> {
        Ok(Self {
            link: settings::link(&config).ok_or(StartError::NoControlPlane)?,
            join: settings::join(&config),
            config,
            has_own_rules: true,
            clock: Clock::machine(),
            bound_agent: None,
            launch_key: None,
            operators: None,
            link_runtime: None,
            owns_process: false,
        })
    }
}

/// Why a sidecar cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration names no control plane.
    #[error(
        "control_plane.url is not set; set it, or the variable TOOLGATE_CONTROL_URL, to the control plane's gRPC address"
    )]
    NoControlPlane,
    /// The queue of records cannot be opened.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Callers cannot be identified as the configuration says.
    #[error(transparent)]
    Identity(#[from] SetupError),
    /// The link to the control plane cannot start.
    #[error(transparent)]
    Link(#[from] control::StartError),
    /// Programs cannot be run so that they end.
    #[error(transparent)]
    Children(#[from] ChildrenError),
}

/// A running sidecar.
pub struct Sidecar {
    state: Arc<AgentState>,
    router: Router,
    control: Control,
    upstreams: Arc<Upstreams>,
    tasks: TaskTracker,
    calls: TaskTracker,
    stop: CancellationToken,
    /// The way of outbound requests, which changes at the next start.
    outbound: Outbound,
    drain: Duration,
}

/// Starts a sidecar: it recovers its spool, goes on with the snapshot it kept, connects to its control plane and its
/// upstreams in the background, and serves what it is asked. Blocks on the disk for a moment; needs a runtime.
///
/// # Errors
/// When the spool or the kept credentials cannot be used. An unreachable control plane is no error.
pub fn start(options: Options) -> Result<Sidecar, StartError> {
    let Options {
        config,
        link,
        join,
        has_own_rules,
        clock,
        bound_agent,
        launch_key,
        operators,
        link_runtime,
        owns_process,
    } = options;
    let identities =
        Identities::new(bound_agent, config.auth.require_authentication).with_launch_key(launch_key);
    let (identities, fetchers) =
        identities.configured(&config.auth, settings::proxy(&config.outbound).as_ref(), &clock)?;
    let spool = Spool::open(&settings::spool(&config, &clock))?;
    let children = if owns_process {
        Children::of_process(Some(&config.spool_dir()))?
    } else {
        Children::of_groups()
    };
    let control = {
        let _here = link_runtime.as_ref().map(Handle::enter);
        let mut options = settings::control(&config, link, join, &clock);
        if has_own_rules {
            options.staleness_write = Some(config.staleness.write);
            options.staleness_read = Some(config.staleness.read);
        }
        Control::start(&options, spool.clone())?
    };
    let upstreams = Arc::new(Upstreams::with(children, settings::upstreams(&config)));
    let registry = Registry::new();
    let (tasks, calls) = (TaskTracker::new(), TaskTracker::new());
    let stop = CancellationToken::new();
    registry.follow(&upstreams, &tasks, &stop);
    let metrics = Arc::new(Metrics::new());
    let gate = Arc::new(Gate::new(Parts {
        control: control.clone(),
        spool,
        registry: registry.clone(),
        upstreams: Arc::clone(&upstreams),
        local: if has_own_rules {
            settings::local_rules(&config)
        } else {
            LocalRules::none()
        },
        configured_agents: config.sidecar.agents.clone(),
        metrics: Arc::clone(&metrics),
        clock: clock.clone(),
        shutdown: stop.clone(),
    }));
    let state = Arc::new(AgentState {
        gate: Arc::clone(&gate),
        identities,
        resource: settings::protected_resource(&config),
        operators,
        sessions: Sessions::new(MAX_SESSIONS, SESSION_IDLE, clock.clone()),
        rounds: Rounds::default(),
        hub: Hub::default(),
        calls: Calls::new(clock.clone()),
        own_tasks: OwnTasks::new(clock),
        tasks: Tasks::new(calls.clone()),
        limits: ArcSwap::from_pointee(settings::limits(&config)),
        names: settings::names(&config),
        metrics,
        shutdown: stop.clone(),
    });
    for fetcher in fetchers {
        tasks.spawn(fetcher.run(stop.clone()));
    }
    tasks.spawn(gate.watch());
    tasks.spawn(publish::follow(registry, control.clone(), stop.clone()));
    tasks.spawn(end_idle_sessions(Arc::clone(&state)));
    tasks.spawn(pass_notices_on(Arc::clone(&state), Arc::clone(&upstreams)));
    Ok(Sidecar {
        router: agent::router(Arc::clone(&state), AllowedHosts::new(&config.listen.hosts)),
        state,
        control,
        upstreams,
        tasks,
        calls,
        stop,
        outbound: config.outbound.clone(),
        drain: config.drain.seconds,
    })
}

async fn pass_notices_on(state: Arc<AgentState>, upstreams: Arc<Upstreams>) {
    let following = upstreams.beside_each(|upstream| hub::follow(Arc::clone(&state), upstream), |_| ());
    tokio::select! {
        () = state.shutdown.cancelled() => {}
        () = following => {}
    }
}

async fn end_idle_sessions(state: Arc<AgentState>) {
    loop {
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = tokio::time::sleep(SESSION_CHECK) => {
                state.sessions.end_idle();
                hub::sweep(&state);
                state.rounds.sweep();
                state.own_tasks.sweep();
            }
        }
    }
}

impl Sidecar {
    /// What agents call.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// The link to the control plane.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The gate.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.state.gate
    }

    /// Applies what of a changed configuration can be applied while it runs: which upstreams there are, and the bounds of arguments.
    pub fn reload(&self, config: &Config) -> Applied {
        let mut config = config.clone();
        // Upstreams' messages have the same bound, which changes at the next start: none is begun anew for it.
        config.limits.message_bytes = self.state.limits().message_bytes;
        self.state.limits.store(Arc::new(settings::limits(&config)));
        config.outbound.clone_from(&self.outbound);
        let specs = settings::upstreams(&config);
        self.control
            .serve_upstreams(specs.iter().map(|spec| spec.name().to_string()).collect());
        self.upstreams.apply(specs)
    }

    /// Begins the end: long streams close and waits for people end, so that a listener can drain; calls in flight go on.
    pub fn begin_shutdown(&self) {
        self.stop.cancel();
    }

    /// Ends the sidecar: calls in flight get the configured time and are then cancelled, every one is recorded, upstreams and
    /// the link are closed. Listeners must have been drained.
    pub async fn shutdown(&self) {
        self.begin_shutdown();
        self.calls.close();
        if tokio::time::timeout(self.drain, self.calls.wait()).await.is_err() {
            self.state.gate.end_all();
            if tokio::time::timeout(LAST_RECORDS, self.calls.wait())
                .await
                .is_err()
            {
                tracing::warn!(
                    calls = self.calls.len(),
                    "calls did not end in time; they are recorded as interrupted"
                );
            }
        }
        self.upstreams.shutdown().await;
        self.tasks.close();
        self.tasks.wait().await;
        self.control.shutdown(self.drain).await;
    }
}
