//! Keys at rest: rows that the store cannot read, since they are sealed under the master key.

use async_trait::async_trait;

use super::{
    error::StoreResult,
    types::{Act, Micros},
};

/// A sealed key.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedKey {
    /// Unique; named wherever the key was used.
    pub id: String,
    /// `checkpoint`, `snapshot`, `credential`, `digest:<namespace>`, …
    pub purpose: String,
    /// Ciphertext with its nonce.
    pub sealed: Vec<u8>,
    /// What is public of it (a public key), in clear.
    pub public: Vec<u8>,
}

impl std::fmt::Debug for SealedKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SealedKey")
            .field("id", &self.id)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

/// A stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// The key.
    pub key: SealedKey,
    /// When it was made.
    pub created_at: Micros,
    /// Since when it makes nothing new; `None`: it is the active one of its purpose.
    pub retired_at: Option<Micros>,
}

/// Keys.
#[async_trait]
pub trait Keys: Send + Sync {
    /// The active key of the candidate's purpose; the candidate itself when there was none. Several replicas that start at once agree
    /// on one.
    async fn ensure_key(&self, candidate: SealedKey) -> StoreResult<KeyRow>;

    /// Makes the new key the active one of its purpose and retires the one before.
    async fn rotate_key(&self, new: SealedKey, act: Act) -> StoreResult<KeyRow>;

    /// All of one purpose, or of every purpose, newest first.
    async fn keys(&self, purpose: Option<&str>) -> StoreResult<Vec<KeyRow>>;
}
