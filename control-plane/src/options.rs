//! What a control plane is started with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Config;
use config::model::{FirstUse, OperatorRole, Operators, Outbound, Params, RoleName, SidecarAccounts};
use net::clock::Clock;
use net::outbound::{Proxy, ProxyOptions};
use net::token::KeySource;
use policy::Policy;
use policy::document::Lists;
use proto::body::FleetSettings;

use crate::auth::{AccountOptions, IssuerOptions, Reach, Right, Role};
use crate::core::{Lifetimes, StreamLimits};
use crate::quotas::RedisServer;
use crate::store::catalogue::Pinning;

/// Where the truth is kept.
#[derive(Clone)]
pub enum Storage {
    /// An embedded database, for one process.
    Sqlite {
        /// Its file.
        path: PathBuf,
    },
    /// A Postgres database, for any number of replicas.
    Postgres {
        /// Its URL, with the password where there is one.
        url: String,
    },
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite { path } => write!(f, "Sqlite({})", path.display()),
            Self::Postgres { .. } => f.write_str("Postgres(..)"),
        }
    }
}

/// What a control plane is started with. Secrets in it are never shown.
#[derive(Clone)]
pub struct Options {
    /// Where the truth is kept.
    pub storage: Storage,
    /// Where the minutes of limits are counted, if not in the storage.
    pub redis: Option<RedisServer>,
    /// Where a master key and an operator token are kept when none are configured; `None`: both have to be.
    pub data_dir: Option<PathBuf>,
    /// The master key, or the path of its file.
    pub master_key: Option<String>,
    /// The operator's token.
    pub admin_token: Option<String>,
    /// Key of the chain's HMAC.
    pub trace_key: Option<String>,
    /// The identity provider of operators.
    pub issuer: Option<IssuerOptions>,
    /// The service accounts that enrol sidecars.
    pub accounts: Option<AccountOptions>,
    /// Any caller from this machine is an operator.
    pub loopback_operators: bool,
    /// Host names under which operators call this server, beside loopback names and IP addresses.
    pub hosts: Vec<String>,
    /// What the fleet decides for every sidecar.
    pub settings: FleetSettings,
    /// The configuration's own policies, in their order.
    pub policies: Vec<Policy>,
    /// Directory of policy files.
    pub policy_dir: Option<PathBuf>,
    /// Lists that the files of the directory may name.
    pub lists: Lists,
    /// What happens at the first use of an upstream, where pins are kept.
    pub first_use: Pinning,
    /// How long things last.
    pub lifetimes: Lifetimes,
    /// Bounds of streams.
    pub limits: StreamLimits,
    /// The machine's clock, or a test's.
    pub clock: Clock,
}

impl Options {
    /// Everything in one directory, all else by default: what tests and a first try need.
    #[must_use]
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            storage: Storage::Sqlite {
                path: directory.join("toolgate.db"),
            },
            redis: None,
            data_dir: Some(directory.to_owned()),
            master_key: None,
            admin_token: None,
            trace_key: None,
            issuer: None,
            accounts: None,
            loopback_operators: false,
            hosts: Vec::new(),
            settings: FleetSettings::default(),
            policies: Vec::new(),
            policy_dir: None,
            lists: Lists::none(),
            first_use: Pinning::Trust,
            lifetimes: Lifetimes::default(),
            limits: StreamLimits::default(),
            clock: Clock::machine(),
        }
    }
}

impl From<&Config> for Options {
    fn from(config: &Config) -> Self {
        let text = |secret: &Option<config::Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let proxy = proxy(&config.outbound);
        let (operators, cluster) = (
            config.auth.operators.as_ref(),
            config.auth.sidecar_accounts.as_ref(),
        );
        let master_key_file = config
            .master_key_file
            .as_ref()
            .map(|path| path.display().to_string());
        let storage = match &config.database_url {
            Some(url) => Storage::Postgres {
                url: url.expose().to_owned(),
            },
            None => Storage::Sqlite {
                path: config.storage_path(),
            },
        };
        Self {
            storage,
            redis: config.redis_url.clone().map(|url| RedisServer {
                url,
                ca_cert: config.redis_ca_cert.clone(),
            }),
            data_dir: Some(config.data_dir.clone()),
            master_key: text(&config.master_key).or(master_key_file),
            admin_token: text(&config.auth.admin_token),
            trace_key: text(&config.trace_key),
            issuer: operators.map(|operators| issuer(operators, proxy.clone())),
            accounts: cluster.map(|cluster| accounts(cluster, proxy.clone())),
            loopback_operators: config.auth.loopback_operators,
            hosts: config.listen.hosts.clone(),
            settings: settings(config),
            policies: config.policies.clone(),
            policy_dir: config.policy_dir.clone(),
            lists: config.lists.clone(),
            first_use: match config.pins.first_use {
                FirstUse::Trust => Pinning::Trust,
                FirstUse::Review => Pinning::Review,
            },
            lifetimes: Lifetimes {
                credential: config.credentials.ttl,
                checkpoint: config.traces.checkpoint_seconds,
                grant: config.grants.max_duration,
            },
            limits: StreamLimits {
                drain: config.drain.seconds,
                ..StreamLimits::default()
            },
            clock: Clock::machine(),
        }
    }
}

/// The proxy of what the configuration names.
fn proxy(outbound: &Outbound) -> Option<Arc<Proxy>> {
    let proxy = outbound.proxy.as_ref()?;
    Some(Arc::new(Proxy::new(ProxyOptions {
        host: proxy.host.clone(),
        port: proxy.port,
        login: proxy.login.pair(),
        direct_names: outbound.direct_names(),
        direct_networks: outbound.direct_networks(),
    })))
}

fn issuer(given: &Operators, proxy: Option<Arc<Proxy>>) -> IssuerOptions {
    IssuerOptions {
        keys: KeySource {
            url: given.jwks_url.clone(),
            ca_file: given.ca_cert.clone(),
            token_file: None,
            proxy,
        },
        issuer: given.issuer.clone(),
        audience: given.audience.clone(),
        name_claim: given.name_claim.clone(),
        role_claim: given.role_claim.clone(),
        roles: given.roles.iter().map(right).collect(),
    }
}

fn right(given: &OperatorRole) -> (String, Right) {
    let role = match given.role {
        RoleName::Viewer => Role::Viewer,
        RoleName::Approver => Role::Approver,
        RoleName::Editor => Role::Editor,
        RoleName::Admin => Role::Admin,
    };
    let namespaces: Vec<String> = given
        .namespaces
        .iter()
        .map(|name| name.as_str().to_owned())
        .collect();
    let reach = Reach::of(&namespaces);
    (given.value.clone(), Right { role, reach })
}

fn accounts(cluster: &SidecarAccounts, proxy: Option<Arc<Proxy>>) -> AccountOptions {
    let keys = match &cluster.jwks_url {
        Some(url) => KeySource {
            url: url.clone(),
            ca_file: cluster.ca_cert.clone(),
            token_file: cluster.token_file.clone(),
            proxy,
        },
        None => KeySource::cluster(),
    };
    AccountOptions {
        issuer: cluster.issuer.clone(),
        audience: cluster.audience.clone(),
        keys,
        accounts: cluster.accounts.clone(),
        agents: cluster
            .agents
            .iter()
            .map(|glob| glob.as_str().to_owned())
            .collect(),
    }
}

fn settings(config: &Config) -> FleetSettings {
    let millis = |length: std::time::Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    let params = match config.traces.params {
        Params::Redacted => "redacted",
        Params::Full => "full",
        Params::Digest => "digest",
    };
    let defaults = FleetSettings::default();
    FleetSettings {
        staleness_write_ms: millis(config.staleness.write),
        staleness_read_ms: millis(config.staleness.read),
        pin_tools: config.pin_tools,
        hide_denied_tools: config.hide_denied_tools,
        redact: config.traces.redact.clone(),
        params: params.to_owned(),
        approval_timeout_ms: millis(config.approval.timeout_seconds),
        approval_ttl_ms: millis(config.approval.ttl_seconds),
        approval_rest_hold_ms: millis(config.approval.rest_hold_seconds),
        approval_wait_ms: millis(config.approval.wait_seconds),
        approval_max_pending: config.approval.max_pending,
        loop_plain_reads: config.r#loop.max.unwrap_or(defaults.loop_plain_reads),
        loop_others: config.r#loop.max.unwrap_or(defaults.loop_others),
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("storage", &self.storage)
            .field("data_dir", &self.data_dir)
            .field("loopback_operators", &self.loopback_operators)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
