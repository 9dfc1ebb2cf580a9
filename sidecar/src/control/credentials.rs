//! What a sidecar keeps of its enrolment, in the spool directory, readable by its user only.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chain::checkpoint::{Checkpoint, PublicKey, SignedCheckpoint};
use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};
use tools::id::Namespace;

use super::identity::{DigestKey, SidecarIdentity};
use super::{StartError, hex};

/// An Ed25519 public key of the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrustedKey {
    pub(super) id: String,
    pub(super) purpose: String,
    #[serde(with = "hex::text")]
    pub(super) ed25519: Vec<u8>,
}

/// The public keys of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct TrustedKeys(Vec<TrustedKey>);

impl TrustedKeys {
    pub(super) fn new(keys: &[proto::v1::PublicKey]) -> Self {
        let keys = keys.iter().map(|key| TrustedKey {
            id: key.id.clone(),
            purpose: key.purpose.clone(),
            ed25519: key.ed25519.to_vec(),
        });
        Self(keys.collect())
    }

    /// Whether the key of that id and purpose signed the text.
    pub(super) fn verifies(&self, purpose: &str, key_id: &str, text: &[u8], signature: &[u8]) -> bool {
        let found = self
            .0
            .iter()
            .find(|key| key.id == key_id && key.purpose == purpose);
        let key = found.and_then(|key| VerifyingKey::try_from(key.ed25519.as_slice()).ok());
        let signature = Signature::from_slice(signature).ok();
        key.zip(signature)
            .is_some_and(|(key, signature)| key.verify_strict(text, &signature).is_ok())
    }
}

impl TrustedKeys {
    /// What a checkpoint states, when the key that it names has signed it.
    pub(super) fn checkpoint(&self, notice: &proto::v1::CheckpointNotice) -> Option<Checkpoint> {
        let is_named = |key: &&TrustedKey| key.id == notice.key_id && key.purpose == "checkpoint";
        let bytes = self.0.iter().find(is_named)?.ed25519.as_slice().try_into().ok()?;
        let signed =
            SignedCheckpoint::from_parts(notice.text.clone(), &notice.signature, notice.key_id.clone());
        PublicKey::from_bytes(bytes).ok()?.verify(&signed).ok()
    }
}

/// The kept enrolment. Its secrets are in no other file and in no message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Credentials {
    pub(super) sidecar_id: String,
    pub(super) namespace: Namespace,
    pub(super) renewal_secret: String,
    pub(super) agents: Vec<String>,
    pub(super) upstreams: Vec<String>,
    pub(super) digest_key_id: String,
    #[serde(with = "hex::text")]
    pub(super) digest_key: Vec<u8>,
    pub(super) public_keys: TrustedKeys,
}

impl Credentials {
    /// Names the part of desired state that this credential sees.
    pub(super) fn scope(&self) -> String {
        proto::view::scope_id(self.namespace.as_str(), &self.agents, &self.upstreams)
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({})", self.sidecar_id)
    }
}

impl Credentials {
    pub(super) fn identity(&self, epoch: u64) -> SidecarIdentity {
        SidecarIdentity {
            id: self.sidecar_id.clone(),
            namespace: self.namespace.clone(),
            epoch,
            agents: self.agents.clone(),
            upstreams: self.upstreams.clone(),
            digest_key: DigestKey::new(self.digest_key_id.as_str(), self.digest_key.as_slice()),
        }
    }

    fn path(dir: &Path) -> PathBuf {
        dir.join("credentials.json")
    }

    /// What an earlier process left; `None` when there was none.
    pub(super) fn load(dir: &Path) -> Result<Option<Self>, StartError> {
        let path = Self::path(dir);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(StartError::Credentials {
                    path,
                    reason: source.to_string(),
                });
            }
        };
        let read = serde_json::from_slice(&bytes).map(Some);
        // The parser's message can quote what it read, so only the place is told.
        read.map_err(|error| StartError::Credentials {
            path,
            reason: format!("not readable at line {} column {}", error.line(), error.column()),
        })
    }

    pub(super) fn save(&self, dir: &Path) -> std::io::Result<()> {
        let bytes = serde_json::to_vec_pretty(self)?;
        write_atomically(&Self::path(dir), &bytes)
    }
}

/// Replaces a file as a whole, durably, readable by its owner only.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let draft = path.with_extension("new");
    let mut options = std::fs::File::options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    match path.parent() {
        Some(dir) => std::fs::File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn credentials_are_kept_for_their_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Credentials::load(dir.path()).unwrap(), None);
        let kept = Credentials {
            sidecar_id: "s1".into(),
            namespace: Namespace::default(),
            renewal_secret: "very secret".into(),
            agents: vec!["*".into()],
            upstreams: vec![],
            digest_key_id: "k1".into(),
            digest_key: vec![1, 2, 3],
            public_keys: TrustedKeys::default(),
        };
        kept.save(dir.path()).unwrap();
        assert_eq!(Credentials::load(dir.path()).unwrap(), Some(kept.clone()));
        let mode = std::fs::metadata(Credentials::path(dir.path()))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{kept:?}").contains("very secret"));
    }
}
