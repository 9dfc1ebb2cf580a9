//! From the configuration to what each room is told.

use std::sync::Arc;

use config::Config;
use config::model::{Outbound, Params, Prefix, Separator, Sync};
use net::clock::Clock;
use net::outbound::{Proxy, ProxyOptions};
use policy::glob::Glob;

use crate::agent::caller::ProtectedResource;
use crate::agent::names::Names;
use crate::agent::state::Limits;
use crate::control::redact::ParamsMode;
use crate::control::{self, JoinProof, Link};
use crate::gate::LocalRules;
use crate::spool::{self, SyncMode};
use crate::upstream::SourceSpec;

/// Where the control plane is.
pub(crate) fn link(config: &Config) -> Option<Link> {
    Some(Link::Url {
        url: config.control_plane.url.clone()?,
        ca_file: config.control_plane.ca_cert.clone(),
    })
}

/// What the sidecar enrols by.
pub(crate) fn join(config: &Config) -> Option<JoinProof> {
    let link = &config.control_plane;
    let account = link
        .service_account_file
        .clone()
        .map(JoinProof::ServiceAccountFile);
    account.or_else(|| link.token_file.clone().map(JoinProof::TokenFile))
}

/// The link.
pub(crate) fn control(
    config: &Config,
    link: Link,
    join: Option<JoinProof>,
    clock: &Clock,
) -> control::Options {
    let mut options = control::Options::new(link, config.spool_dir());
    options.join = join;
    options.name = config.sidecar.name.clone().unwrap_or_else(host_name);
    options.labels.clone_from(&config.sidecar.labels);
    options.agents = agents_to_ask_for(&config.sidecar.agents);
    options.upstreams = config.upstream_names().map(|name| name.to_string()).collect();
    options.clock = clock.clone();
    options
}

/// Every agent means: as many as the join token allows, which the control plane is asked for by naming none.
fn agents_to_ask_for(configured: &[Glob]) -> Vec<String> {
    if configured.iter().any(|glob| glob.as_str() == "*") {
        return Vec::new();
    }
    configured.iter().map(|glob| glob.as_str().to_owned()).collect()
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "sidecar".to_owned(), |name| name.trim().to_owned())
}

/// The queue of records.
pub(crate) fn spool(config: &Config, clock: &Clock) -> spool::Options {
    let mut options = spool::Options::new(config.spool_dir());
    options.sync = match config.spool.sync {
        Sync::Auto => SyncMode::Auto,
        Sync::Process => SyncMode::Process,
        Sync::Disk => SyncMode::Disk,
    };
    options.max_bytes = config.spool.max_bytes;
    options.clock = clock.clone();
    options
}

/// The upstreams.
pub(crate) fn upstreams(config: &Config) -> Vec<SourceSpec> {
    SourceSpec::all_of(config)
}

/// The proxy of what the configuration names.
pub(crate) fn proxy(outbound: &Outbound) -> Option<Arc<Proxy>> {
    let proxy = outbound.proxy.as_ref()?;
    Some(Arc::new(Proxy::new(ProxyOptions {
        host: proxy.host.clone(),
        port: proxy.port,
        login: proxy.login.pair(),
        direct_names: outbound.direct_names(),
        direct_networks: outbound.direct_networks(),
    })))
}

/// Bounds of what agents send.
pub(crate) fn limits(config: &Config) -> Limits {
    Limits {
        message_bytes: config.limits.message_bytes,
        argument_bytes: config.limits.argument_bytes,
        argument_depth: config.limits.depth,
    }
}

/// Where agents get tokens. The cluster gives its pods tokens without being asked.
pub(crate) fn protected_resource(config: &Config) -> ProtectedResource {
    let jwt = config.auth.jwt.as_ref();
    ProtectedResource {
        issuers: jwt.iter().map(|jwt| jwt.issuer.clone()).collect(),
        url: jwt.and_then(|jwt| jwt.resource_url.clone()),
        is_tls: config.tls.cert_file.is_some(),
    }
}

/// How tools are named towards agents.
pub(crate) fn names(config: &Config) -> Names {
    let separator = match config.expose.separator {
        Separator::Dot => ".",
        Separator::Underscores => "__",
    };
    let unprefixed = match (config.expose.prefix, config.mcp_servers.first()) {
        (Prefix::Never, Some(only)) => Some(only.name.to_string()),
        (Prefix::Never, None) | (Prefix::Always, _) => None,
    };
    Names {
        separator: separator.to_owned(),
        unprefixed,
    }
}

/// What is stricter here than in the fleet.
pub(crate) fn local_rules(config: &Config) -> LocalRules {
    LocalRules {
        loop_max: config.r#loop.max,
        hide_denied_tools: config.hide_denied_tools,
        params: match config.traces.params {
            Params::Full => ParamsMode::Full,
            Params::Redacted => ParamsMode::Redacted,
            Params::Digest => ParamsMode::Digest,
        },
        redact: config.traces.redact.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_means_all_of_the_join_tokens_and_names_narrow_it() {
        let globs =
            |texts: &[&str]| -> Vec<Glob> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        assert!(agents_to_ask_for(&globs(&["*"])).is_empty());
        assert_eq!(
            agents_to_ask_for(&globs(&["support-*", "billing"])),
            ["support-*", "billing"]
        );
    }
}
