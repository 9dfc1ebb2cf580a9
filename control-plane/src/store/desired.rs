//! Desired state: policies, pins, grants and settings, under one order of revisions.
//!
//! Every change runs in one transaction that locks `revision`, writes the row, appends to `changes`, notifies and commits, so
//! revisions commit in their order and a reader of `changes` never sees a later one before an earlier one.

use async_trait::async_trait;
use bytes::Bytes;
use proto::{body, v1};

use super::{
    error::StoreResult,
    types::{Act, Micros, Revision},
};

/// The whole desired state at one revision.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredView {
    /// Of the last change that is in it.
    pub revision: Revision,
    /// The database's clock at the read.
    pub database_time: Micros,
    /// Sorted by (type, name) bytewise.
    pub resources: Vec<v1::Resource>,
}

/// What one revision changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The revision that the change made.
    pub revision: Revision,
    /// When it committed, nearly.
    pub at: Micros,
    /// Who made it.
    pub by: String,
    /// The resources that it touched.
    pub resources: Vec<ChangedResource>,
}

/// A resource that a revision changed or removed.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedResource {
    /// `policy`, `pin`, `grant`, `setting`.
    pub kind: String,
    /// Unique within the kind.
    pub name: String,
    /// The resource as it is at this revision; `None`: removed.
    pub resource: Option<v1::Resource>,
    /// Globs of agents that the resource had before, so that a receiver that leaves its scope is told. Empty: it was not there.
    pub agents_before: Vec<String>,
    /// Globs of namespaces that it had before.
    pub namespaces_before: Vec<String>,
}

/// Where a policy document came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyOrigin {
    /// The configuration's `policies:`, by position.
    Inline {
        /// Position in the list.
        index: u32,
    },
    /// A file of `policy_dir`.
    Directory {
        /// File name.
        file: String,
        /// Position of the document in the file.
        index: u32,
    },
    /// The API.
    Api,
}

/// The three kinds of [`PolicyOrigin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginKind {
    /// The configuration.
    Inline,
    /// The policy directory.
    Directory,
    /// The API.
    Api,
}

impl PolicyOrigin {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> OriginKind {
        match self {
            Self::Inline { .. } => OriginKind::Inline,
            Self::Directory { .. } => OriginKind::Directory,
            Self::Api => OriginKind::Api,
        }
    }
}

/// A policy document to be stored. It has been validated by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDraft {
    /// Unique in the installation.
    pub name: String,
    /// The document as it was written.
    pub text: String,
    /// The sent form (JSON of `policy::Policy`).
    pub body: Bytes,
    /// Globs of the agents it is for.
    pub agents: Vec<String>,
    /// Globs of the namespaces it applies in; `["*"]` where it says none.
    pub namespaces: Vec<String>,
    /// Where it came from.
    pub origin: PolicyOrigin,
    /// Why the newest text of its file is not in force, if so.
    pub problem: Option<String>,
}

/// A stored policy document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// What was stored.
    pub document: PolicyDraft,
    /// From 1, per name, also over a deletion.
    pub version: u64,
    /// Of its last change.
    pub revision: Revision,
    /// When.
    pub updated_at: Micros,
    /// By whom.
    pub updated_by: String,
}

/// One entry of a policy's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVersion {
    /// The row as it was.
    pub row: PolicyRow,
    /// This version is the deletion of the policy; the document is the one deleted.
    pub deleted: bool,
}

/// What the caller of a change believes to be there (`If-Match`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Anything.
    Any,
    /// Nothing of that name.
    Absent,
    /// Exactly this version.
    Version(u64),
}

/// What a whole-set change did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The head after it; unchanged when nothing differed.
    pub revision: Revision,
    /// Names that were written.
    pub changed: Vec<String>,
    /// Names that were removed.
    pub removed: Vec<String>,
}

/// A grant to be made. Its id and its end are made by the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantDraft {
    /// Namespace that it holds in.
    pub namespace: String,
    /// Glob over agents.
    pub agent: String,
    /// Globs over tools.
    pub tools: Vec<String>,
    /// How long, from the database's now.
    pub duration: std::time::Duration,
    /// Why, if said.
    pub reason: Option<String>,
    /// The proven identity of who granted.
    pub granted_by: String,
}

/// A live grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRow {
    /// What is sent to sidecars.
    pub grant: body::Grant,
    /// Why, if said.
    pub reason: Option<String>,
    /// Who granted.
    pub granted_by: String,
    /// When.
    pub created_at: Micros,
    /// Set while a stop that matches it holds: its time does not run.
    pub suspended_at: Option<Micros>,
    /// Of its last change.
    pub revision: Revision,
}

/// A setting that the fleet shares.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingRow {
    /// `fleet` is the one that sidecars know.
    pub key: String,
    /// JSON.
    pub body: serde_json::Value,
    /// From 1.
    pub version: u64,
    /// Of its last change.
    pub revision: Revision,
    /// When.
    pub updated_at: Micros,
    /// By whom.
    pub updated_by: String,
}

/// Desired state as a whole: reading it in the order of revisions.
#[async_trait]
pub trait DesiredState: Send + Sync {
    /// All resources and the revision that they are at, from one consistent read.
    async fn desired_state(&self) -> StoreResult<DesiredView>;

    /// At most `limit` revisions after `after`, in order, each whole. [`ChangesGone`](super::StoreError::ChangesGone) when `after` is
    /// of another generation, beyond the head, or before what is kept.
    async fn changes_after(&self, after: Revision, limit: u32) -> StoreResult<Vec<Change>>;

    /// When a revision of the current generation committed. `None`: not (yet) there.
    async fn committed_at(&self, revision: Revision) -> StoreResult<Option<Micros>>;

    /// Starts a new generation, because commits may have been lost or because an operator says so: everybody re-syncs in full,
    /// approved but unconsumed approvals become `cancelled`, the chain's `seq` restarts and its first record (this act) links the head
    /// that is here, and through it the last checkpoint.
    ///
    /// `seen` is the generation in which the caller saw the reason; when another caller has begun a later one in between, nothing
    /// happens and the present head is returned.
    async fn begin_generation(&self, seen: u64, reason: &str, by: &str) -> StoreResult<Revision>;
}

/// Policy documents and their history.
#[async_trait]
pub trait Policies: Send + Sync {
    /// All, by name.
    async fn policies(&self) -> StoreResult<Vec<PolicyRow>>;

    /// One by its name.
    async fn policy(&self, name: &str) -> StoreResult<PolicyRow>;

    /// Its versions, newest first, also of a deleted one.
    async fn policy_versions(&self, name: &str, limit: u32) -> StoreResult<Vec<PolicyVersion>>;

    /// Creates or replaces one. [`Precondition`](super::StoreError::Precondition) when `expected` does not hold,
    /// [`Conflict`](super::StoreError::Conflict) when the name is held by a document of another origin. A document equal to the stored
    /// one changes nothing and takes no revision.
    async fn put_policy(&self, draft: PolicyDraft, expected: Expected, act: Act) -> StoreResult<PolicyRow>;

    /// Removes one; answers with the revision that did.
    async fn delete_policy(&self, name: &str, expected: Expected, act: Act) -> StoreResult<Revision>;

    /// Writes an earlier version as the newest one.
    async fn rollback_policy(
        &self,
        name: &str,
        version: u64,
        expected: Expected,
        act: Act,
    ) -> StoreResult<PolicyRow>;

    /// Makes the documents of one origin be exactly these, as one revision. Equal ones are left as they are; when nothing differs, no
    /// revision is taken and no record is written.
    async fn apply_policies(
        &self,
        origin: OriginKind,
        drafts: Vec<PolicyDraft>,
        act: Act,
    ) -> StoreResult<Applied>;
}

/// Grants and settings.
#[async_trait]
pub trait GrantsAndSettings: Send + Sync {
    /// Makes a grant.
    async fn create_grant(&self, draft: GrantDraft, act: Act) -> StoreResult<GrantRow>;

    /// Ends a grant by its id or a unique prefix.
    async fn revoke_grant(&self, id: &str, act: Act) -> StoreResult<GrantRow>;

    /// The live ones, newest first; of one namespace, or of all.
    async fn grants(&self, namespace: Option<&str>) -> StoreResult<Vec<GrantRow>>;

    /// Removes grants whose end has passed by the database's clock, as one revision. Answers how many.
    async fn sweep_grants(&self) -> StoreResult<u64>;

    /// One setting.
    async fn setting(&self, key: &str) -> StoreResult<Option<SettingRow>>;

    /// Writes one setting; an equal body changes nothing and takes no revision.
    async fn put_setting(
        &self,
        key: &str,
        body: serde_json::Value,
        expected: Expected,
        act: Act,
    ) -> StoreResult<SettingRow>;
}
