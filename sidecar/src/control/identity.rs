//! Who this sidecar is, as the control plane said at enrolment.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, Mac};
use sha2::Sha256;
use tools::id::Namespace;

/// The key for digests of arguments, shared by a namespace.
#[derive(Clone, PartialEq, Eq)]
pub struct DigestKey {
    id: Arc<str>,
    bytes: Arc<[u8]>,
}

impl DigestKey {
    /// A key and its id.
    pub fn new(id: impl Into<Arc<str>>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self {
            id: id.into(),
            bytes: bytes.into(),
        }
    }

    /// The key's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// HMAC-SHA256 of canonical arguments.
    pub fn digest(&self, canonical: &[u8]) -> [u8; 32] {
        // HMAC takes keys of every length, so the zero digest of the other branch is never made.
        Hmac::<Sha256>::new_from_slice(&self.bytes).map_or([0; 32], |mut mac| {
            mac.update(canonical);
            mac.finalize().into_bytes().into()
        })
    }
}

impl DigestKey {
    /// Whether this is the digest of the text, found out in a time that does not depend on how much of it is right.
    pub fn verifies(&self, text: &[u8], digest: &[u8]) -> bool {
        Hmac::<Sha256>::new_from_slice(&self.bytes).is_ok_and(|mut mac| {
            mac.update(text);
            mac.verify_slice(digest).is_ok()
        })
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DigestKey({})", self.id)
    }
}

/// The identity of this sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarIdentity {
    /// The id that the control plane chose.
    pub id: String,
    /// The namespace that everything here belongs to.
    pub namespace: Namespace,
    /// The epoch of this process; 0 while it runs on what an earlier process left.
    pub epoch: u64,
    /// Globs over the agents that it may speak for.
    pub agents: Vec<String>,
    /// Globs over the upstreams that it may publish.
    pub upstreams: Vec<String>,
    /// Key for argument digests.
    pub digest_key: DigestKey,
}
