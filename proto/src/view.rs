//! The digest and the signed text of a whole view of desired state (`StateProof` in `snapshots.proto`).

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::v1::{Resource, Revision};

/// Digest of one resource within a view.
///
/// A holder keeps these per resource, so that a change costs one of them and one pass of [`view_digest`].
#[must_use]
pub fn resource_digest(resource: &Resource) -> [u8; 32] {
    let revision = resource.revision.unwrap_or_default();
    let mut hash = Sha256::new();
    for text in [&resource.r#type, &resource.name] {
        hash.update(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
        hash.update(text);
    }
    hash.update(revision.generation.to_be_bytes());
    hash.update(revision.number.to_be_bytes());
    hash.update(Sha256::digest(&resource.body));
    for globs in [&resource.agents, &resource.namespaces] {
        for glob in globs {
            hash.update(u32::try_from(glob.len()).unwrap_or(u32::MAX).to_be_bytes());
            hash.update(glob);
        }
        hash.update(u32::MAX.to_be_bytes());
    }
    hash.finalize().into()
}

/// Names the part of desired state that one credential sees, in every signed state: hex SHA-256 of namespace, agents and upstreams.
/// The order of the globs does not matter, nor whether one stands twice.
#[must_use]
pub fn scope_id(namespace: &str, agents: &[String], upstreams: &[String]) -> String {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(text);
    };
    part(namespace);
    for globs in [agents, upstreams] {
        let globs: BTreeSet<&String> = globs.iter().collect();
        part(&globs.len().to_string());
        globs.into_iter().for_each(|glob| part(glob));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digest of a view, from the digests of its resources sorted by (type, name) bytewise.
#[must_use]
pub fn view_digest<'a>(sorted: impl IntoIterator<Item = &'a [u8; 32]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for digest in sorted {
        hash.update(digest);
    }
    hash.finalize().into()
}

/// The bytes that a `StateProof` signs.
#[must_use]
pub fn signed_text(scope: &str, revision: Revision, digest: &[u8]) -> Vec<u8> {
    let mut text = format!(
        "toolgate-snapshot-v1\n{scope}\n{}.{}\n",
        revision.generation, revision.number
    );
    for byte in digest {
        text.push_str(&format!("{byte:02x}"));
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_resource_is_in_its_digest() {
        let base = Resource {
            r#type: "policy".into(),
            name: "a".into(),
            revision: Some(Revision {
                generation: 1,
                number: 2,
            }),
            body: b"{}".as_slice().into(),
            agents: vec!["x".into()],
            namespaces: vec!["*".into()],
        };
        let changed = [
            Resource {
                r#type: "pin".into(),
                ..base.clone()
            },
            Resource {
                name: "b".into(),
                ..base.clone()
            },
            Resource {
                revision: Some(Revision {
                    generation: 1,
                    number: 3,
                }),
                ..base.clone()
            },
            Resource {
                body: b"[]".as_slice().into(),
                ..base.clone()
            },
            Resource {
                agents: vec!["y".into()],
                ..base.clone()
            },
            Resource {
                namespaces: vec![],
                ..base.clone()
            },
        ];
        for other in &changed {
            assert_ne!(resource_digest(&base), resource_digest(other));
        }
    }
}
