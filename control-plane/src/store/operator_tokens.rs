//! Tokens of operators: for people and pipelines that have no identity provider.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    error::StoreResult,
    types::{Act, Micros},
};

/// A token to be made.
#[derive(Clone, Debug)]
pub struct OperatorTokenDraft {
    /// Hash of the token itself, which is not kept.
    pub hash: [u8; 32],
    /// Whose it is: acts are kept under this name.
    pub name: String,
    /// Name of the role.
    pub role: String,
    /// Namespaces that it is confined to; none: all.
    pub namespaces: Vec<String>,
    /// How long it opens anything.
    pub lifetime: Duration,
    /// Who makes it.
    pub created_by: String,
}

/// A token, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorToken {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub name: String,
    /// Name of the role.
    pub role: String,
    /// Namespaces that it is confined to; none: all.
    pub namespaces: Vec<String>,
    /// When it was made.
    pub created_at: Micros,
    /// Who made it.
    pub created_by: String,
    /// When it opens nothing any more.
    pub expires_at: Micros,
}

/// Tokens of operators.
#[async_trait]
pub trait OperatorTokens: Send + Sync {
    /// Makes one.
    async fn create_operator_token(&self, draft: OperatorTokenDraft, act: Act) -> StoreResult<OperatorToken>;

    /// Those that still open something, newest first.
    async fn operator_tokens(&self) -> StoreResult<Vec<OperatorToken>>;

    /// The one of this hash, if it still opens something.
    async fn operator_token(&self, hash: [u8; 32]) -> StoreResult<Option<OperatorToken>>;

    /// Ends one by its id.
    async fn revoke_operator_token(&self, id: &str, act: Act) -> StoreResult<()>;
}
