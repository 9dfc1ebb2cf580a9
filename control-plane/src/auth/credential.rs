//! The credential of a sidecar: a short-lived signed token that carries its scope.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

const PREFIX: &str = "tgs1";
/// No honest token is longer.
const MAX_BYTES: usize = 16 * 1024;

/// What a sidecar may do, and until when. Everything it sends must lie inside this.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The sidecar's id.
    pub sidecar: String,
    /// The namespace that everything it sends belongs to.
    pub namespace: String,
    /// One process start of this sidecar.
    pub epoch: u64,
    /// Globs over the agents that it speaks for.
    pub agents: Vec<String>,
    /// Globs over the upstreams that it may publish.
    pub upstreams: Vec<String>,
    /// Unix microseconds by the database's clock.
    pub expires_at: i64,
}

/// Why a token opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Not a token of this kind, or its signature does not hold.
    #[error("the credential is not one that this control plane gave; enrol again")]
    Invalid,
    /// It was good once.
    #[error("the credential has expired; renew it, or enrol again")]
    Expired,
}

/// Signs `claims` under the key named `key_id`.
///
/// # Errors
/// Never for claims that this control plane made; an encoding failure is reported as [`CredentialError::Invalid`].
pub fn sign(claims: &Claims, key_id: &str, key: &[u8]) -> Result<String, CredentialError> {
    let body = serde_json::to_vec(claims).map_err(|_| CredentialError::Invalid)?;
    let signed = format!("{PREFIX}.{key_id}.{}", URL_SAFE_NO_PAD.encode(body));
    let mac = mac(&signed, key)?.finalize().into_bytes();
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac)))
}

/// The name of the key that a token says it is signed with; nothing is verified yet.
#[must_use]
pub fn key_id(token: &str) -> Option<&str> {
    let mut parts = token.split('.');
    (token.len() <= MAX_BYTES && parts.next() == Some(PREFIX))
        .then(|| parts.next())
        .flatten()
}

/// Verifies a token in constant time and reads its claims.
///
/// # Errors
/// When the signature does not hold, or `now` (Unix microseconds) is past its end.
pub fn verify(token: &str, key: &[u8], now: i64) -> Result<Claims, CredentialError> {
    if token.len() > MAX_BYTES {
        return Err(CredentialError::Invalid);
    }
    let (signed, tag) = token.rsplit_once('.').ok_or(CredentialError::Invalid)?;
    let tag = URL_SAFE_NO_PAD
        .decode(tag)
        .map_err(|_| CredentialError::Invalid)?;
    mac(signed, key)?
        .verify_slice(&tag)
        .map_err(|_| CredentialError::Invalid)?;
    let (_, body) = signed.rsplit_once('.').ok_or(CredentialError::Invalid)?;
    let body = URL_SAFE_NO_PAD
        .decode(body)
        .map_err(|_| CredentialError::Invalid)?;
    let claims: Claims = serde_json::from_slice(&body).map_err(|_| CredentialError::Invalid)?;
    if claims.expires_at <= now {
        return Err(CredentialError::Expired);
    }
    Ok(claims)
}

fn mac(signed: &str, key: &[u8]) -> Result<Hmac<Sha256>, CredentialError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| CredentialError::Invalid)?;
    mac.update(signed.as_bytes());
    Ok(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            sidecar: "s".into(),
            namespace: "default".into(),
            epoch: 3,
            agents: vec!["*".into()],
            upstreams: vec!["*".into()],
            expires_at: 1_000,
        }
    }

    #[test]
    fn a_token_opens_until_it_expires() {
        let token = sign(&claims(), "k1", b"key").unwrap();
        assert_eq!(key_id(&token), Some("k1"));
        assert_eq!(verify(&token, b"key", 999), Ok(claims()));
        assert_eq!(verify(&token, b"key", 1_000), Err(CredentialError::Expired));
    }

    #[test]
    fn a_changed_token_or_another_key_opens_nothing() {
        let token = sign(&claims(), "k1", b"key").unwrap();
        assert_eq!(verify(&token, b"other", 0), Err(CredentialError::Invalid));
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            // The last character of unpadded base64 may carry unused bits; those are refused by the decoder.
            assert_eq!(
                verify(&changed, b"key", 0),
                Err(CredentialError::Invalid),
                "at {at}"
            );
        }
    }
}
