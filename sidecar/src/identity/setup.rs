//! From the configuration to what proves who calls.

use std::path::PathBuf;

use config::model::{Auth, Jwt, ServiceAccounts};
use net::clock::Clock;
use net::outbound::{Destination, Options, Outbound, OutboundError, Url};
use net::token::{Fetcher, Issuer, KeyOptions, Keys, Verifier};

use super::{Identities, Naming, Proofs};

/// The API server's key set, as pods reach it.
const CLUSTER_KEYS: &str = "https://kubernetes.default.svc/openid/v1/jwks";
/// What every pod has to reach the API server with.
const CLUSTER_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const CLUSTER_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

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
    pub fn configured(self, auth: &Auth, clock: &Clock) -> Result<(Self, Vec<Fetcher>), SetupError> {
        let jwt = auth.jwt.as_ref().map(|jwt| provider(jwt, clock)).transpose()?;
        let cluster = auth.service_accounts.as_ref();
        let cluster = cluster
            .map(|cluster| service_accounts(cluster, clock))
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

fn provider(jwt: &Jwt, clock: &Clock) -> Result<Source, SetupError> {
    let (keys, fetcher) = keys("auth.jwt", &jwt.jwks_url, jwt.ca_cert.clone(), None, clock)?;
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

fn service_accounts(cluster: &ServiceAccounts, clock: &Clock) -> Result<Source, SetupError> {
    let (url, ca_file, token_file) = match &cluster.jwks_url {
        Some(url) => (url.as_str(), cluster.ca_cert.clone(), cluster.token_file.clone()),
        None => (CLUSTER_KEYS, Some(CLUSTER_CA.into()), Some(CLUSTER_TOKEN.into())),
    };
    let (keys, fetcher) = keys("auth.service_accounts", url, ca_file, token_file, clock)?;
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

fn keys(
    section: &'static str,
    url: &str,
    ca_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    clock: &Clock,
) -> Result<(Keys, Fetcher), SetupError> {
    let unusable = |problem: String| SetupError { section, problem };
    let url: Url = url.parse().map_err(|_| unusable("it is not a URL".to_owned()))?;
    let refused = |error: OutboundError| unusable(error.to_string());
    Destination::Configured.check(&url).map_err(refused)?;
    if url.scheme() == "http" {
        tracing::warn!(
            section,
            "the keys of a token issuer are fetched without TLS: who can change that answer can be any agent"
        );
    }
    let client = Outbound::new(Options {
        ca_file,
        ..Options::new(Destination::Configured)
    })
    .map_err(refused)?;
    let options = KeyOptions {
        url,
        token_file,
        clock: clock.clone(),
    };
    Ok(Keys::new(options, client))
}
