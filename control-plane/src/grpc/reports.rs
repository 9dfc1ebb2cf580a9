//! `Reports.Stream`: records up, watermarks down.

mod check;
mod session;

use std::sync::Arc;

use proto::v1::reports_server::Reports;
use proto::v1::{ReportsRequest, ReportsResponse};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::refusal::Refused;
use crate::auth::StreamKind;
use crate::core::Core;

/// Answers that wait for a receiver.
const QUEUE: usize = 64;

pub(super) struct Service {
    core: Arc<Core>,
}

impl Service {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }
}

#[tonic::async_trait]
impl Reports for Service {
    type StreamStream = ReceiverStream<Result<ReportsResponse, Status>>;

    async fn stream(
        &self,
        request: Request<Streaming<ReportsRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        if self.core.draining.is_cancelled() {
            return Err(Refused::Draining.status("this control plane is going down; reconnect elsewhere"));
        }
        let live = self.core.sidecars.open(StreamKind::Reports, &claims);
        let (sender, receiver) = tokio::sync::mpsc::channel(QUEUE);
        let session = session::Session::new(Arc::clone(&self.core), claims, live, sender);
        self.core.tasks.spawn(session.run(request.into_inner()));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
