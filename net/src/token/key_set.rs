//! The public keys of an issuer.

use serde_json::Value;

use super::algorithm::Algorithm;
use super::json;
use super::key::Key;

/// Keys that are read of one set.
const MAX_KEYS: usize = 128;
/// Keys that are tried for a token which names none.
const MAX_TRIES: usize = 4;

/// The public keys of an issuer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeySet(Vec<Key>);

impl KeySet {
    /// Reads a JWKS. Keys of kinds that are not used here are left out.
    ///
    /// # Errors
    /// When it is none, or holds no usable key: then it must not replace one that does.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        let set = json::object(bytes).ok_or("it is not one JSON object, or has a key twice")?;
        let Some(Value::Array(keys)) = set.get("keys") else {
            return Err("it has no list \"keys\"");
        };
        let keys: Vec<Key> = keys
            .iter()
            .take(MAX_KEYS)
            .filter_map(Value::as_object)
            .filter_map(Key::read)
            .collect();
        if keys.is_empty() {
            return Err("it holds no RSA key from 2048 bits on, and none on P-256, P-384 or Ed25519");
        }
        Ok(Self(keys))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The keys that a token can be signed with: those of its key id; without an id a few that fit.
    pub(super) fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &Key> {
        self.0
            .iter()
            .filter(move |key| id.is_none_or(|id| key.id.as_deref() == Some(id)) && key.fits(algorithm))
            .take(MAX_TRIES)
    }

    /// Whether the key with this digest is among them.
    pub(super) fn holds(&self, digest: &[u8; 32]) -> bool {
        self.0.iter().any(|key| key.digest == *digest)
    }
}
