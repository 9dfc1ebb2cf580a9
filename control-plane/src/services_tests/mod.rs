//! The control plane's services as a sidecar sees them, over the link in memory.

mod approvals;
mod over_tcp;
mod plane;
mod replicas;
mod reports;
mod snapshots;
mod watcher;
