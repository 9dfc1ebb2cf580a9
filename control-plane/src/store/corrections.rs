//! What operators corrected about tools: desired state like pins, under the same order of revisions.

use async_trait::async_trait;

use super::{
    desired::Expected,
    error::StoreResult,
    types::{Act, Micros, Revision},
};

/// A correction to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrectionDraft {
    /// Namespace of the sidecars that publish the tool.
    pub namespace: String,
    /// Full name.
    pub tool: String,
    /// Upstream that declares it.
    pub upstream: String,
    /// Of the declaration that the operator saw.
    pub fingerprint: [u8; 32],
    /// What the operator said, whole; an empty object takes the correction away.
    pub said: serde_json::Value,
    /// What sidecars apply of it.
    pub sent: serde_json::Value,
}

/// A stored correction.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrectionRow {
    /// What was stored.
    pub correction: CorrectionDraft,
    /// From 1 while there is one; 0: it was taken away.
    pub version: u64,
    /// Of its last change.
    pub revision: Revision,
    /// When.
    pub updated_at: Micros,
    /// By whom.
    pub updated_by: String,
}

/// Corrections of tools.
#[async_trait]
pub trait Corrections: Send + Sync {
    /// Those of a namespace (or of all), by namespace and tool.
    async fn corrections(&self, namespace: Option<&str>) -> StoreResult<Vec<CorrectionRow>>;

    /// Writes the correction of one tool. [`Precondition`](super::StoreError::Precondition) when `expected` does not hold. One equal to
    /// the stored one changes nothing and takes no revision.
    async fn put_correction(
        &self,
        draft: CorrectionDraft,
        expected: Expected,
        act: Act,
    ) -> StoreResult<CorrectionRow>;
}
