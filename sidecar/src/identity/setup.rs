//! From the configuration to what proves who calls.

use std::sync::Arc;

use config::model::{Auth, Jwt, ServiceAccounts};
use net::clock::Clock;
use net::outbound::Proxy;
use net::token::{Fetcher, Issuer, KeySource, Verifier};

use super::{Identities, Naming, Proofs};

/// Why callers cannot be identified as the configuration says.
#[derive(Debug, thiserror::Error)]
#[error("{section}.jwks_url cannot be used: {problem}")]
pub struct SetupError {
    section: &'static str,
    problem: String,
}

/// An issuer, how its tokens name agents, and what fetches its keys.
struct Source {
    issuer: Issuer,
    naming: Naming,
    fetcher: Fetcher,
}

impl Identities {
    /// As the configuration says. The fetchers have to be run: without them no token is verified.
    ///
    /// # Errors
    /// When the keys of a configured issuer can never be fetched.
    pub fn configured(
        self,
        auth: &Auth,
        proxy: Option<&Arc<Proxy>>,
        clock: &Clock,
    ) -> Result<(Self, Vec<Fetcher>), SetupError> {
        let jwt = auth.jwt.as_ref();
        let jwt = jwt.map(|jwt| provider(jwt, proxy.cloned(), clock)).transpose()?;
        let cluster = auth.service_accounts.as_ref();
        let cluster = cluster
            .map(|cluster| service_accounts(cluster, proxy.cloned(), clock))
            .transpose()?;
        let (mut issuers, mut namings, mut fetchers) = (Vec::new(), Vec::new(), Vec::new());
        for source in jwt.into_iter().chain(cluster) {
            issuers.push(source.issuer);
            namings.push(source.naming);
            fetchers.push(source.fetcher);
        }
        let verifier = (!issuers.is_empty()).then(|| Verifier::new(issuers).into());
        let allow_plain = auth.jwt.as_ref().is_none_or(|jwt| jwt.allow_legacy)
            && auth
                .service_accounts
                .as_ref()
                .is_none_or(|cluster| cluster.allow_legacy);
        let proofs = Proofs::new(verifier, namings, auth.agents.clone());
        Ok((self.with_proofs(proofs, allow_plain), fetchers))
    }
}

fn provider(jwt: &Jwt, proxy: Option<Arc<Proxy>>, clock: &Clock) -> Result<Source, SetupError> {
    let source = KeySource {
        url: jwt.jwks_url.clone(),
        ca_file: jwt.ca_cert.clone(),
        token_file: None,
        proxy,
    };
    let (keys, fetcher) = source.keys(clock).map_err(|problem| SetupError {
        section: "auth.jwt",
        problem,
    })?;
    Ok(Source {
        issuer: Issuer {
            name: jwt.issuer.clone(),
            audience: jwt.audience.clone(),
            keys,
        },
        naming: Naming::Claims {
            agent: jwt.agent_claim.clone(),
            user: jwt.user_claim.clone(),
        },
        fetcher,
    })
}

fn service_accounts(
    cluster: &ServiceAccounts,
    proxy: Option<Arc<Proxy>>,
    clock: &Clock,
) -> Result<Source, SetupError> {
    let source = match &cluster.jwks_url {
        Some(url) => KeySource {
            url: url.clone(),
            ca_file: cluster.ca_cert.clone(),
            token_file: cluster.token_file.clone(),
            proxy,
        },
        None => KeySource::cluster(),
    };
    let (keys, fetcher) = source.keys(clock).map_err(|problem| SetupError {
        section: "auth.service_accounts",
        problem,
    })?;
    Ok(Source {
        issuer: Issuer {
            name: cluster.issuer.clone(),
            audience: cluster.audience.clone(),
            keys,
        },
        naming: Naming::ServiceAccount,
        fetcher,
    })
}
