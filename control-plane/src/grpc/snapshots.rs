//! `Snapshots.Watch`: desired state, leases and stops to one sidecar, acknowledgements back.

mod outgoing;
mod session;

use std::sync::Arc;

use proto::v1::WatchRequest;
use tonic::{Request, Status, Streaming};

pub(crate) use self::outgoing::Outgoing;
use self::session::Session;
use super::refusal::Refused;
use crate::auth::StreamKind;
use crate::core::Core;
use crate::snapshot::Scope;

/// Accepts watchers.
pub(crate) struct Watcher {
    core: Arc<Core>,
}

impl Watcher {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    pub(crate) async fn watch(&self, request: Request<Streaming<WatchRequest>>) -> Result<Outgoing, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        if self.core.draining.is_cancelled() {
            return Err(Refused::Draining.status("this control plane is going down; reconnect elsewhere"));
        }
        let live = self.core.sidecars.open(StreamKind::Watch, &claims);
        let scope = Scope::of(&claims);
        let channel = self
            .core
            .hub
            .channel(&scope)
            .map_err(|error| Refused::OutOfScope.status(error.to_string()))?;
        let (sender, outgoing) = outgoing::bounded(&self.core.limits);
        let session = Session::new(
            Arc::clone(&self.core),
            claims,
            channel,
            live,
            request.into_inner(),
            sender,
        );
        self.core.tasks.spawn(session.run());
        Ok(outgoing)
    }
}
