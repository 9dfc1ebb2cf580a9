//! The tables of the configuration. Field names are the keys of the file; the comments are the reference.

mod auth;
mod cli;
mod governance;
mod network;
mod openapi;
mod operators;
mod planes;
mod upstreams;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use policy::document::{Lists as PolicyLists, Policy};
use tools::id::UpstreamName;

pub use auth::{Auth, Jwt, ServiceAccounts, SidecarAccounts};
pub use cli::{CliCommand, CliTool};
pub use governance::{
    Approval, ApprovalChannel, Expose, FirstUse, Grants, Limits, Loop, Params, Pins, Prefix, Separator,
    Traces,
};
pub use network::{Credentials, Drain, Listen, Outbound, Tls};
pub use openapi::{OpenApiService, named_by_file, named_by_url};
pub use operators::{OperatorRole, Operators, RoleName};
pub use planes::{ControlPlane, Sidecar, Spool, Staleness, Sync};
pub use upstreams::{McpServer, ServerRequest, Transport};

use crate::schema::{DatabaseUrl, Keys, Lists, Policies, StateFolder, VariableOnly, Whole, section};
use crate::{RedisUrl, Secret};

/// Environment variables that set a key beside the one that is derived from its name.
pub(crate) const ALIASES: [(&str, &str); 4] = [
    ("auth.admin_token", "TOOLGATE_ADMIN_TOKEN"),
    ("auth.admin_token", "MESH_ADMIN_TOKEN"),
    ("control_plane.url", "TOOLGATE_CONTROL_URL"),
    ("trace_key", "MESH_TRACE_KEY"),
];

section! {
    /// One YAML file configures all programs; each uses its part.
    Config as "the configuration" {
        /// Port on which agents are served, on 127.0.0.1 unless `listen.agent` says otherwise. `toolgate up`
        /// serves operators there too.
        port: u16 as Whole<u16, 0, 65535> = "9090",
        /// Addresses to serve on.
        listen: Listen,
        /// TLS on every listener.
        tls: Tls,
        /// The way of outbound requests.
        outbound: Outbound,
        /// Who may call what.
        auth: Auth,
        /// The MCP servers whose tools are governed.
        mcp_servers: Vec<McpServer>,
        /// The services whose operations are tools.
        openapi: Vec<OpenApiService>,
        /// The command-line programs whose commands are governed tools.
        cli_tools: Vec<CliTool>,
        /// How tools are named towards agents.
        expose: Expose,
        /// Policies, in the order in which they are loaded.
        policies: Vec<Policy> as Policies,
        /// Folder whose `*.yaml` and `*.yml` files are policies, loaded by name after `policies`.
        policy_dir: Option<PathBuf>,
        /// Named lists of patterns, used as `@name` in the selectors of policies.
        lists: PolicyLists as Lists,
        /// Whether new and changed tools of a known upstream are held back until somebody accepts them.
        pin_tools: bool = "false",
        /// How pinning begins.
        pins: Pins,
        /// Whether tools that no call could get past the policies are left out of `tools/list`.
        hide_denied_tools: bool = "false",
        /// Questions to people.
        approval: Approval,
        /// Rights for a while.
        grants: Grants,
        /// Bounds of what is accepted.
        limits: Limits,
        /// Repeated calls.
        r#loop: Loop,
        /// What records hold, and how they are sealed.
        traces: Traces,
        /// Folder for what the program keeps. Default: `$XDG_STATE_HOME/toolgate`, else
        /// `~/.local/state/toolgate`.
        data_dir: PathBuf as StateFolder,
        /// SQLite file of the embedded store. Default: `state.db` in `data_dir`.
        storage_path: Option<PathBuf>,
        /// Postgres, instead of the embedded store. May hold a password: better set by its variable.
        database_url: Option<Secret> as Option<DatabaseUrl>,
        /// Redis or Valkey, which counts the minutes of `rate_limit` for several control planes: `redis://`,
        /// `redis-sentinel://` or `redis-cluster://`, with `rediss…` for TLS (docs/limits.md). Without it Postgres
        /// counts them, or memory where the store is embedded. May hold a password: better set by its variable.
        redis_url: Option<RedisUrl>,
        /// Certificate authority of Redis in PEM form. Default: the public roots.
        redis_ca_cert: Option<PathBuf>,
        /// Where a sidecar finds its control plane.
        control_plane: ControlPlane,
        /// What a sidecar is.
        sidecar: Sidecar,
        /// How long a sidecar goes on without its control plane.
        staleness: Staleness,
        /// The queue of records on a sidecar.
        spool: Spool,
        /// The credentials that sidecars get.
        credentials: Credentials,
        /// The end of a process.
        drain: Drain,
        /// Key under which the control plane's keys are encrypted in the database: 32 bytes in hex or base64.
        master_key: Option<Secret> as VariableOnly,
        /// File that holds the master key, for secrets that are mounted. Default: made in `data_dir` by
        /// `toolgate up`.
        master_key_file: Option<PathBuf>,
        /// Key of the chain's HMAC. Without it records are linked, not sealed.
        trace_key: Option<Secret> as VariableOnly,
    }
    planned {
        "supervisor", "memory", "trace_file", "otel_endpoint",
        "otel_headers", "otel_ca_cert", "otel_insecure_skip_verify",
    }
    check fits_together
}

fn fits_together(config: &Config, keys: &Keys<'_, '_>) {
    let mut names = BTreeSet::new();
    let servers = config
        .mcp_servers
        .iter()
        .map(|server| ("mcp_servers", server.name.clone()));
    let services = config
        .openapi
        .iter()
        .map(|service| ("openapi", service.upstream()));
    let programs = config
        .cli_tools
        .iter()
        .map(|tool| ("cli_tools", tool.name.clone()));
    for (key, name) in servers.chain(services).chain(programs) {
        if names.contains(&name) {
            let message = format!("the name \"{name}\" is given to two upstreams; names are unique");
            keys.problem(Some(key), message);
        }
        names.insert(name);
    }
    if config.expose.prefix == Prefix::Never && !config.openapi.is_empty() {
        keys.problem(
            Some("expose"),
            "expose.prefix: never and openapi exclude each other: the tools of both could have one name"
                .to_owned(),
        );
    }
    if config.expose.prefix == Prefix::Never && config.mcp_servers.len() + config.cli_tools.len() > 1 {
        keys.problem(
            Some("expose"),
            "expose.prefix: never needs exactly one MCP server, and no other upstream".to_owned(),
        );
    }
    if config.storage_path.is_some() && config.database_url.is_some() {
        let message = "storage_path and database_url exclude each other; keep one of them";
        keys.problem(Some("storage_path"), message.to_owned());
    }
    if config.redis_ca_cert.is_some() && !config.redis_url.as_ref().is_some_and(|redis| redis.is_tls) {
        let message =
            "redis_ca_cert needs a redis_url by TLS: rediss://, rediss-sentinel:// or rediss-cluster://";
        keys.problem(Some("redis_ca_cert"), message.to_owned());
    }
    if config.master_key.is_some() && config.master_key_file.is_some() {
        let message = "master_key_file and TOOLGATE_MASTER_KEY exclude each other; keep one of them";
        keys.problem(Some("master_key_file"), message.to_owned());
    }
}

impl Config {
    /// Where agents are served.
    pub fn agent_address(&self) -> SocketAddr {
        self.listen
            .agent
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
    }

    /// The names of all upstreams, of every kind.
    pub fn upstream_names(&self) -> impl Iterator<Item = UpstreamName> {
        let servers = self.mcp_servers.iter().map(|server| server.name.clone());
        let services = self.openapi.iter().map(OpenApiService::upstream);
        let programs = self.cli_tools.iter().map(|tool| tool.name.clone());
        servers.chain(services).chain(programs)
    }

    /// The folder of the last good documents of OpenAPI services.
    pub fn documents_dir(&self) -> PathBuf {
        self.data_dir.join("openapi")
    }

    /// The embedded store's file.
    pub fn storage_path(&self) -> PathBuf {
        self.storage_path
            .clone()
            .unwrap_or_else(|| self.data_dir.join("state.db"))
    }

    /// The folder of a sidecar's spool.
    pub fn spool_dir(&self) -> PathBuf {
        self.spool
            .dir
            .clone()
            .unwrap_or_else(|| self.data_dir.join("spool"))
    }
}
