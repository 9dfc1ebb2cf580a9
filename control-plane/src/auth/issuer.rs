//! Operators by tokens of an identity provider.

use std::sync::Arc;

use net::clock::Clock;
use net::problem::Problem;
use net::token::{Issuer, KeySource, TokenError, Verifier};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::operators::is_reserved;
use super::role::Right;

/// Values of a claim that are looked at.
const MOST_VALUES: usize = 1_000;

/// Whose tokens prove operators, and what they may do.
#[derive(Clone, Debug)]
pub struct IssuerOptions {
    /// Where the issuer's keys are.
    pub keys: KeySource,
    /// What `iss` must be.
    pub issuer: String,
    /// What `aud` must be or hold: nothing that agents' tokens are for.
    pub audience: String,
    /// The claim under whose text acts are kept.
    pub name_claim: String,
    /// The claim whose values give rights.
    pub role_claim: String,
    /// What each value gives.
    pub roles: Vec<(String, Right)>,
}

/// The keys of an identity provider can never be fetched.
#[derive(Debug, thiserror::Error)]
#[error("auth.operators.jwks_url cannot be used: {0}")]
pub struct IssuerError(String);

/// The identity provider of operators.
#[derive(Debug)]
pub struct OperatorIssuer {
    verifier: Verifier,
    options: IssuerOptions,
}

/// What a token proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proven {
    pub(super) name: String,
    pub(super) rights: Arc<[Right]>,
}

impl OperatorIssuer {
    /// Begins to fetch the keys; the task ends with `shutdown`.
    ///
    /// # Errors
    /// The address cannot be used. A provider that is not there is no error: it is tried again and again.
    pub fn start(
        options: IssuerOptions,
        clock: &Clock,
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Result<Self, IssuerError> {
        let (keys, fetcher) = options.keys.clone().keys(clock).map_err(IssuerError)?;
        tasks.spawn(fetcher.run(shutdown.clone()));
        let issuer = Issuer {
            name: options.issuer.clone(),
            audience: options.audience.clone(),
            keys,
        };
        Ok(Self {
            verifier: Verifier::new(vec![issuer]),
            options,
        })
    }

    /// What is proven of a token's bearer.
    ///
    /// # Errors
    /// 401 for a token that proves nothing, 403 for one that gives no right, 503 while the provider's keys are not known.
    pub(super) async fn prove(&self, token: &str) -> Result<Proven, Problem> {
        let verified = self.verifier.verify(token).await.map_err(|error| match error {
            TokenError::NotReady => Problem::unavailable(error.to_string()),
            error => Problem::unauthenticated(error.to_string()),
        })?;
        let claims = verified.claims;
        let name = claims
            .text(&self.options.name_claim)
            .map_err(|error| Problem::unauthenticated(error.to_string()))?;
        if name.len() > 256 || name.chars().any(char::is_control) {
            return Err(Problem::unauthenticated(
                "the token's name is longer than 256 bytes or holds control characters",
            ));
        }
        if is_reserved(name) {
            return Err(Problem::forbidden(format!(
                "the token's claim {:?} is {name:?}, a name that no operator can bear here",
                self.options.name_claim
            )));
        }
        let rights = self.rights(claims.get(&self.options.role_claim));
        if rights.is_empty() {
            return Err(Problem::forbidden(format!(
                "the token's claim {:?} gives no role here",
                self.options.role_claim
            )));
        }
        Ok(Proven {
            name: name.to_owned(),
            rights: rights.into(),
        })
    }

    fn rights(&self, claim: Option<&Value>) -> Vec<Right> {
        let values: Vec<&str> = match claim {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several
                .iter()
                .take(MOST_VALUES)
                .filter_map(Value::as_str)
                .collect(),
            Some(_) | None => Vec::new(),
        };
        let given = self
            .options
            .roles
            .iter()
            .filter(|(value, _)| values.contains(&value.as_str()));
        given.map(|(_, right)| right.clone()).collect()
    }

    /// How the record names what was proven.
    pub(super) fn name(&self) -> &str {
        &self.options.issuer
    }
}
