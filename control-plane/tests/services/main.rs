//! The control plane's services as a sidecar sees them, over the link in memory and the embedded store.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod plane;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod watcher;
