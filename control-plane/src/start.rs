//! Starting and ending a control plane.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chain::link::MacKey;
use config::Config;
use http::{HeaderMap, Method, StatusCode, Uri};
use net::host::AllowedHosts;
use net::tls::TlsError;
use policy::yaml::Problem;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::transport::Channel;

use crate::approvals::{self, Approvals};
use crate::auth::{self, Accounts, AdminToken, AdminTokenError, IssuerError, OperatorIssuer, Role, Sidecars};
use crate::configuration;
use crate::core::Core;
use crate::documents::{self, Directory, Folder};
use crate::grpc::Refusals;
use crate::keys::{self, KeyError, KeyRing, MasterKey, MasterKeyError, hex};
use crate::metrics::Metrics;
use crate::options::{Options, Storage};
use crate::quotas::Windows;
use crate::rollout::{self, Rollout};
use crate::snapshot::{self, Entry, Hub, Primary};
use crate::stops::Stops;

use crate::store::sidecars::JoinTokenDraft;
use crate::store::{self, Act, SharedStore, Store, StoreError, StoreResult};
use crate::traces::{self, Ingest, Marks};

/// How long tasks may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long a join token for this process' own sidecar can be used.
const LOCAL_TOKEN: Duration = Duration::from_secs(600);

/// Why a control plane could not be started. Nothing is running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store cannot be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no master key.
    #[error(transparent)]
    MasterKey(#[from] MasterKeyError),
    /// A key cannot be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no operator token.
    #[error(transparent)]
    AdminToken(#[from] AdminTokenError),
    /// The identity provider of operators cannot be used.
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    /// The certificate authority of Redis cannot be used.
    #[error("redis_ca_cert: {0}")]
    Redis(#[from] TlsError),
    /// The keys of the cluster whose service accounts enrol sidecars can never be fetched.
    #[error("auth.sidecar_accounts.jwks_url cannot be used: {0}")]
    Accounts(String),
    /// A setting or a policy cannot be written as JSON.
    #[error("the configuration cannot be stored: {0}")]
    Json(#[from] serde_json::Error),
    /// The policy directory holds what is not valid; all problems.
    #[error("{}", lines(.0))]
    Policies(Vec<Problem>),
}

/// A running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    core: Arc<Core>,
}

/// Starts a control plane: opens and migrates the store, opens or makes the keys, and starts its tasks. Nothing listens yet.
///
/// # Errors
/// When any of that fails; nothing is running then.
pub async fn start(options: Options) -> Result<ControlPlane, StartError> {
    check_policy_dir(&options).await?;
    let master = MasterKey::load(options.master_key.as_deref(), options.data_dir.as_deref())?;
    let admin_token = AdminToken::load(options.admin_token.as_deref(), options.data_dir.as_deref())?;
    let store = open(&options).await?;
    let keys = Arc::new(KeyRing::open(&*store, master).await?);
    let folder = keep_configuration(&*store, &options).await?;
    let (directory, edits) = options.policy_dir.clone().map(Directory::new).unzip();
    let core = assemble(options, store, keys, admin_token, directory).await?;
    if core.loopback_operators {
        tracing::warn!(
            "auth.loopback_operators is on: every program on this machine, agents included, is an operator"
        );
    }
    if let Some(((folder, stamp), edits)) = folder.zip(edits) {
        core.tasks
            .spawn(documents::keep_applied(Arc::clone(&core), folder, stamp, edits));
    }
    core.tasks.spawn(snapshot::follow(Arc::clone(&core)));
    core.tasks.spawn(rollout::keep_written(Arc::clone(&core)));
    core.tasks.spawn(approvals::sweep(Arc::clone(&core)));
    core.tasks.spawn(traces::keep_checkpoints(Arc::clone(&core)));
    core.tasks.spawn(keys::keep_fresh(Arc::clone(&core)));
    tracing::info!(revision = %core.hub.revision(), "control plane started");
    Ok(ControlPlane { core })
}

/// Brings the database's schema to this build's version, and does nothing else.
///
/// # Errors
/// When the database cannot be opened or migrated.
pub async fn migrate(config: &Config) -> Result<(), StartError> {
    let options = Options::from(config);
    Ok(store::migrate(&location(&options)?).await?)
}

async fn assemble(
    options: Options,
    store: SharedStore,
    keys: Arc<KeyRing>,
    admin_token: AdminToken,
    directory: Option<Directory>,
) -> Result<Arc<Core>, StartError> {
    let began = options.clock.boot_now();
    let head = store.head().await?;
    let view = store.desired_state().await?;
    let stops = store.stops_head().await?;
    let (metrics, tasks, shutdown) = (Metrics::default(), TaskTracker::new(), CancellationToken::new());
    metrics.revision_changed(view.revision);
    let entries = view.resources.into_iter().map(Entry::new).collect();
    let shared = match &options.storage {
        Storage::Postgres { .. } => Some(Arc::clone(&store)),
        Storage::Sqlite { .. } => None,
    };
    let issuer = options
        .issuer
        .map(|issuer| OperatorIssuer::start(issuer, &options.clock, &tasks, &shutdown))
        .transpose()?;
    let windows = Windows::start(
        options.redis,
        shared,
        &options.clock,
        &metrics,
        (&tasks, &shutdown),
    )?;
    let accounts = match options.accounts {
        Some(accounts) => {
            let (accounts, fetcher) =
                Accounts::new(accounts, &options.clock).map_err(StartError::Accounts)?;
            tasks.spawn(fetcher.run(shutdown.clone()));
            Some(accounts)
        }
        None => None,
    };
    let ingest = Ingest::start(&store, &metrics, &tasks, &shutdown);
    Ok(Arc::new(Core {
        hub: Hub::new(Arc::clone(&keys), view.revision, entries),
        primary: Primary::new(options.clock.clone(), head, began),
        stops: Stops::new(stops),
        approvals: Approvals::new(head.approval_cursor),
        sidecars: Arc::new(Sidecars::new(head.sidecar_sequence)),
        rollout: Rollout::default(),
        windows,
        ingest,
        marks: Marks::default(),
        checkpoints: watch::Sender::new(None),
        admin_token,
        issuer,
        accounts,
        refusals: Refusals::default(),
        loopback_operators: options.loopback_operators,
        hosts: AllowedHosts::new(options.hosts),
        lists: options.lists,
        directory,
        trace_keys: trace_key(&options.trace_key).into_iter().collect(),
        first_use: options.first_use,
        limits: options.limits,
        lifetimes: options.lifetimes,
        metrics,
        clock: options.clock,
        tasks,
        draining: CancellationToken::new(),
        shutdown,
        store,
        keys,
    }))
}

/// The key of the records' MACs, as it is named in them.
fn trace_key(text: &Option<String>) -> Option<MacKey> {
    let key = text.as_deref()?;
    MacKey::from_text(key)
}

async fn open(options: &Options) -> StoreResult<SharedStore> {
    let store = store::open(&location(options)?).await?;
    store.use_chain_key(trace_key(&options.trace_key));
    Ok(store)
}

/// The folder of an embedded database is made, for this user only.
fn location(options: &Options) -> StoreResult<String> {
    match &options.storage {
        Storage::Postgres { url } => Ok(url.clone()),
        Storage::Sqlite { path } => {
            let at = path.display().to_string();
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if let Some(folder) = folder {
                crate::secret_file::create_folder(folder).map_err(|error| StoreError::Unreachable {
                    at: at.clone(),
                    reason: format!("its folder cannot be made: {error}; set `storage_path` or `data_dir`"),
                })?;
            }
            Ok(at)
        }
    }
}

/// Before anything is made by a first start: what is wrong with the policy directory by itself. A later start has the last
/// valid versions in its store, and goes on with them.
async fn check_policy_dir(options: &Options) -> Result<(), StartError> {
    let is_first = match &options.storage {
        Storage::Sqlite { path } => !path.exists(),
        Storage::Postgres { .. } => false,
    };
    let Some(path) = options.policy_dir.as_ref().filter(|_| is_first) else {
        return Ok(());
    };
    let folder = Folder::new(path.clone(), options.lists.clone());
    let inline = options
        .policies
        .iter()
        .map(|policy| policy.name.as_str().to_owned());
    match documents::read(folder, inline.collect()).await {
        Some((_, reading, _)) if !reading.problems.is_empty() => Err(StartError::Policies(reading.problems)),
        _ => Ok(()),
    }
}

/// Brings what the configuration says of desired state into the store. All of it is checked before anything is written.
async fn keep_configuration(
    store: &dyn Store,
    options: &Options,
) -> Result<Option<(Folder, documents::Stamp)>, StartError> {
    let kept = documents::kept(store).await?;
    let is_first = kept.is_empty();
    let folder = match &options.policy_dir {
        Some(path) => {
            let inline = options
                .policies
                .iter()
                .map(|policy| policy.name.as_str().to_owned());
            let taken = documents::taken(store).await?.into_iter().chain(inline).collect();
            let mut folder = Folder::new(path.clone(), options.lists.clone());
            folder.remember(kept);
            documents::read(folder, taken).await
        }
        None => None,
    };
    if let Some((_, reading, _)) = &folder {
        if is_first && !reading.problems.is_empty() {
            return Err(StartError::Policies(reading.problems.clone()));
        }
        documents::say(&reading.problems);
    }
    configuration::keep_settings(store, &options.settings).await?;
    configuration::keep_policies(store, &options.policies).await?;
    match folder {
        Some((folder, reading, stamp)) => {
            documents::apply(store, reading).await?;
            Ok(Some((folder, stamp)))
        }
        None => Ok(None),
    }
}

fn lines(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

impl ControlPlane {
    /// What its parts share.
    #[must_use]
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Applies what of a changed configuration can be applied while it runs.
    ///
    /// # Errors
    /// When the store fails; part of it may be in force then, and a later change applies the rest.
    pub async fn reload(&self, before: &Config, after: &Config) -> Result<(), StartError> {
        configuration::reload(&*self.core.store, before, after).await
    }

    /// The REST API that operators call.
    pub fn router(&self) -> axum::Router {
        crate::api::router(&self.core)
    }

    /// Lets operators pass who may ask in the name of the agents of a namespace. An address proves nothing here.
    ///
    /// # Errors
    /// 403 for an operator who may not, 401 for everybody else.
    pub async fn check_asking(
        &self,
        headers: &HeaderMap,
        namespace: &str,
    ) -> Result<(), net::problem::Problem> {
        let (method, uri) = (Method::POST, Uri::default());
        let operator = auth::authenticate(&self.core, &method, &uri, headers, None).await;
        let operator = operator.map_err(|problem| match problem.status() {
            StatusCode::SERVICE_UNAVAILABLE => problem,
            _ => net::problem::Problem::unauthenticated("the credential is not that of an operator"),
        })?;
        operator.acting_as(Role::Approver)?.reach().act_in(namespace)
    }

    /// Whether a request is an operator's, by whatever credential.
    pub async fn admits(&self, headers: &HeaderMap, peer: Option<SocketAddr>) -> bool {
        let (method, uri) = (Method::POST, Uri::default());
        let admitted = auth::authenticate(&self.core, &method, &uri, headers, peer).await;
        admitted.is_ok()
    }

    /// The gRPC services that sidecars call, to be served on a listener of their own or beside others.
    #[must_use]
    pub fn grpc_routes(&self) -> Routes {
        crate::grpc::routes(&self.core)
    }

    /// A channel to the gRPC services that goes over no network, for a sidecar in this process.
    #[must_use]
    pub fn in_memory_channel(&self) -> Channel {
        crate::in_memory::channel(&self.core)
    }

    /// A join token for one sidecar of the namespace `default` in this process, good for ten minutes.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn local_join_token(&self) -> StoreResult<String> {
        let secret = hex::random_secret().map_err(|error| StoreError::Invalid {
            what: "random join token",
            reason: error.to_string(),
        })?;
        let draft = JoinTokenDraft {
            hash: crate::grpc::digest(&secret),
            label: "this process".to_owned(),
            namespace: "default".to_owned(),
            agents: vec!["*".to_owned()],
            upstreams: vec!["*".to_owned()],
            lifetime: Some(LOCAL_TOKEN),
            uses: Some(1),
            created_by: "system".to_owned(),
        };
        let act = Act::new(
            "mesh.join_token_create",
            "system",
            json!({"label": draft.label, "namespace": draft.namespace}),
        );
        self.core.store.create_join_token(draft, act).await?;
        Ok(secret)
    }

    /// Tells streams to reconnect elsewhere and gives them a moment to do so. New ones are refused from now on.
    pub async fn drain(&self) {
        let core = &self.core;
        core.draining.cancel();
        let streams_are_gone = async {
            while core.metrics.streams.get() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let _ = tokio::time::timeout(core.limits.drain, streams_are_gone).await;
        core.shutdown.cancel();
    }

    /// Ends it, after [`ControlPlane::drain`]: what was accepted is written, tasks are awaited.
    pub async fn shutdown(self) {
        self.drain().await;
        let core = self.core;
        core.tasks.close();
        if tokio::time::timeout(GRACE, core.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = core.tasks.len(), "some tasks did not end in time");
        }
        core.store.close().await;
        tracing::info!("control plane ended");
    }
}
