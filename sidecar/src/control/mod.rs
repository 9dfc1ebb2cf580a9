//! The link to the control plane: who this sidecar is, the view of desired state, the delivery of records, approvals, quotas.
//!
//! Nothing here decides about a call. The gate reads what is in force ([`Control::snapshot`], [`Control::freshness`],
//! [`Control::stops`]) without waiting; everything else happens in tasks that this room owns:
//!
//! - `enrol` keeps the credential; `watch` takes snapshots, leases and stops, `apply` and `view` prove and apply them, `kept` and
//!   `keeper` hold the last ones on disk, `checkpoint` what was said of the trace chain's head;
//! - `reports` and `delivery` bring records from the spool to the trace chain;
//! - `approvals`, `quotas` and `catalogue` are clients of the services of those names;
//! - `redact` masks secrets before anything is reported.

mod apply;
pub mod approvals;
mod auth;
mod catalogue;
mod checkpoint;
mod corrections;
mod credentials;
mod delivery;
mod enrol;
pub(crate) mod hex;
mod identity;
mod in_force;
mod keeper;
mod kept;
mod lease;
mod link;
mod meaning;
mod options;
pub mod quotas;
pub mod redact;
mod reports;
mod revision;
mod shared;
mod snapshot;
mod stops;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod view;
mod watch;

pub use approvals::ApprovalsClient;
pub use catalogue::{Catalogue, Published, PublishedTool};
pub use corrections::Corrections;
pub use identity::{DigestKey, SidecarIdentity};
pub use lease::{Freshness, Staleness};
pub use link::{Control, StartError};
pub use options::{JoinProof, Link, Options, Secret};
pub use quotas::QuotaClient;
pub use revision::Revision;
pub use shared::LinkState;
pub use snapshot::{PinStatus, Pins, Snapshot};
pub use stops::StopSet;
