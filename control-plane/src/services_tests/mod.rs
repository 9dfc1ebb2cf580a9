//! The control plane's services as a sidecar sees them, over the link in memory.

mod approvals;
mod enrolment;
mod over_tcp;
mod plane;
mod replicas;
mod reports;
mod snapshots;
mod watcher;
