//! Keys in use.

use ed25519_dalek::{Signer as _, SigningKey};
use proto::v1::PublicKey;

/// An Ed25519 signing key and its id.
pub struct Signer {
    id: String,
    key: SigningKey,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Signer({})", self.id)
    }
}

impl Signer {
    /// A signer from its 32 secret bytes.
    #[must_use]
    pub fn new(id: String, secret: &[u8; 32]) -> Self {
        Self {
            id,
            key: SigningKey::from_bytes(secret),
        }
    }

    /// The key's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The signing key itself.
    #[must_use]
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The signature of `text`.
    #[must_use]
    pub fn sign(&self, text: &[u8]) -> [u8; 64] {
        self.key.sign(text).to_bytes()
    }

    /// The public half, as sidecars and verifiers get it.
    #[must_use]
    pub fn public_key(&self, purpose: &str) -> PublicKey {
        PublicKey {
            id: self.id.clone(),
            purpose: purpose.to_owned(),
            ed25519: self.key.verifying_key().to_bytes().to_vec().into(),
        }
    }
}

/// A symmetric key and its id.
#[derive(Clone)]
pub struct Secret {
    /// The key's id.
    pub id: String,
    /// The secret bytes.
    pub key: [u8; 32],
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.id)
    }
}
