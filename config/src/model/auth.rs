//! Who may call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use policy::glob::Glob;
use tools::id::AgentId;

use super::Operators;
use crate::Secret;
use crate::schema::{ClaimPath, HttpUrl, Keys, section};

section! {
    /// Who may call what. Agents are never asked for the operator's token.
    Auth as "auth" {
        /// The operator's bearer token. Without it one is made at first start and kept in `data_dir`.
        admin_token: Option<Secret>,
        /// Whether every caller on this machine is an operator. For a machine with one user.
        loopback_operators: bool = "false",
        /// Whether agents without a credential get 401 instead of being `anonymous`.
        require_authentication: bool = "false",
        /// Tokens of an identity provider, by which agents prove who they are.
        jwt: Option<Jwt>,
        /// Tokens of Kubernetes service accounts, by which agents in pods prove who they are.
        service_accounts: Option<ServiceAccounts>,
        /// Tokens of Kubernetes service accounts, by which sidecars in pods enrol without a join token.
        sidecar_accounts: Option<SidecarAccounts>,
        /// The agents that proven names stand for, where an agent is not called by its token's or certificate's own
        /// name: `system:serviceaccount:prod:billing: billing`.
        agents: BTreeMap<String, AgentId>,
        /// Operators by an identity provider.
        operators: Option<Operators>,
    }
    check audiences_differ
}

/// A token for agents must open no operator path, enrol no sidecar and name one agent; one that enrols sidecars must open no
/// operator path.
fn audiences_differ(auth: &Auth, keys: &Keys<'_, '_>) {
    let jwt = auth.jwt.as_ref();
    let jwt = jwt.map(|jwt| ("auth.jwt", "an agent", &jwt.issuer, &jwt.audience));
    let agents = auth.service_accounts.as_ref();
    let agents = agents.map(|of| ("auth.service_accounts", "an agent", &of.issuer, &of.audience));
    let sidecars = auth.sidecar_accounts.as_ref();
    let sidecars = sidecars.map(|of| ("auth.sidecar_accounts", "a sidecar", &of.issuer, &of.audience));
    if let (Some((_, _, issuer, audience)), Some((_, _, of, held))) = (jwt, agents)
        && (issuer, audience) == (of, held)
    {
        let message =
            "auth.service_accounts.audience must not be that of auth.jwt: one token could name two agents";
        keys.problem(Some("service_accounts"), message.to_owned());
    }
    let agents = jwt.into_iter().chain(agents);
    if let Some(operators) = &auth.operators {
        for (section, whose, issuer, audience) in agents.clone().chain(sidecars) {
            if *issuer == operators.issuer && *audience == operators.audience {
                let message = format!(
                    "auth.operators.audience must not be that of {section}: {whose}'s token would be an operator's"
                );
                keys.problem(Some("operators"), message);
            }
        }
    }
    if let Some((_, _, issuer, audience)) = sidecars {
        for (section, ..) in agents.filter(|(_, _, of, held)| *of == issuer && *held == audience) {
            let message = format!(
                "auth.sidecar_accounts.audience must not be that of {section}: an agent's token could enrol a sidecar"
            );
            keys.problem(Some("sidecar_accounts"), message);
        }
    }
}

section! {
    /// An identity provider whose tokens (JWTs) identify agents. With it a plain `Bearer agent:<id>` is refused.
    Jwt as "auth.jwt" {
        /// Where the provider publishes its keys (a JWKS). Read at the start, every 5 minutes, and when a token names
        /// a key that is not known.
        jwks_url: String as HttpUrl,
        /// What a token's `iss` must be.
        issuer: String,
        /// What a token's `aud` must be or hold.
        audience: String,
        /// The claim that names the agent; names of nested claims are joined by dots.
        agent_claim: String = "sub",
        /// The claim that names the human whom the agent acts for. Empty: none is named.
        user_claim: Option<String> as ClaimPath = "",
        /// Whether a plain `Bearer agent:<id>` is taken beside tokens, as `asserted`.
        allow_legacy: bool = "false",
        /// Certificate authority of `jwks_url` in PEM form. Default: the public roots.
        ca_cert: Option<PathBuf>,
        /// The address under which agents reach this server, such as `https://tools.example.com`, for what tells them
        /// where to get a token (RFC 9728). Default: the host that they called.
        resource_url: Option<String> as Option<HttpUrl>,
    }
    check provider_is_sound
}

fn provider_is_sound(jwt: &Jwt, keys: &Keys<'_, '_>) {
    authority_has_a_use("auth.jwt", &jwt.jwks_url, jwt.ca_cert.as_ref(), keys);
}

section! {
    /// The cluster whose service-account tokens identify agents, as `system:serviceaccount:<namespace>:<name>`. With it a
    /// plain `Bearer agent:<id>` is refused.
    ServiceAccounts as "auth.service_accounts" {
        /// What a token's `iss` must be: the cluster's issuer.
        issuer: String = "https://kubernetes.default.svc.cluster.local",
        /// What a token's `aud` must be or hold: the audience that the pod projects the agent's token for. It must not
        /// be the one that sidecars enrol with.
        audience: String = "toolgate-agent",
        /// Where the cluster publishes its keys. Default: the API server, with the authority and token of this pod.
        jwks_url: Option<String> as Option<HttpUrl>,
        /// Certificate authority of `jwks_url` in PEM form. Default: the public roots.
        ca_cert: Option<PathBuf>,
        /// File with a bearer token to show at `jwks_url`.
        token_file: Option<PathBuf>,
        /// Whether a plain `Bearer agent:<id>` is taken beside tokens, as `asserted`.
        allow_legacy: bool = "false",
    }
    check cluster_is_sound
}

fn cluster_is_sound(cluster: &ServiceAccounts, keys: &Keys<'_, '_>) {
    if cluster.audience == "toolgate" {
        let message =
            "auth.service_accounts.audience must not be \"toolgate\": an agent's token could enrol a sidecar";
        keys.problem(Some("audience"), message.to_owned());
    }
    cluster_keys_fit(
        "auth.service_accounts",
        cluster.jwks_url.as_deref(),
        cluster.ca_cert.as_ref(),
        keys,
    );
}

section! {
    /// The cluster whose service-account tokens enrol sidecars: each with the UID of its pod as its id, in the namespace of
    /// that name. The control plane reads it.
    SidecarAccounts as "auth.sidecar_accounts" {
        /// What a token's `iss` must be: the cluster's issuer.
        issuer: String = "https://kubernetes.default.svc.cluster.local",
        /// What a token's `aud` must be or hold: the audience that the sidecar's token is projected for.
        audience: String = "toolgate",
        /// Where the cluster publishes its keys. Default: the API server, with the authority and token of this pod.
        jwks_url: Option<String> as Option<HttpUrl>,
        /// Certificate authority of `jwks_url` in PEM form. Default: the public roots.
        ca_cert: Option<PathBuf>,
        /// File with a bearer token to show at `jwks_url`.
        token_file: Option<PathBuf>,
        /// Patterns of the service accounts that may enrol a sidecar, as `<namespace>:<name>`.
        accounts: Vec<Glob>,
        /// Patterns of the agents that such a sidecar may speak for, within its namespace.
        agents: Vec<Glob> = "*",
    }
    check enrolment_is_sound
}

fn enrolment_is_sound(cluster: &SidecarAccounts, keys: &Keys<'_, '_>) {
    if cluster.audience == "toolgate-agent" {
        let message = "auth.sidecar_accounts.audience must not be \"toolgate-agent\": that is what agents' tokens are for, and one could enrol a sidecar";
        keys.problem(Some("audience"), message.to_owned());
    }
    if cluster.accounts.is_empty() {
        let message = "auth.sidecar_accounts needs the key \"accounts\": patterns such as \"prod:*\"";
        keys.problem(None, message.to_owned());
    }
    cluster_keys_fit(
        "auth.sidecar_accounts",
        cluster.jwks_url.as_deref(),
        cluster.ca_cert.as_ref(),
        keys,
    );
}

fn cluster_keys_fit(section: &str, url: Option<&str>, ca_cert: Option<&PathBuf>, keys: &Keys<'_, '_>) {
    if let Some(url) = url {
        return authority_has_a_use(section, url, ca_cert, keys);
    }
    for key in ["ca_cert", "token_file"].into_iter().filter(|key| keys.has(key)) {
        keys.problem(Some(key), format!("{section}.{key} needs jwks_url too"));
    }
}

pub(super) fn authority_has_a_use(section: &str, url: &str, ca_cert: Option<&PathBuf>, keys: &Keys<'_, '_>) {
    if ca_cert.is_some() && url.starts_with("http://") {
        keys.problem(
            Some("ca_cert"),
            format!("{section}.ca_cert needs a jwks_url that starts with https://"),
        );
    }
}
