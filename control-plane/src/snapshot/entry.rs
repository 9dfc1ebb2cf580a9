//! One resource of desired state, as it is sent.

use bytes::Bytes;
use policy::glob::Glob;
use proto::body;
use proto::v1::{Resource, ResourceName};
use proto::view::resource_digest;

use super::scope::Reach;

/// (type, name): unique, and the order of a view's digest.
pub type Key = (String, String);

/// A resource with what is needed of it again and again: its digest and whom it concerns.
#[derive(Debug)]
pub struct Entry {
    resource: Resource,
    digest: [u8; 32],
    reach: Reach,
}

impl Entry {
    /// Makes an entry from its sent form.
    #[must_use]
    pub fn new(resource: Resource) -> Self {
        let digest = resource_digest(&resource);
        let reach = reach_of(&resource);
        Self {
            resource,
            digest,
            reach,
        }
    }

    /// The sent form.
    #[must_use]
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Digest within a view.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Whom it concerns.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The JSON body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.resource.body
    }

    /// Compares by the order of a view.
    #[must_use]
    pub fn order(&self, key: &Key) -> std::cmp::Ordering {
        (self.resource.r#type.as_bytes(), self.resource.name.as_bytes())
            .cmp(&(key.0.as_bytes(), key.1.as_bytes()))
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> Key {
        (self.resource.r#type.clone(), self.resource.name.clone())
    }

    pub(super) fn name(key: &Key) -> ResourceName {
        ResourceName {
            r#type: key.0.clone(),
            name: key.1.clone(),
        }
    }
}

fn reach_of(resource: &Resource) -> Reach {
    match resource.r#type.as_str() {
        body::SETTING => Reach::Everyone,
        body::POLICY => Reach::Agents {
            namespaces: resource
                .namespaces
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            agents: globs_or_all(&resource.agents),
        },
        body::GRANT => match serde_json::from_slice::<body::Grant>(&resource.body) {
            Ok(grant) => Reach::AgentsIn {
                namespace: grant.namespace,
                agents: globs_or_all(&[grant.agent]),
            },
            Err(_) => Reach::Nobody,
        },
        body::PIN => match serde_json::from_slice::<body::Pin>(&resource.body) {
            Ok(pin) => Reach::Upstream {
                namespace: pin.namespace,
                upstream: pin.upstream,
            },
            Err(_) => Reach::Nobody,
        },
        body::CORRECTION => match serde_json::from_slice::<body::Correction>(&resource.body) {
            Ok(correction) => Reach::Upstream {
                namespace: correction.namespace,
                upstream: correction.upstream,
            },
            // It could restrict: the whole namespace learns that it cannot be read.
            Err(_) => match resource.namespaces.as_slice() {
                [namespace] => Reach::Namespace(namespace.clone()),
                _ => Reach::Everyone,
            },
        },
        _ => match resource.namespaces.as_slice() {
            [namespace] => Reach::Namespace(namespace.clone()),
            _ => Reach::Nobody,
        },
    }
}

/// A glob that cannot be read counts as `*`: whoever receives it denies its agents.
fn globs_or_all(texts: &[String]) -> Vec<Glob> {
    texts
        .iter()
        .filter_map(|text| text.parse().or_else(|_| "*".parse()).ok())
        .collect()
}
