//! The held view of desired state: applied whole or not at all, and only when its proof holds.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use proto::v1::{Delta, Full, Resource, ResourceName, ResourceSet, StateProof, nack};
use proto::view::{resource_digest, signed_text, view_digest};

use super::Revision;
use super::credentials::TrustedKeys;
use super::meaning::{self, Meaning};

/// Bytes that a full snapshot may unfold to.
const MAX_UNFOLDED: u64 = 512 * 1024 * 1024;
const COMPRESSION: i32 = 3;

/// Why a message was not applied. The view stays as it was.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    #[error("the snapshot cannot be read: {0}")]
    Unreadable(String),
    #[error("the delta starts at revision {from}, but {held} is held")]
    DoesNotFit { from: Revision, held: Revision },
    #[error("the resource {kind} {name:?} comes twice")]
    Twice { kind: String, name: String },
    #[error("the state at revision {revision} has another digest than its proof says")]
    WrongDigest { revision: Revision },
    #[error("the proof of revision {revision} is not signed by a known key (key {key:?})")]
    WrongSignature { revision: Revision, key: String },
    #[error("the delta is for another scope than the view that is held")]
    WrongScope,
}

/// One held resource with what it means.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) resource: Resource,
    digest: [u8; 32],
    pub(super) meaning: Meaning,
    /// Why it could not be decoded.
    rejected: Option<String>,
}

impl Held {
    fn new(resource: Resource) -> Self {
        let (meaning, rejected) = meaning::decode(&resource);
        Self {
            digest: resource_digest(&resource),
            resource,
            meaning,
            rejected,
        }
    }
}

type Key = (String, String);

/// A view of desired state whose proof holds.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) revision: Revision,
    pub(super) proof: StateProof,
    resources: BTreeMap<Key, Arc<Held>>,
}

impl View {
    /// The view that a full snapshot states.
    pub(super) fn from_full(full: &Full, keys: &TrustedKeys) -> Result<Self, ApplyError> {
        let revision = full.revision.unwrap_or_default().into();
        let set = ResourceSet::decode(unfold(&full.compressed)?)
            .map_err(|error| ApplyError::Unreadable(error.to_string()))?;
        let mut resources = BTreeMap::new();
        for resource in set.resources {
            let key = (resource.r#type.clone(), resource.name.clone());
            if let Some(twice) = resources.insert(key, Arc::new(Held::new(resource))) {
                return Err(ApplyError::Twice {
                    kind: twice.resource.r#type.clone(),
                    name: twice.resource.name.clone(),
                });
            }
        }
        let view = Self {
            revision,
            proof: full.proof.clone().unwrap_or_default(),
            resources,
        };
        view.verify(keys)?;
        Ok(view)
    }

    /// The view after a delta.
    pub(super) fn with_delta(&self, delta: Delta, keys: &TrustedKeys) -> Result<Self, ApplyError> {
        let from = delta.from.unwrap_or_default().into();
        if from != self.revision {
            return Err(ApplyError::DoesNotFit {
                from,
                held: self.revision,
            });
        }
        let proof = delta.proof.unwrap_or_default();
        if proof.scope != self.proof.scope {
            return Err(ApplyError::WrongScope);
        }
        let mut resources = self.resources.clone();
        for ResourceName { r#type, name } in delta.removed {
            resources.remove(&(r#type, name));
        }
        for resource in delta.changed {
            let key = (resource.r#type.clone(), resource.name.clone());
            resources.insert(key, Arc::new(Held::new(resource)));
        }
        let view = Self {
            revision: delta.to.unwrap_or_default().into(),
            proof,
            resources,
        };
        view.verify(keys)?;
        Ok(view)
    }

    fn verify(&self, keys: &TrustedKeys) -> Result<(), ApplyError> {
        // The map's order is (type, name) bytewise, as the digest wants it.
        let digest = view_digest(self.resources.values().map(|held| &held.digest));
        if self.proof.digest != digest.as_slice() {
            return Err(ApplyError::WrongDigest {
                revision: self.revision,
            });
        }
        let text = signed_text(&self.proof.scope, self.revision.into(), &digest);
        if keys.verifies("snapshot", &self.proof.key_id, &text, &self.proof.signature) {
            Ok(())
        } else {
            Err(ApplyError::WrongSignature {
                revision: self.revision,
                key: self.proof.key_id.clone(),
            })
        }
    }

    /// The meanings of everything held.
    pub(super) fn meanings(&self) -> impl Iterator<Item = &Meaning> {
        self.resources.values().map(|held| &held.meaning)
    }

    /// Resources that could not be decoded.
    pub(super) fn rejected(&self) -> Vec<nack::Rejected> {
        let rejected = |held: &Arc<Held>| {
            held.rejected.as_ref().map(|reason| nack::Rejected {
                r#type: held.resource.r#type.clone(),
                name: held.resource.name.clone(),
                reason: reason.clone(),
            })
        };
        self.resources.values().filter_map(rejected).collect()
    }

    /// Whether both views hold the very same policies, so that what is compiled from one serves the other.
    pub(super) fn has_policies_of(&self, other: &Self) -> bool {
        fn policies(view: &View) -> impl Iterator<Item = &Arc<Held>> {
            view.resources
                .values()
                .filter(|held| matches!(held.meaning, Meaning::Policy(_) | Meaning::Unreadable(_)))
        }
        let mut theirs = policies(other);
        policies(self).all(|held| theirs.next().is_some_and(|their| Arc::ptr_eq(held, their)))
            && theirs.next().is_none()
    }

    /// The view as a full snapshot, to be kept.
    pub(super) fn to_full(&self) -> std::io::Result<Full> {
        let set = ResourceSet {
            resources: self
                .resources
                .values()
                .map(|held| held.resource.clone())
                .collect(),
        };
        Ok(Full {
            revision: Some(self.revision.into()),
            compressed: zstd::bulk::compress(&set.encode_to_vec(), COMPRESSION)?.into(),
            proof: Some(self.proof.clone()),
        })
    }
}

fn unfold(compressed: &[u8]) -> Result<Bytes, ApplyError> {
    let unreadable = |error: std::io::Error| ApplyError::Unreadable(error.to_string());
    let decoder = zstd::stream::read::Decoder::new(compressed).map_err(unreadable)?;
    let mut bytes = Vec::new();
    decoder
        .take(MAX_UNFOLDED + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MAX_UNFOLDED {
        return Err(ApplyError::Unreadable(format!(
            "it unfolds to more than {MAX_UNFOLDED} bytes"
        )));
    }
    Ok(bytes.into())
}
