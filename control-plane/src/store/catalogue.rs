//! What upstreams declare, as each sidecar sees it, and the pins over it.

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    error::StoreResult,
    types::{Act, Micros, Revision},
};

/// One declared tool, as a sidecar sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredTool {
    /// Full name.
    pub name: String,
    /// `mcp`, `openapi`, `cli`.
    pub kind: String,
    /// Of the declaration.
    pub fingerprint: [u8; 32],
    /// The declaration as the upstream sent it (JSON); empty when it was too large.
    pub declared: Bytes,
}

/// What happens to the tools of an upstream that is seen for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// Pins are not kept.
    Off,
    /// It is pinned whole.
    Trust,
    /// Everything is new until accepted.
    Review,
}

/// The whole catalogue of one upstream, as one sidecar sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The sidecar's namespace.
    pub namespace: String,
    /// Literal name.
    pub upstream: String,
    /// Sidecar id.
    pub sidecar: String,
    /// What settings say.
    pub pinning: Pinning,
    /// Every tool of the upstream.
    pub tools: Vec<DeclaredTool>,
}

/// How a declaration stands to the accepted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinStatus {
    /// Equal to the accepted one.
    Pinned,
    /// There is no accepted one.
    New,
    /// Differs from the accepted one.
    Changed,
}

/// The answer to a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// A view at this revision or later contains the pins that the answer speaks of.
    pub revision: Revision,
    /// One per tool, in the order given. Empty with [`Pinning::Off`].
    pub pins: Vec<(String, PinStatus)>,
    /// Pins were made by this publication (first use).
    pub pinned_now: bool,
}

/// A version of a tool that sidecars see now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenVersion {
    /// Of the declaration.
    pub fingerprint: [u8; 32],
    /// The declaration (JSON), possibly empty.
    pub declared: Bytes,
    /// When this version was seen first.
    pub first_seen_at: Micros,
    /// Ids of the sidecars that see it.
    pub sidecars: Vec<String>,
}

/// An accepted version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedVersion {
    /// Accepted fingerprint.
    pub fingerprint: [u8; 32],
    /// The accepted declaration (JSON), possibly empty.
    pub declared: Bytes,
    /// When it was accepted.
    pub accepted_at: Micros,
    /// By whom; `first use` for trust on first use.
    pub accepted_by: String,
}

/// One tool of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueTool {
    /// Namespace of the sidecars that publish it.
    pub namespace: String,
    /// Upstream that declares it.
    pub upstream: String,
    /// Full name.
    pub name: String,
    /// `mcp`, `openapi`, `cli`.
    pub kind: String,
    /// What sidecars see now, the version seen first last: newest first. Never empty.
    pub seen: Vec<SeenVersion>,
    /// What was accepted; `None`: nothing yet.
    pub pin: Option<PinnedVersion>,
}

impl CatalogueTool {
    /// The worst status over what sidecars see.
    #[must_use]
    pub fn status(&self) -> PinStatus {
        match &self.pin {
            None => PinStatus::New,
            Some(pin) if self.seen.iter().all(|seen| seen.fingerprint == pin.fingerprint) => {
                PinStatus::Pinned
            }
            Some(_) => PinStatus::Changed,
        }
    }
}

/// Which version of a tool is accepted: exactly the one that was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// Full tool name.
    pub tool: String,
    /// The fingerprint that was shown.
    pub fingerprint: [u8; 32],
}

/// Catalogue and pins.
#[async_trait]
pub trait Catalogue: Send + Sync {
    /// Replaces what the sidecar published for this upstream before. Repeating it changes nothing and takes no revision.
    async fn publish_catalogue(&self, publication: Publication) -> StoreResult<Published>;

    /// The tools that sidecars of a namespace (or of all) see, by namespace and name.
    async fn tools(&self, namespace: Option<&str>) -> StoreResult<Vec<CatalogueTool>>;

    /// Accepts versions, all or none, as one revision. [`Conflict`](super::StoreError::Conflict) when the newest version that sidecars
    /// see now is not the one shown. Writes one record per tool that changes: `act` gives name and author, the store adds tool,
    /// both declarations and the fingerprint.
    async fn accept_pins(
        &self,
        namespace: &str,
        accepted: Vec<Acceptance>,
        act: Act,
    ) -> StoreResult<Revision>;
}
