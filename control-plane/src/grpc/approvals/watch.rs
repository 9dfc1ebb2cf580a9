//! One sidecar's view of the approvals' feed.

use std::sync::Arc;

use policy::glob::Glob;
use proto::v1::{ApprovalState, WatchApprovalsRequest};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tonic::Status;

use crate::auth::{Claims, LiveStream};
use crate::core::Core;
use crate::grpc::refusal::Refused;
use crate::grpc::store_status;
use crate::store::StoreError;
use crate::store::approvals::{Approval, ApprovalEvent};

const EVENTS_AT_ONCE: u32 = 500;

type Receiver = mpsc::Sender<Result<ApprovalState, Status>>;

/// Serves one watcher until it leaves, is replaced, or is too slow.
pub(super) async fn run(
    core: Arc<Core>,
    claims: Claims,
    live: LiveStream,
    receiver: Receiver,
    request: WatchApprovalsRequest,
) {
    let mut feed = Feed {
        core: &core,
        namespace: claims.namespace,
        agents: claims
            .agents
            .iter()
            .filter_map(|glob| glob.parse().ok())
            .collect(),
        receiver: &receiver,
        cursor: request.after,
    };
    let end = tokio::select! {
        biased;
        status = live.ended(&core) => status,
        () = core.draining.cancelled() => {
            Refused::Draining.status("this control plane is going down; reconnect elsewhere")
        }
        () = receiver.closed() => return,
        () = generation_after(&core) => Refused::GenerationChanged.status("a new generation began; ask for the state of what you wait for"),
        Err(status) = feed.serve(request.ids) => status,
    };
    // A receiver that does not even take the reason is left alone.
    let _ = receiver.send_timeout(Err(end), core.limits.patience).await;
}

/// Waits for a generation later than the present one: positions in the feed may have been lost with the old one.
async fn generation_after(core: &Core) {
    let mut revision = core.hub.subscribe();
    let present = revision.borrow().generation;
    // INVARIANT: the hub outlives every stream, so the wait ends only by a later generation.
    let _ = revision.wait_for(|revision| revision.generation > present).await;
}

struct Feed<'a> {
    core: &'a Core,
    namespace: String,
    agents: Vec<Glob>,
    receiver: &'a Receiver,
    /// The newest event that was looked at.
    cursor: u64,
}

impl Feed<'_> {
    /// Ends only with an error.
    async fn serve(&mut self, ids: Vec<String>) -> Result<(), Status> {
        let mut events = self.core.approvals.subscribe();
        // A position beyond the feed's end is of a feed that a restore has cut.
        let newest = self.core.approvals.cursor();
        if self.cursor == 0 || self.cursor > newest {
            self.cursor = newest;
        }
        for id in ids {
            self.state_of(&id).await?;
        }
        self.read_on().await?;
        loop {
            match events.recv().await {
                Ok(event) if event.cursor == self.cursor + 1 => self.look_at(&event).await?,
                Ok(event) if event.cursor <= self.cursor => {}
                Ok(_) | Err(RecvError::Lagged(_)) => self.read_on().await?,
                Err(RecvError::Closed) => {
                    return Err(Refused::Draining.status("the approvals' feed has ended"));
                }
            }
        }
    }

    /// What the feed here did not show, from the store.
    async fn read_on(&mut self) -> Result<(), Status> {
        loop {
            let events = self
                .core
                .store
                .approval_events_after(self.cursor, EVENTS_AT_ONCE)
                .await;
            let events = events.map_err(store_status)?;
            if events.is_empty() {
                return Ok(());
            }
            for event in &events {
                self.look_at(event).await?;
            }
        }
    }

    async fn look_at(&mut self, event: &ApprovalEvent) -> Result<(), Status> {
        self.cursor = self.cursor.max(event.cursor);
        self.send(&event.approval, event.cursor).await
    }

    async fn state_of(&self, id: &str) -> Result<(), Status> {
        match self.core.store.approval(id, Some(&self.namespace)).await {
            Ok(approval) => self.send(&approval, approval.cursor).await,
            // Lost by a restore, or of another namespace: its waiter asks anew.
            Err(StoreError::NotFound { .. } | StoreError::Ambiguous { .. }) => Ok(()),
            Err(other) => Err(store_status(other)),
        }
    }

    async fn send(&self, approval: &Approval, cursor: u64) -> Result<(), Status> {
        let asked = &approval.asked;
        let is_own = asked.namespace == self.namespace
            && self.agents.iter().any(|glob| glob.matches(&asked.binding.agent));
        if !is_own {
            return Ok(());
        }
        let state = ApprovalState {
            cursor,
            ..approval.state(self.core.primary.database_now())
        };
        self.receiver
            .send_timeout(Ok(state), self.core.limits.patience)
            .await
            .map_err(|_| {
                Refused::SlowReceiver
                    .status("the receiver did not take its messages in time; reconnect and resume")
            })
    }
}
