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
use crate::quotas;
use crate::store::quotas as kept;

/// How long a lot may be used.
const VALID: Duration = Duration::from_secs(10);

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
            key, want, lease_id, ..
        } = request.into_inner();
        let key = key_of(key)?;
        scope::check_agent(&claims, &key.agent)?;
        if lease_id.is_empty() {
            return Err(Status::invalid_argument("a lease needs an id"));
        }
        // What the caller takes for the limit is its own word.
        let limit = quotas::limit(&self.core.hub, &key).ok_or_else(|| {
            Status::unavailable(format!(
                "no limit of this kind by the policy `{}` is in force here; the view may be about to change",
                key.policy
            ))
        })?;
        let key = within(&claims, key);
        let want = quotas::lot(key.kind, want, limit);
        let request = kept::QuotaRequest {
            key,
            lease_id: lease_id.clone(),
            want,
            limit,
        };
        let lot = self.core.store.lease_quota(request).await.map_err(store_status)?;
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
        let key = key_of(key)?;
        scope::check_agent(&claims, &key.agent)?;
        self.core
            .store
            .return_quota(within(&claims, key), &lease_id, unused)
            .await
            .map_err(store_status)?;
        Ok(Response::new(ReturnQuotaResponse {}))
    }
}

/// Agents of one name in two namespaces are two agents: neither uses up what the other has. No id holds a line feed.
fn within(claims: &Claims, key: kept::QuotaKey) -> kept::QuotaKey {
    kept::QuotaKey {
        agent: format!("{}\n{}", claims.namespace, key.agent),
        ..key
    }
}

fn key_of(key: Option<QuotaKey>) -> Result<kept::QuotaKey, Status> {
    let key = key.ok_or_else(|| Status::invalid_argument("no key"))?;
    let kind = match key.kind() {
        quota_key::Kind::PerMinute => kept::QuotaKind::PerMinute,
        quota_key::Kind::Total => kept::QuotaKind::Total,
        quota_key::Kind::Unspecified => {
            return Err(Status::invalid_argument("a quota is per minute or in total"));
        }
    };
    Ok(kept::QuotaKey {
        policy: key.policy,
        agent: key.agent,
        kind,
    })
}
