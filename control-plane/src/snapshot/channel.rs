//! What the sidecars of one scope receive: the present state, the last changes, and their shared encoded bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use prost::Message as _;
use proto::v1::watch_response::Message;
use proto::v1::{Delta, Full, ResourceSet, StateProof, WatchResponse};
use proto::view::{signed_text, view_digest};
use tokio::sync::watch;

use super::entry::{Entry, Key};
use super::scope::{Filter, Scope};
use crate::keys::Signer;
use crate::store::Revision;

/// A receiver further behind than this many changes is cut.
const RING_STEPS: usize = 1_024;
/// A receiver further behind than this many encoded bytes is cut.
const RING_BYTES: usize = 16 * 1024 * 1024;
const ZSTD_LEVEL: i32 = 3;

/// One change of a scope's state, encoded once for all its receivers.
#[derive(Debug)]
pub struct Step {
    /// The state it applies on.
    pub from: Revision,
    /// The state it leads to.
    pub to: Revision,
    /// An encoded `WatchResponse`.
    pub bytes: Bytes,
    digest_before: [u8; 32],
}

/// The whole state at one revision, encoded once for all receivers.
#[derive(Debug)]
pub struct Image {
    /// The state's revision.
    pub revision: Revision,
    /// An encoded `WatchResponse`.
    pub bytes: Bytes,
}

/// What a receiver that holds some state needs next.
#[derive(Debug)]
pub enum Next {
    /// It holds the present state.
    Nothing,
    /// These changes, in this order.
    Steps(Vec<Arc<Step>>),
    /// The whole state: what it holds is of another generation, unknown, or out of reach of the kept changes.
    Full,
}

#[derive(Debug)]
struct State {
    revision: Revision,
    digest: [u8; 32],
    entries: Vec<Arc<Entry>>,
    ring: VecDeque<Arc<Step>>,
    ring_bytes: usize,
    image: Option<Arc<Image>>,
}

/// The state of one scope and the wake-up of its receivers.
#[derive(Debug)]
pub struct Channel {
    scope_id: String,
    filter: Filter,
    state: Mutex<State>,
    head: watch::Sender<Revision>,
}

impl Channel {
    /// A channel over those of `entries` (sorted) that the scope admits.
    #[must_use]
    pub fn new<'a>(
        scope: &Scope,
        filter: Filter,
        revision: Revision,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
    ) -> Self {
        let entries: Vec<_> = entries
            .filter(|entry| filter.admits(entry.reach()))
            .cloned()
            .collect();
        let state = State {
            revision,
            digest: view_digest(entries.iter().map(|entry| entry.digest())),
            entries,
            ring: VecDeque::new(),
            ring_bytes: 0,
            image: None,
        };
        Self {
            scope_id: scope.id(),
            filter,
            state: Mutex::new(state),
            head: watch::Sender::new(revision),
        }
    }

    /// Wakes at every new state.
    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.head.subscribe()
    }

    /// The revision of the present state.
    pub fn revision(&self) -> Revision {
        self.lock().revision
    }

    /// The image of the present state, where it is made already.
    pub fn image(&self) -> Option<Arc<Image>> {
        self.lock().image.clone()
    }

    /// Whether changes kept here lead on from the state that a receiver says it holds.
    pub fn knows(&self, held: Revision, digest: &[u8]) -> bool {
        let state = self.lock();
        if held == state.revision {
            return digest == state.digest;
        }
        state
            .ring
            .iter()
            .any(|step| step.from == held && digest == step.digest_before)
    }

    /// What a receiver that holds the state at `held` needs next.
    pub fn after(&self, held: Revision) -> Next {
        let state = self.lock();
        if held == state.revision {
            return Next::Nothing;
        }
        match state.ring.iter().position(|step| step.from == held) {
            Some(at) => Next::Steps(state.ring.iter().skip(at).cloned().collect()),
            None => Next::Full,
        }
    }

    /// Takes the changes up to `to`; those outside the scope only move its revision.
    pub(super) fn advance(&self, to: Revision, changes: &[Change], signer: &Signer) {
        let mut state = self.lock();
        let mut delta = Delta {
            from: Some(state.revision.into()),
            to: Some(to.into()),
            ..Delta::default()
        };
        for change in changes {
            let key = change.key();
            let found = state.entries.binary_search_by(|entry| entry.order(&key));
            match (
                change.entry().filter(|entry| self.filter.admits(entry.reach())),
                found,
            ) {
                (Some(entry), found) => {
                    delta.changed.push(entry.resource().clone());
                    match found {
                        Ok(at) => {
                            if let Some(slot) = state.entries.get_mut(at) {
                                *slot = Arc::clone(entry);
                            }
                        }
                        Err(at) => state.entries.insert(at, Arc::clone(entry)),
                    }
                }
                (None, Ok(at)) => {
                    state.entries.remove(at);
                    delta.removed.push(Entry::name(&key));
                }
                (None, Err(_)) => {}
            }
        }
        let digest_before = state.digest;
        if !delta.changed.is_empty() || !delta.removed.is_empty() {
            state.digest = view_digest(state.entries.iter().map(|entry| entry.digest()));
        }
        delta.proof = Some(self.proof(to, &state.digest, signer));
        let step = Step {
            from: state.revision,
            to,
            bytes: encode(Message::Delta(delta)),
            digest_before,
        };
        state.revision = to;
        state.image = None;
        state.keep(step);
        drop(state);
        self.head.send_replace(to);
    }

    /// Replaces the state whole; kept changes no longer lead anywhere.
    pub(super) fn reset<'a>(&self, revision: Revision, entries: impl Iterator<Item = &'a Arc<Entry>>) {
        let entries: Vec<_> = entries
            .filter(|entry| self.filter.admits(entry.reach()))
            .cloned()
            .collect();
        let mut state = self.lock();
        state.digest = view_digest(entries.iter().map(|entry| entry.digest()));
        state.entries = entries;
        state.revision = revision;
        state.ring.clear();
        state.ring_bytes = 0;
        state.image = None;
        drop(state);
        self.head.send_replace(revision);
    }

    /// Makes the image of the present state: compresses, so it does not belong on a thread that serves others.
    ///
    /// # Errors
    /// When compression fails.
    pub(super) fn make_image(&self, signer: &Signer) -> std::io::Result<Arc<Image>> {
        let (revision, digest, entries) = {
            let state = self.lock();
            (state.revision, state.digest, state.entries.clone())
        };
        let set = ResourceSet {
            resources: entries.iter().map(|entry| entry.resource().clone()).collect(),
        };
        let compressed = zstd::bulk::compress(&set.encode_to_vec(), ZSTD_LEVEL)?;
        let full = Full {
            revision: Some(revision.into()),
            compressed: compressed.into(),
            proof: Some(self.proof(revision, &digest, signer)),
        };
        let image = Arc::new(Image {
            revision,
            bytes: encode(Message::Full(full)),
        });
        let mut state = self.lock();
        if state.revision == revision {
            state.image = Some(Arc::clone(&image));
        }
        Ok(image)
    }

    fn proof(&self, revision: Revision, digest: &[u8; 32], signer: &Signer) -> StateProof {
        StateProof {
            digest: digest.to_vec().into(),
            signature: signer
                .sign(&signed_text(&self.scope_id, revision.into(), digest))
                .to_vec()
                .into(),
            key_id: signer.id().to_owned(),
            scope: self.scope_id.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, step: Step) {
        self.ring_bytes += step.bytes.len();
        self.ring.push_back(Arc::new(step));
        while self.ring.len() > RING_STEPS || self.ring_bytes > RING_BYTES {
            let Some(oldest) = self.ring.pop_front() else {
                break;
            };
            self.ring_bytes -= oldest.bytes.len();
        }
    }
}

/// One change of desired state.
#[derive(Clone, Debug)]
pub enum Change {
    /// A resource was made or changed.
    Set(Arc<Entry>),
    /// A resource is gone.
    Removed(Key),
}

impl Change {
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Set(entry) => entry.key(),
            Self::Removed(key) => key.clone(),
        }
    }

    fn entry(&self) -> Option<&Arc<Entry>> {
        match self {
            Self::Set(entry) => Some(entry),
            Self::Removed(_) => None,
        }
    }
}

/// Encodes one message of the Watch stream.
#[must_use]
pub fn encode(message: Message) -> Bytes {
    WatchResponse {
        message: Some(message),
    }
    .encode_to_vec()
    .into()
}
