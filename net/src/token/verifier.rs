//! Tokens into claims.

use std::sync::Arc;

use quick_cache::sync::Cache;
use ring::digest;

use super::claims::Claims;
use super::error::TokenError;
use super::jws::{Jws, MAX_TOKEN_BYTES};
use super::keys::{KeyState, Keys};

/// How far the clocks of issuers and this machine may differ, in seconds.
const LEEWAY: f64 = 30.0;
/// Verified tokens that are remembered.
const REMEMBERED: usize = 2048;

/// An issuer that is trusted for one audience.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// What `iss` must be, exactly.
    pub name: String,
    /// What `aud` must be or hold.
    pub audience: String,
    /// Its keys.
    pub keys: Keys,
}

/// What a token proved.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Which of the verifier's issuers it is of.
    pub issuer: usize,
    /// What it says.
    pub claims: Arc<Claims>,
}

/// Verifies the tokens of some issuers. A token that was verified is remembered by its digest until it expires, or its key is
/// withdrawn.
#[derive(Debug)]
pub struct Verifier {
    issuers: Vec<Issuer>,
    remembered: Cache<[u8; 32], Remembered>,
}

#[derive(Debug, Clone)]
struct Remembered {
    verified: Verified,
    key: [u8; 32],
}

impl Verifier {
    /// A verifier of these issuers' tokens.
    pub fn new(issuers: Vec<Issuer>) -> Self {
        Self {
            issuers,
            remembered: Cache::new(REMEMBERED),
        }
    }

    /// What is known of the keys of each issuer that has none yet, by its name.
    pub fn missing_keys(&self) -> Vec<(&str, KeyState)> {
        self.issuers
            .iter()
            .map(|issuer| (issuer.name.as_str(), issuer.keys.state()))
            .filter(|(_, state)| state.keys.is_none())
            .collect()
    }

    /// What a token proves that was verified before: without waiting for anything. `None`: it was not, or is not remembered.
    pub fn recall(&self, token: &str) -> Option<Result<Verified, TokenError>> {
        if token.len() > MAX_TOKEN_BYTES {
            return Some(Err(TokenError::TooLong));
        }
        let digest = digest_of(token);
        let known = self.remembered.get(&digest)?;
        let issuer = self.issuers.get(known.verified.issuer)?;
        let holds = issuer.keys.current().is_some_and(|keys| keys.holds(&known.key));
        let in_time = issuer.check_time(&known.verified.claims);
        if !holds || in_time.is_err() {
            self.remembered.remove(&digest);
        }
        match in_time {
            Ok(()) if holds => Some(Ok(known.verified)),
            Ok(()) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// What a token proves. Waits for the issuer's keys where they do not have the token's.
    ///
    /// # Errors
    /// When it proves nothing.
    pub async fn verify(&self, token: &str) -> Result<Verified, TokenError> {
        if let Some(recalled) = self.recall(token) {
            return recalled;
        }
        let jws = Jws::read(token)?;
        let claims = Claims::read(&jws.claims)?;
        let (index, issuer) = self.issuer_of(&claims)?;
        issuer.check_time(&claims)?;
        let key = match issuer.key_of(&jws) {
            Err(TokenError::UnknownKey | TokenError::NotReady) => {
                issuer.keys.refresh().await;
                issuer.key_of(&jws)?
            }
            found => found?,
        };
        let verified = Verified {
            issuer: index,
            claims: Arc::new(claims),
        };
        let remembered = Remembered {
            verified: verified.clone(),
            key,
        };
        self.remembered.insert(digest_of(token), remembered);
        Ok(verified)
    }

    fn issuer_of(&self, claims: &Claims) -> Result<(usize, &Issuer), TokenError> {
        let mut of_this_name = self
            .issuers
            .iter()
            .enumerate()
            .filter(|(_, issuer)| issuer.name == claims.issuer())
            .peekable();
        if of_this_name.peek().is_none() {
            return Err(TokenError::Issuer);
        }
        of_this_name
            .find(|(_, issuer)| claims.is_for(&issuer.audience))
            .ok_or(TokenError::Audience)
    }
}

impl Issuer {
    /// The digest of the key that the token is signed with.
    fn key_of(&self, jws: &Jws<'_>) -> Result<[u8; 32], TokenError> {
        let keys = self.keys.current().ok_or(TokenError::NotReady)?;
        let mut is_known = false;
        for key in keys.candidates(jws.key_id.as_deref(), jws.algorithm) {
            is_known = true;
            if key.verifies(jws.algorithm, jws.signed, &jws.signature) {
                return Ok(key.digest);
            }
        }
        Err(if is_known {
            TokenError::Signature
        } else {
            TokenError::UnknownKey
        })
    }

    fn check_time(&self, claims: &Claims) -> Result<(), TokenError> {
        let micros = self.keys.clock().wall_micros();
        #[allow(
            clippy::cast_precision_loss,
            reason = "microseconds of this millennium fit a double"
        )]
        claims.check_time(micros as f64 / 1e6, LEEWAY)
    }
}

fn digest_of(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
    bytes
}
