//! All upstreams of a sidecar.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::mcp::McpUpstream;
use super::{
    DeclaredCatalogue, Notice, SourceSpec, UpstreamAnswer, UpstreamError, UpstreamRequest, UpstreamState,
};

/// One upstream; cheap to clone.
#[derive(Clone, Debug)]
pub struct Upstream {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Mcp(Arc<McpUpstream>),
    #[cfg(test)]
    #[allow(dead_code, reason = "for the tests of whichever room forwards calls")]
    Scripted(Arc<super::scripted::Scripted>),
}

impl Upstream {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.name(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.name(),
        }
    }

    /// Forwards one call and waits for its answer.
    ///
    /// # Errors
    /// When there is no answer; a JSON-RPC error that the upstream answers with is an answer.
    pub async fn call(&self, request: UpstreamRequest) -> Result<UpstreamAnswer, UpstreamError> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.call(request).await,
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.call(request).await,
        }
    }

    /// What it says that answers no request, from now on.
    #[must_use]
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.notices.subscribe(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.notices.subscribe(),
        }
    }

    /// Nobody wants to hear of changes of this resource any more.
    pub fn forget(&self, uri: &str) {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.forget(uri),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.forgotten.lock().unwrap().push(uri.to_owned()),
        }
    }

    /// What it declares; changes when it is read again.
    #[must_use]
    pub fn catalogue(&self) -> watch::Receiver<Arc<DeclaredCatalogue>> {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.catalogue(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.catalogue(),
        }
    }

    /// The state of its connection.
    #[must_use]
    pub fn state(&self) -> UpstreamState {
        match &self.kind {
            Kind::Mcp(upstream) => upstream.state(),
            #[cfg(test)]
            Kind::Scripted(scripted) => scripted.state(),
        }
    }
}

/// All upstreams of a sidecar. Dropping it ends their connections and child processes.
#[derive(Debug)]
pub struct Upstreams {
    by_name: BTreeMap<Arc<str>, Upstream>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Upstreams {
    /// Starts to connect to all of them; returns at once. Must be called within a runtime.
    #[must_use]
    pub fn start(specs: impl IntoIterator<Item = impl Into<SourceSpec>>) -> Self {
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        let by_name = specs
            .into_iter()
            .map(|spec| {
                let spec = spec.into();
                let name = Arc::clone(spec.name());
                let kind = match spec {
                    SourceSpec::Mcp(spec) => Kind::Mcp(McpUpstream::start(spec, &tasks, &stop)),
                };
                (name, Upstream { kind })
            })
            .collect();
        Self { by_name, tasks, stop }
    }

    /// Upstreams whose answers a test scripts.
    #[cfg(test)]
    #[allow(dead_code, reason = "for the tests of whichever room forwards calls")]
    pub(crate) fn scripted(all: impl IntoIterator<Item = super::scripted::Scripted>) -> Self {
        let by_name = all
            .into_iter()
            .map(|scripted| {
                let name = Arc::clone(scripted.name());
                let kind = Kind::Scripted(Arc::new(scripted));
                (name, Upstream { kind })
            })
            .collect();
        Self {
            by_name,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The upstream called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Upstream> {
        self.by_name.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Upstream> {
        self.by_name.values()
    }

    /// The state of each, by name.
    #[must_use]
    pub fn states(&self) -> Vec<UpstreamState> {
        self.iter().map(Upstream::state).collect()
    }

    /// Ends all connections and child processes, and waits until they are gone.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Upstreams {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
