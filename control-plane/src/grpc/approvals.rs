//! `Approvals`: questions to people about one exact call each.

mod watch;

use std::sync::Arc;
use std::time::Duration;

use proto::v1::approvals_server::Approvals;
use proto::v1::claim_response::Outcome;
use proto::v1::{
    ApprovalState, Binding, CancelApprovalRequest, ClaimRequest, ClaimResponse, Claimed, OpenApprovalRequest,
    WatchApprovalsRequest,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::refusal::Refused;
use super::{scope, store_status};
use crate::auth::{Claims, StreamKind};
use crate::core::Core;
use crate::store::approvals::{ApprovalDraft, ApprovalStatus, Claim, ClaimOutcome, ClaimRefusal, Opened};

/// Events that wait for a receiver.
const QUEUE: usize = 256;

pub(super) struct Service {
    core: Arc<Core>,
}

impl Service {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// An approval of this namespace that this sidecar's agents opened.
    async fn own(&self, claims: &Claims, id: &str) -> Result<crate::store::approvals::Approval, Status> {
        let approval = self
            .core
            .store
            .approval(id, Some(&claims.namespace))
            .await
            .map_err(store_status)?;
        if approval.id != id {
            return Err(Refused::NotFound.status(format!("there is no approval `{id}`")));
        }
        scope::check_agent(claims, &approval.asked.binding.agent)?;
        Ok(approval)
    }
}

#[tonic::async_trait]
impl Approvals for Service {
    type WatchStream = ReceiverStream<Result<ApprovalState, Status>>;

    async fn open(&self, request: Request<OpenApprovalRequest>) -> Result<Response<ApprovalState>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        let asked = request.into_inner();
        let binding = checked(&claims, asked.binding)?;
        let settings = self.core.settings();
        let draft = ApprovalDraft {
            namespace: claims.namespace,
            sidecar: claims.sidecar,
            call_id: asked.call_id,
            binding: binding.into(),
            params: asked.params,
            classification: asked.classification,
            policy_rule: asked.policy_rule,
            rule_index: asked.rule_index,
            revision: asked.revision.unwrap_or_default().into(),
            message: asked.message,
            injection_risk: asked.injection_risk,
            resources: asked.resources,
            identity: asked.identity,
            floors: asked.floors,
            timeout: Duration::from_millis(settings.approval_timeout_ms),
        };
        let opened = self
            .core
            .store
            .open_approval(draft, settings.approval_max_pending)
            .await
            .map_err(store_status)?;
        match opened {
            Opened::New(approval) | Opened::Joined(approval) => {
                Ok(Response::new(approval.state(self.core.primary.database_now())))
            }
            Opened::TooMany { pending } => Err(Refused::TooManyPending.status(format!(
                "{pending} questions of this agent wait for people, which is as many as may (approval.max_pending)"
            ))),
            Opened::Stopped { stop, reason } => {
                Err(Refused::Stopped.status(format!("stop {stop} concerns this call: {reason}")))
            }
        }
    }

    async fn watch(
        &self,
        request: Request<WatchApprovalsRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        if self.core.draining.is_cancelled() {
            return Err(Refused::Draining.status("this control plane is going down; reconnect elsewhere"));
        }
        let live = self.core.sidecars.open(StreamKind::Approvals, &claims);
        let (sender, receiver) = tokio::sync::mpsc::channel(QUEUE);
        let request = request.into_inner();
        self.core
            .tasks
            .spawn(watch::run(Arc::clone(&self.core), claims, live, sender, request));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn claim(&self, request: Request<ClaimRequest>) -> Result<Response<ClaimResponse>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        let asked = request.into_inner();
        let binding = checked(&claims, asked.binding)?;
        if asked.call_id.is_empty() {
            return Err(Status::invalid_argument("a claim needs the call's id"));
        }
        let claim = Claim {
            id: asked.id,
            namespace: claims.namespace,
            call_id: asked.call_id,
            binding: binding.into(),
        };
        let outcome = match self
            .core
            .store
            .claim_approval(claim)
            .await
            .map_err(store_status)?
        {
            ClaimOutcome::Claimed {
                approval,
                revision,
                stop_sequence,
                database_time,
            } => Outcome::Claimed(Claimed {
                revision: Some(revision.into()),
                stop_sequence,
                approval: Some(approval.state(database_time)),
            }),
            ClaimOutcome::Refused(refusal) => Outcome::Refused(refused(&refusal)),
        };
        Ok(Response::new(ClaimResponse {
            outcome: Some(outcome),
        }))
    }

    async fn cancel(
        &self,
        request: Request<CancelApprovalRequest>,
    ) -> Result<Response<ApprovalState>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        let CancelApprovalRequest { id, .. } = request.into_inner();
        let approval = self.own(&claims, &id).await?;
        let approval = self
            .core
            .store
            .cancel_approval(&claims.namespace, &approval.id)
            .await
            .map_err(store_status)?;
        Ok(Response::new(approval.state(self.core.primary.database_now())))
    }
}

fn checked(claims: &Claims, binding: Option<Binding>) -> Result<Binding, Status> {
    let binding = binding.ok_or_else(|| Status::invalid_argument("no binding"))?;
    if binding.tool.is_empty() || binding.arguments_digest.len() != 32 {
        return Err(Status::invalid_argument(
            "a binding names a tool and a digest of 32 bytes",
        ));
    }
    scope::check_agent(claims, &binding.agent)?;
    Ok(binding)
}

fn refused(refusal: &ClaimRefusal) -> proto::v1::Refusal {
    let code = match refusal {
        ClaimRefusal::NotFound => Refused::NotFound,
        ClaimRefusal::AlreadyClaimed => Refused::AlreadyClaimed,
        ClaimRefusal::Stopped { .. } => Refused::Stopped,
        ClaimRefusal::NotApproved(status) => match status {
            ApprovalStatus::Denied => Refused::DeniedByPolicy,
            ApprovalStatus::Pending
            | ApprovalStatus::Approved
            | ApprovalStatus::Timeout
            | ApprovalStatus::Cancelled
            | ApprovalStatus::Expired => Refused::Expired,
        },
    };
    code.body(refusal.to_string())
}
