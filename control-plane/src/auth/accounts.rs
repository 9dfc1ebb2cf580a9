//! Sidecars in pods: enrolled by the projected token of their service account.

use net::clock::Clock;
use net::token::{Fetcher, Issuer, KeySource, ServiceAccount, TokenError, Verifier};
use policy::glob::Glob;

/// The cluster whose service accounts may enrol sidecars.
#[derive(Debug)]
pub struct Accounts {
    verifier: Verifier,
    accounts: Vec<Glob>,
    /// Globs of agents that such a sidecar may speak for.
    pub agents: Vec<String>,
}

/// How service accounts enrol.
#[derive(Debug, Clone)]
pub struct AccountOptions {
    /// What `iss` of a token must be.
    pub issuer: String,
    /// What `aud` must be or hold.
    pub audience: String,
    /// Where the cluster's keys are.
    pub keys: KeySource,
    /// Patterns of `<namespace>:<name>`.
    pub accounts: Vec<Glob>,
    /// Globs of agents that such a sidecar may speak for.
    pub agents: Vec<String>,
}

/// A pod that may enrol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its UID: the id of its sidecar.
    pub uid: String,
    /// Its namespace, which becomes the sidecar's.
    pub namespace: String,
    /// Its service account, for people.
    pub account: String,
}

/// Why a token enrols nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// It proves nothing.
    #[error("the service-account token is refused: {0}")]
    Token(#[from] TokenError),
    /// It is of no service account.
    #[error("the token's subject is not a service account")]
    NoAccount,
    /// It was not projected into a pod.
    #[error("the token is not bound to a pod; project it into the pod as a serviceAccountToken volume")]
    NoPod,
    /// The account may not enrol sidecars.
    #[error("the service account {0} may not enrol sidecars; see auth.sidecar_accounts.accounts")]
    NotAllowed(String),
}

impl Accounts {
    /// Verifies by the keys of a cluster, which the fetcher has to fetch.
    ///
    /// # Errors
    /// When its keys can never be fetched.
    pub fn new(options: AccountOptions, clock: &Clock) -> Result<(Self, Fetcher), String> {
        let (keys, fetcher) = options.keys.keys(clock)?;
        let issuer = Issuer {
            name: options.issuer,
            audience: options.audience,
            keys,
        };
        let accounts = Self {
            verifier: Verifier::new(vec![issuer]),
            accounts: options.accounts,
            agents: options.agents,
        };
        Ok((accounts, fetcher))
    }

    /// The pod that a token is of.
    ///
    /// # Errors
    /// When it proves none that may enrol.
    pub async fn pod(&self, token: &str) -> Result<Pod, AccountError> {
        let verified = self.verifier.verify(token).await?;
        let ServiceAccount { namespace, name, pod } =
            ServiceAccount::of(&verified.claims).ok_or(AccountError::NoAccount)?;
        let account = format!("{namespace}:{name}");
        if !self.accounts.iter().any(|glob| glob.matches(&account)) {
            return Err(AccountError::NotAllowed(account));
        }
        Ok(Pod {
            uid: pod.ok_or(AccountError::NoPod)?,
            namespace,
            account,
        })
    }
}
