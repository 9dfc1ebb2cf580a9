//! The trace chain at rest: ingest, checkpoints, reading.

use async_trait::async_trait;
use bytes::Bytes;
use chain::{hash::Hash, payload::payload_digest, record::SourceRecord};

use super::{
    error::{StoreError, StoreResult},
    sidecars::EpochMark,
    types::{Act, Micros},
};

/// Sidecar id under which the control plane's own acts stand in the chain.
pub const OWN_SOURCE: &str = "control-plane";

/// A record as its source sent it, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct IncomingRecord {
    /// Number within the epoch.
    pub n: u64,
    /// The exact text of the source record.
    pub source: String,
    /// What it means.
    pub record: SourceRecord,
    /// The exact text of the payload; `None`: none came.
    pub payload: Option<String>,
}

impl IncomingRecord {
    /// Reads what a source sent: canonical text, the number that it was sent under, a payload that has the digest stated in the record.
    /// Empty payload: none.
    pub fn decode(n: u64, source: Bytes, payload: Bytes) -> StoreResult<Self> {
        let invalid = |reason: String| StoreError::Invalid {
            what: "record",
            reason,
        };
        let record = SourceRecord::decode(&source).map_err(|error| invalid(error.to_string()))?;
        let source = String::from_utf8(source.into()).map_err(|error| invalid(error.to_string()))?;
        if record.n != Some(n) {
            return Err(invalid(format!(
                "the record sent as number {n} says that it is {:?}",
                record.n
            )));
        }
        let payload = match payload.len() {
            0 => None,
            _ => Some(String::from_utf8(payload.into()).map_err(|error| invalid(error.to_string()))?),
        };
        if let Some(text) = &payload {
            let digest = payload_digest(text).map_err(|error| invalid(error.to_string()))?;
            if record.payload_digest != Some(digest) {
                return Err(invalid(format!(
                    "the payload of number {n} has not the digest that the record states"
                )));
            }
        }
        Ok(Self {
            n,
            source,
            record,
            payload,
        })
    }
}

/// What a source sent under one number and what is not accepted: a record of the control plane's stands for it in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRecord {
    /// Number within the epoch.
    pub n: u64,
    /// SHA-256 of what came: the source's next record links it.
    pub link: Hash,
    /// The tenant of the source.
    pub namespace: String,
    /// Why.
    pub reason: String,
}

/// One number of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A record, accepted.
    Record(Box<IncomingRecord>),
    /// Something that is not.
    Refused(RefusedRecord),
}

impl Incoming {
    /// Number within the epoch.
    #[must_use]
    pub fn n(&self) -> u64 {
        match self {
            Self::Record(record) => record.n,
            Self::Refused(refused) => refused.n,
        }
    }

    /// What the source's next record links.
    #[must_use]
    pub fn link(&self) -> Hash {
        match self {
            Self::Record(record) => Hash::of(&[record.source.as_bytes()]),
            Self::Refused(refused) => refused.link,
        }
    }
}

impl From<IncomingRecord> for Incoming {
    fn from(record: IncomingRecord) -> Self {
        Self::Record(Box::new(record))
    }
}

/// Records of one epoch, numbers ascending without holes.
#[derive(Clone, Debug, PartialEq)]
pub struct IngestBatch {
    /// Sidecar id.
    pub sidecar: String,
    /// Its epoch.
    pub epoch: u64,
    /// The records, and what stands between them.
    pub records: Vec<Incoming>,
}

/// A position in the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainPosition {
    /// Generation.
    pub generation: u64,
    /// Number within the generation, from 1; 0: before the first.
    pub seq: u64,
}

/// The newest end of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// Where it is.
    pub at: ChainPosition,
    /// Hash of the record there; of a generation without records: what its first record links.
    pub hash: [u8; 32],
    /// The database's clock.
    pub database_time: Micros,
}

/// A record of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Where it stands.
    pub at: ChainPosition,
    /// Id of the call, decision or act.
    pub id: String,
    /// Of the header, as the source said.
    pub time: Micros,
    /// The exact text that is hashed.
    pub header: String,
    /// The exact text of the payload; `None`: there was none, or it was erased.
    pub payload: Option<String>,
    /// Its link.
    pub hash: [u8; 32],
    /// HMAC of the link, if the chain has a key.
    pub mac: Option<[u8; 32]>,
    /// Id of that key, or empty.
    pub key_id: String,
}

/// Which records to list. Everything empty: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Literal.
    pub namespace: Option<String>,
    /// Literal.
    pub agent: Option<String>,
    /// Literal.
    pub user: Option<String>,
    /// Literal.
    pub session: Option<String>,
    /// Glob.
    pub tool: Option<String>,
    /// Literal.
    pub upstream: Option<String>,
    /// `allow`, `human_approval`, `deny`.
    pub action: Option<String>,
    /// `ok`, `error`, `denied`, …
    pub outcome: Option<String>,
    /// Gravest risk, by name.
    pub risk: Option<String>,
    /// `call`, `decision`, `act`.
    pub kind: Option<String>,
    /// Time at or after.
    pub since: Option<Micros>,
    /// Time before.
    pub until: Option<Micros>,
    /// Text that header or payload contains, without regard to case.
    pub text: Option<String>,
    /// Only before this position (paging).
    pub before: Option<ChainPosition>,
    /// At most so many; 0: 100.
    pub limit: u32,
}

/// The calls of one agent conversation, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Session id.
    pub session: String,
    /// Its agent.
    pub agent: String,
    /// Its user, or empty.
    pub user: String,
    /// Its namespace.
    pub namespace: String,
    /// How many records.
    pub records: u64,
    /// Time of the first.
    pub first_seen: Micros,
    /// Time of the last.
    pub last_seen: Micros,
    /// Tools that were called, sorted.
    pub tools: Vec<String>,
}

/// A signed statement of the chain's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    /// What it states.
    pub at: ChainPosition,
    /// Hash of the record there.
    pub hash: [u8; 32],
    /// When it was made.
    pub time: Micros,
    /// The exact signed text.
    pub text: String,
    /// Ed25519.
    pub signature: Vec<u8>,
    /// Id of the key.
    pub key_id: String,
}

/// Records that are not in the chain, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Namespace of the sidecar.
    pub namespace: String,
    /// Sidecar id.
    pub sidecar: String,
    /// Epoch.
    pub epoch: u64,
    /// What is missing.
    pub kind: GapKind,
    /// When it was seen.
    pub seen_at: Micros,
}

/// What is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// Numbers that a restore lost and that the source no longer has, both inclusive.
    Lost {
        /// First.
        from: u64,
        /// Last.
        to: u64,
    },
    /// The epoch has ended (a newer one runs, or the id is revoked) and is not closed: what its spool held has not come.
    NotClosed {
        /// Last number in the chain.
        committed: u64,
        /// Last number that a heartbeat spoke of.
        high_water: u64,
        /// Calls that were under way then.
        open_intents: u32,
    },
}

/// The trace chain.
#[async_trait]
pub trait Records: Send + Sync {
    /// Puts records into the chain, exactly once: what is at or below an epoch's watermark is dropped. All or nothing; the answer holds
    /// the marks of the epochs named, and may be given to their sidecars, since it is committed.
    ///
    /// [`Hole`](super::StoreError::Hole) when a batch does not continue its epoch. After a generation change (a restore), the first
    /// batch of an epoch may skip numbers: they become a [`GapKind::Lost`].
    async fn ingest(&self, batches: Vec<IngestBatch>) -> StoreResult<Vec<EpochMark>>;

    /// Writes one act of the control plane.
    async fn append_act(&self, act: Act) -> StoreResult<ChainPosition>;

    /// The newest end.
    async fn chain_head(&self) -> StoreResult<ChainHead>;

    /// Newest first.
    async fn records(&self, filter: RecordFilter) -> StoreResult<Vec<StoredRecord>>;

    /// One by its id or W3C trace id, or a unique prefix of the id. Of several with the trace id: the newest.
    async fn record(&self, id: &str) -> StoreResult<StoredRecord>;

    /// At most `limit` records after a position, in chain order across generations.
    async fn records_after(&self, after: ChainPosition, limit: u32) -> StoreResult<Vec<StoredRecord>>;

    /// Newest first.
    async fn sessions(&self, namespace: Option<&str>, limit: u32) -> StoreResult<Vec<SessionRow>>;

    /// What is missing.
    async fn gaps(&self) -> StoreResult<Vec<Gap>>;

    /// Keeps a checkpoint, and settles the records that it covers. [`Fork`](super::StoreError::Fork) when it is behind the last one of its
    /// generation, or its hash is not the record's. Repeating it changes nothing.
    async fn insert_checkpoint(&self, checkpoint: CheckpointRow) -> StoreResult<()>;

    /// The newest `limit`, newest first.
    async fn checkpoints(&self, limit: u32) -> StoreResult<Vec<CheckpointRow>>;

    /// Removes a record's payload for good; the act is its record.
    async fn erase_payload(&self, id: &str, act: Act) -> StoreResult<()>;
}
