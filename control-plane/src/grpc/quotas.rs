//! `Quotas`: limits that a fleet shares, leased in lots.

use std::sync::Arc;
use std::time::Duration;

use proto::v1::quotas_server::Quotas;
use proto::v1::{
    LeaseQuotaRequest, LeaseQuotaResponse, QuotaKey, ReturnQuotaRequest, ReturnQuotaResponse, quota_key,
};
use tonic::{Request, Response, Status};

use super::{scope, store_status};
use crate::auth::Claims;
use crate::core::Core;
use crate::quotas::{self, WindowError};
use crate::store::quotas as kept;

/// How long a lot may be used.
const VALID: Duration = Duration::from_secs(10);
/// The longest id of a lease.
const LONGEST_ID: usize = 128;

pub(super) struct Service {
    core: Arc<Core>,
}

impl Service {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }
}

#[tonic::async_trait]
impl Quotas for Service {
    async fn lease(
        &self,
        request: Request<LeaseQuotaRequest>,
    ) -> Result<Response<LeaseQuotaResponse>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        let LeaseQuotaRequest {
            key,
            want,
            lease_id,
            unleased,
            ..
        } = request.into_inner();
        let key = key_of(key, &claims)?;
        let own_id = own(&claims, &lease_id)?;
        // What the caller takes for the limit is its own word.
        let limit = quotas::limit(&self.core.hub, &key).ok_or_else(|| {
            Status::unavailable(format!(
                "no limit of this kind by the policy `{}` is in force here; the view may be about to change",
                key.policy
            ))
        })?;
        let want = quotas::lot(key.kind, want, limit);
        let request = kept::QuotaRequest {
            key,
            lease_id: own_id,
            want,
            limit,
        };
        let lot = match request.key.kind {
            kept::QuotaKind::PerMinute => {
                let windows = &self.core.windows;
                let unleased = u64::from(unleased).min(limit);
                let unleased = u32::try_from(unleased).unwrap_or(u32::MAX);
                windows.lease(&request, unleased).await.map_err(window_status)?
            }
            kept::QuotaKind::Total => self.core.store.lease_quota(request).await.map_err(store_status)?,
        };
        let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        Ok(Response::new(LeaseQuotaResponse {
            lease_id,
            granted: lot.granted,
            valid_ms: millis(VALID),
            retry_after_ms: lot.retry_after.map_or(0, |wait| millis(wait).max(1)),
        }))
    }

    async fn r#return(
        &self,
        request: Request<ReturnQuotaRequest>,
    ) -> Result<Response<ReturnQuotaResponse>, Status> {
        let claims = super::authenticate(&self.core, request.metadata()).await?;
        let ReturnQuotaRequest {
            key,
            lease_id,
            unused,
        } = request.into_inner();
        let key = key_of(key, &claims)?;
        let own_id = own(&claims, &lease_id)?;
        match key.kind {
            kept::QuotaKind::PerMinute => {
                let windows = &self.core.windows;
                windows
                    .give_back(&key, &own_id, unused)
                    .await
                    .map_err(window_status)?;
            }
            kept::QuotaKind::Total => {
                let store = &self.core.store;
                store
                    .return_quota(key, &own_id, unused)
                    .await
                    .map_err(store_status)?;
            }
        }
        Ok(Response::new(ReturnQuotaResponse {}))
    }
}

/// A sidecar names its own leases, and returns no other's.
fn own(claims: &Claims, lease_id: &str) -> Result<String, Status> {
    if lease_id.is_empty() || lease_id.len() > LONGEST_ID {
        return Err(Status::invalid_argument(format!(
            "a lease needs an id of at most {LONGEST_ID} bytes"
        )));
    }
    Ok(format!("{}/{lease_id}", claims.sidecar))
}

fn window_status(error: WindowError) -> Status {
    match error {
        WindowError::Store(error) => store_status(error),
        WindowError::Full => Status::resource_exhausted(error.to_string()),
    }
}

fn key_of(key: Option<QuotaKey>, claims: &Claims) -> Result<kept::QuotaKey, Status> {
    let key = key.ok_or_else(|| Status::invalid_argument("no key"))?;
    let kind = match key.kind() {
        quota_key::Kind::PerMinute => kept::QuotaKind::PerMinute,
        quota_key::Kind::Total => kept::QuotaKind::Total,
        quota_key::Kind::Unspecified => {
            return Err(Status::invalid_argument("a quota is per minute or in total"));
        }
    };
    scope::check_agent(claims, &key.agent)?;
    Ok(kept::QuotaKey {
        policy: key.policy,
        namespace: claims.namespace.clone(),
        agent: key.agent,
        kind,
    })
}
