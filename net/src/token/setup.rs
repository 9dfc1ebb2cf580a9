//! An issuer's keys, as a configuration names them.

use std::path::PathBuf;
use std::sync::Arc;

use url::Url;

use super::keys::{Fetcher, KeyOptions, Keys};
use crate::clock::Clock;
use crate::outbound::{Destination, Options, Outbound, OutboundError, Proxy};

/// The API server's key set, as pods reach it.
const CLUSTER_KEYS: &str = "https://kubernetes.default.svc/openid/v1/jwks";
/// What every pod has to reach the API server with.
const CLUSTER_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const CLUSTER_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Where a configuration says that keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySource {
    /// The key set's address.
    pub url: String,
    /// The certificate authority to trust there instead of the public roots.
    pub ca_file: Option<PathBuf>,
    /// File with a bearer token to show there.
    pub token_file: Option<PathBuf>,
    /// The proxy on the way there.
    pub proxy: Option<Arc<Proxy>>,
}

impl KeySource {
    /// The cluster that this process runs in, by the authority and the token of its own pod.
    pub fn cluster() -> Self {
        Self {
            url: CLUSTER_KEYS.to_owned(),
            ca_file: Some(CLUSTER_CA.into()),
            token_file: Some(CLUSTER_TOKEN.into()),
            // Every pod reaches it.
            proxy: None,
        }
    }

    /// The keys, and what fetches them: an operator named the address, so it may lie inside the network.
    ///
    /// # Errors
    /// When they can never be fetched: the address is refused, or the authority's file cannot be used.
    pub fn keys(self, clock: &Clock) -> Result<(Keys, Fetcher), String> {
        let refused = |error: OutboundError| error.to_string();
        let url: Url = self.url.parse().map_err(|_| "it is not a URL".to_owned())?;
        Destination::Configured.check(&url).map_err(refused)?;
        if url.scheme() == "http" {
            tracing::warn!(
                host = url.host_str(),
                "the keys of a token issuer are fetched without TLS: who can change that answer can be anybody"
            );
        }
        let mut connecting = Options::new(Destination::Configured)
            .trusting(self.ca_file.as_deref())
            .map_err(refused)?;
        connecting.proxy = self.proxy;
        let client = Outbound::new(connecting).map_err(refused)?;
        let options = KeyOptions {
            url,
            token_file: self.token_file,
            clock: clock.clone(),
        };
        Ok(Keys::new(options, client))
    }
}
