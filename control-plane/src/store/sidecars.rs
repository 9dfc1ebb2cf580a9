//! Sidecars: join tokens, identities, epochs, what they say of themselves, and how far each has come.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;

use super::{
    error::StoreResult,
    types::{Act, Micros, Revision},
};

/// A join token to be made. The token itself never reaches the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinTokenDraft {
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// For people.
    pub label: String,
    /// Namespace of the sidecars that enrol with it.
    pub namespace: String,
    /// Globs of agents that they may speak for.
    pub agents: Vec<String>,
    /// Globs of upstreams that they may publish.
    pub upstreams: Vec<String>,
    /// How long it can be used; `None`: without end.
    pub lifetime: Option<Duration>,
    /// How often it can be used; `None`: any number of times.
    pub uses: Option<u32>,
    /// Who made it.
    pub created_by: String,
}

/// A join token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// Random hex; not the token.
    pub id: String,
    /// For people.
    pub label: String,
    /// Namespace of the sidecars that enrol with it.
    pub namespace: String,
    /// Globs of agents.
    pub agents: Vec<String>,
    /// Globs of upstreams.
    pub upstreams: Vec<String>,
    /// When it was made.
    pub created_at: Micros,
    /// By whom.
    pub created_by: String,
    /// When it ends.
    pub expires_at: Option<Micros>,
    /// Uses left; `None`: any number.
    pub uses_left: Option<u32>,
}

/// What a sidecar says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SidecarFacts {
    /// For people.
    pub name: String,
    /// For people.
    pub labels: BTreeMap<String, String>,
    /// Version of its program.
    pub version: String,
    /// Contract version that is spoken.
    pub contract: u32,
}

/// An enrolment by join token. The caller has checked that agents and upstreams lie inside the token's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redemption {
    /// SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// The id to give; `None`: random.
    pub sidecar_id: Option<String>,
    /// SHA-256 of the renewal secret that the caller made.
    pub renewal_hash: [u8; 32],
    /// Globs of agents that it may speak for.
    pub agents: Vec<String>,
    /// Globs of upstreams that it may publish.
    pub upstreams: Vec<String>,
    /// What it says of itself.
    pub facts: SidecarFacts,
}

/// The next process of an id that enrolled before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// Sidecar id.
    pub sidecar_id: String,
    /// SHA-256 of the renewal secret; it stays.
    pub renewal_hash: [u8; 32],
    /// SHA-256 of another join token, whose scope becomes the sidecar's; `None`: the scope stays.
    pub token_hash: Option<[u8; 32]>,
    /// Globs of agents that this process may speak for. The caller has checked that they lie inside the scope.
    pub agents: Vec<String>,
    /// Globs of upstreams that this process may publish, checked likewise.
    pub upstreams: Vec<String>,
    /// What it says of itself.
    pub facts: SidecarFacts,
}

/// What a join token allows the sidecars that enrolled with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarScope {
    /// Globs of agents.
    pub agents: Vec<String>,
    /// Globs of upstreams.
    pub upstreams: Vec<String>,
}

/// A new epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// The sidecar, at its new epoch.
    pub sidecar: Sidecar,
    /// Its earlier epochs that are not closed, oldest first.
    pub open_epochs: Vec<EpochMark>,
    /// The database's clock.
    pub database_time: Micros,
}

/// A sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidecar {
    /// Chosen by the server.
    pub id: String,
    /// Its tenant.
    pub namespace: String,
    /// What it says of itself.
    pub facts: SidecarFacts,
    /// Globs of agents that its present process may speak for.
    pub agents: Vec<String>,
    /// Globs of upstreams that its present process may publish.
    pub upstreams: Vec<String>,
    /// What a later process may ask for.
    pub scope: SidecarScope,
    /// The present one; earlier ones have ended.
    pub epoch: u64,
    /// When the id was made.
    pub enrolled_at: Micros,
    /// When and by whom it was revoked: a tombstone.
    pub revoked: Option<(Micros, String)>,
    /// Newest heartbeat; 0: none yet.
    pub last_seen: Micros,
    /// By its newest heartbeat.
    pub heartbeat: SidecarHeartbeat,
    /// By its newest ACK or NACK; `None`: none yet.
    pub ack: Option<SidecarAck>,
    /// When that came.
    pub acked_at: Micros,
}

/// What a heartbeat says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidecarHeartbeat {
    /// Age of the lease in force.
    pub lease_age_ms: u64,
    /// Highest record number in the spool.
    pub high_water: u64,
    /// Calls under way without a record.
    pub open_intents: u32,
    /// Newest stop sequence in force.
    pub stop_sequence: u64,
}

/// Which view is in force on a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarAck {
    /// Revision of the view.
    pub revision: Revision,
    /// From receipt to being in force.
    pub apply_us: u64,
    /// Resources that it could not decode; their agents are denied there.
    pub rejected: Vec<RejectedResource>,
}

/// A resource that a sidecar could not decode.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RejectedResource {
    /// Type of the resource.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The sidecar's words.
    pub reason: String,
}

/// What came in from one sidecar since the last batch; newest only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarReport {
    /// Sidecar id.
    pub sidecar: String,
    /// Its epoch; reports of an older one are ignored.
    pub epoch: u64,
    /// Its newest heartbeat.
    pub heartbeat: Option<SidecarHeartbeat>,
    /// Its newest ACK or NACK.
    pub ack: Option<SidecarAck>,
}

/// How far the records of an epoch have come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochMark {
    /// Sidecar id.
    pub sidecar: String,
    /// Epoch.
    pub epoch: u64,
    /// Every record up to it is in the chain.
    pub committed: u64,
    /// Every record up to it is covered by a checkpoint.
    pub settled: u64,
    /// Generation that both speak of.
    pub generation: u64,
    /// No further number will come.
    pub closed: bool,
}

/// A new epoch or a revocation, for the streams of other replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarEvent {
    /// Position in the feed, without gaps.
    pub sequence: u64,
    /// Sidecar id.
    pub sidecar: String,
    /// Its present epoch: streams of older ones end.
    pub epoch: u64,
    /// It was revoked: all its streams end.
    pub revoked: bool,
}

/// How far a revision has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// The revision asked about.
    pub revision: Revision,
    /// When it committed; `None`: not in this generation, or no longer kept.
    pub committed_at: Option<Micros>,
    /// The database's clock.
    pub database_time: Micros,
    /// Every sidecar that is not revoked, with its newest ACK.
    pub sidecars: Vec<Sidecar>,
}

impl Rollout {
    /// Does the sidecar run this revision or a later one?
    #[must_use]
    pub fn applied(&self, sidecar: &Sidecar) -> bool {
        sidecar
            .ack
            .as_ref()
            .is_some_and(|ack| ack.revision >= self.revision)
    }
}

/// Sidecars.
#[async_trait]
pub trait Sidecars: Send + Sync {
    /// Makes a join token.
    async fn create_join_token(&self, draft: JoinTokenDraft, act: Act) -> StoreResult<JoinToken>;

    /// Those that can still be used, newest first.
    async fn join_tokens(&self) -> StoreResult<Vec<JoinToken>>;

    /// The usable token of this hash, so that its scope can be compared with what is asked. Refusals as in [`Sidecars::redeem`].
    async fn join_token(&self, hash: [u8; 32]) -> StoreResult<JoinToken>;

    /// Ends a join token by its id.
    async fn revoke_join_token(&self, id: &str, act: Act) -> StoreResult<()>;

    /// Uses a join token: a new sidecar id at epoch 1, or one that was given and never heard of, anew. Refused with
    /// [`Enrolment`](super::StoreError::Enrolment), and with a conflict for an id that was heard of or revoked.
    async fn redeem(&self, redemption: Redemption) -> StoreResult<Enrolled>;

    /// The next epoch of a known id. Refused with [`Enrolment`](super::StoreError::Enrolment).
    async fn resume(&self, resumption: Resumption) -> StoreResult<Enrolled>;

    /// Is this still the present epoch of an id with this secret? For renewals; refused as in [`Sidecars::resume`], and with `StaleEpoch`.
    async fn check_renewal(
        &self,
        sidecar_id: &str,
        epoch: u64,
        renewal_hash: [u8; 32],
    ) -> StoreResult<Sidecar>;

    /// One by its id, tombstones included.
    async fn sidecar(&self, id: &str) -> StoreResult<Sidecar>;

    /// All, by name and id; of one namespace, or of all.
    async fn sidecars(&self, namespace: Option<&str>) -> StoreResult<Vec<Sidecar>>;

    /// Revokes an id for good.
    async fn revoke_sidecar(&self, id: &str, act: Act) -> StoreResult<Sidecar>;

    /// Events after `sequence`, in order.
    async fn sidecar_events_after(&self, sequence: u64, limit: u32) -> StoreResult<Vec<SidecarEvent>>;

    /// Writes what sidecars said, in one statement per table. Several for one sidecar: the last wins.
    async fn report_sidecars(&self, reports: Vec<SidecarReport>) -> StoreResult<()>;

    /// How far a revision has come.
    async fn rollout(&self, revision: Revision) -> StoreResult<Rollout>;

    /// The marks of these epochs of a sidecar; those that it does not have are left out.
    async fn epoch_marks(&self, sidecar: &str, epochs: Vec<u64>) -> StoreResult<Vec<EpochMark>>;

    /// The marks of every epoch that is not closed or not settled, of these sidecars: what live streams announce.
    async fn open_marks(&self, sidecars: Vec<String>) -> StoreResult<Vec<EpochMark>>;

    /// No number after `last` will come. [`Hole`](super::StoreError::Hole) when records up to `last` are missing.
    async fn close_epoch(&self, sidecar: &str, epoch: u64, last: u64) -> StoreResult<EpochMark>;
}
