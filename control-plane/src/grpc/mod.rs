//! The services that sidecars call, and nothing that operators do.

mod approvals;
mod catalogue;
mod enrolment;
mod quotas;
mod refusal;
mod reports;
mod scope;
mod shared_bytes;
mod snapshots;

use std::sync::Arc;

use proto::v1::approvals_server::ApprovalsServer;
use proto::v1::catalogue_server::CatalogueServer;
use proto::v1::enrolment_server::EnrolmentServer;
use proto::v1::quotas_server::QuotasServer;
use proto::v1::reports_server::ReportsServer;
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::{Code, Status};

pub(crate) use self::enrolment::{Refusals, digest};
pub(crate) use self::refusal::Refused;
use crate::auth::{Claims, CredentialError, credential};
use crate::core::Core;
use crate::store::{EnrolRefusal, StoreError};

/// The largest message that a sidecar may send.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// All services.
pub(crate) fn routes(core: &Arc<Core>) -> Routes {
    let service = || Arc::clone(core);
    let mut routes = Routes::default();
    routes = routes
        .add_service(EnrolmentServer::new(enrolment::Service::new(service())))
        .add_service(shared_bytes::SnapshotsService::new(Arc::new(
            snapshots::Watcher::new(service()),
        )))
        .add_service(
            ReportsServer::new(reports::Service::new(service())).max_decoding_message_size(MAX_MESSAGE),
        )
        .add_service(
            CatalogueServer::new(catalogue::Service::new(service())).max_decoding_message_size(MAX_MESSAGE),
        )
        .add_service(
            ApprovalsServer::new(approvals::Service::new(service())).max_decoding_message_size(MAX_MESSAGE),
        )
        .add_service(QuotasServer::new(quotas::Service::new(service())));
    routes
}

/// The claims of a call's credential: of the present epoch of an id that is not revoked.
pub(crate) async fn authenticate(core: &Core, metadata: &MetadataMap) -> Result<Claims, Status> {
    let token = metadata
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .ok_or_else(|| {
            Status::unauthenticated("no credential; enrol and send it as `authorization: Bearer`")
        })?;
    let claims = verify(core, token).await?;
    core.sidecars.check(&*core.store, &claims).await?;
    Ok(claims)
}

async fn verify(core: &Core, token: &str) -> Result<Claims, Status> {
    let refused = |error: CredentialError| Status::unauthenticated(error.to_string());
    let id = credential::key_id(token).ok_or_else(|| refused(CredentialError::Invalid))?;
    if core.keys.credential_key_by_id(id).is_none() {
        // Another replica may have rotated the key; strangers cannot make this read often.
        core.keys.refresh_seldom(&*core.store, &core.clock).await;
    }
    let key = core
        .keys
        .credential_key_by_id(id)
        .ok_or_else(|| refused(CredentialError::Invalid))?;
    credential::verify(token, &key.key, core.primary.database_now()).map_err(refused)
}

/// A store's failure as a gRPC status. What the driver said stays in the log.
pub(crate) fn store_status(error: StoreError) -> Status {
    let code = match &error {
        StoreError::NotFound { .. } => return Refused::NotFound.status(error.to_string()),
        StoreError::Enrolment(refusal) => return enrol_status(refusal),
        StoreError::Ambiguous { .. } | StoreError::Invalid { .. } => Code::InvalidArgument,
        StoreError::Precondition { .. }
        | StoreError::Conflict { .. }
        | StoreError::AlreadyResolved { .. } => Code::FailedPrecondition,
        StoreError::Hole { .. } | StoreError::NoOpenEpoch { .. } => Code::FailedPrecondition,
        StoreError::ChangesGone { .. } | StoreError::Fork { .. } => Code::Aborted,
        StoreError::Unreachable { .. } | StoreError::Migration { .. } | StoreError::Database { .. } => {
            tracing::warn!(%error, "a sidecar's call failed in the store");
            return Status::unavailable("the control plane's database does not answer; try again");
        }
    };
    Status::new(code, error.to_string())
}

fn enrol_status(refusal: &EnrolRefusal) -> Status {
    let message = refusal.to_string();
    match refusal {
        EnrolRefusal::UnknownToken
        | EnrolRefusal::TokenExpired
        | EnrolRefusal::TokenUsedUp
        | EnrolRefusal::WrongSecret(_) => Status::permission_denied(message),
        EnrolRefusal::UnknownSidecar(_) => Refused::NotFound.status(message),
        EnrolRefusal::Revoked(_) => Refused::Revoked.status(message),
        EnrolRefusal::StaleEpoch { .. } => Refused::StaleEpoch.status(message),
    }
}
