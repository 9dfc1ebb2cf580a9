//! Sidecars of pods, which prove themselves by their projected service-account token.

use std::time::Duration;

use proto::v1::SidecarInfo;
use serde_json::json;
use tonic::Status;

use super::{Service, digest, inside};
use crate::auth::{AccountError, Pod};
use crate::grpc::{Refused, store_status};
use crate::keys::hex;
use crate::store::sidecars::{Enrolled, JoinTokenDraft};
use crate::store::{Act, StoreError};
use net::token::TokenError;

/// The join token that stands for a pod's token is used at once.
const AT_ONCE: Duration = Duration::from_secs(60);

impl Service {
    /// Enrols the sidecar of a pod under the pod's UID, in the pod's namespace: by a join token for this one use, so that scope,
    /// expiry and records are those of every other enrolment.
    pub(super) async fn enrol_pod(
        &self,
        token: &str,
        info: &SidecarInfo,
    ) -> Result<(Enrolled, String), Status> {
        let accounts = self.core.accounts.as_ref().ok_or_else(|| {
            Status::unimplemented(
                "this control plane enrols nobody by service-account token; set auth.sidecar_accounts, or use a join token (`toolgate sidecars tokens create`)",
            )
        })?;
        let pod = accounts.pod(token).await.map_err(refused)?;
        inside("agent", &accounts.agents, &info.agents)?;
        match self.core.store.sidecar(&pod.uid).await {
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(store_status(error)),
            Ok(known) if known.revoked.is_some() => {
                return Err(Refused::Revoked.status(format!(
                    "the sidecar of pod {} was revoked; only another pod can enrol",
                    pod.uid
                )));
            }
            // The answer to its first attempt may have been lost: who was never heard of enrols anew.
            Ok(known) if known.last_seen == 0 => {}
            Ok(_) => {
                return Err(Status::failed_precondition(format!(
                    "the sidecar of pod {} has enrolled before, and has lost its spool; keep spool.dir in a volume of the pod, or delete the pod",
                    pod.uid
                )));
            }
        }
        let join_token = self.join_token_for(&pod, &accounts.agents).await?;
        self.redeem(&join_token, info, Some(pod.uid)).await
    }

    async fn join_token_for(&self, pod: &Pod, agents: &[String]) -> Result<String, Status> {
        let secret = hex::random_secret().map_err(|_| Status::internal("no randomness for a secret"))?;
        let draft = JoinTokenDraft {
            hash: digest(&secret),
            label: format!("pod {}", pod.uid),
            namespace: pod.namespace.clone(),
            agents: agents.to_vec(),
            upstreams: vec!["*".to_owned()],
            lifetime: Some(AT_ONCE),
            uses: Some(1),
            created_by: format!("serviceaccount:{}", pod.account),
        };
        let details = json!({"label": draft.label, "agents": draft.agents, "uses": 1});
        let act =
            Act::new("mesh.join_token_create", &draft.created_by, details).in_namespace(&draft.namespace);
        self.core
            .store
            .create_join_token(draft, act)
            .await
            .map_err(store_status)?;
        Ok(secret)
    }
}

fn refused(error: AccountError) -> Status {
    let message = error.to_string();
    match error {
        AccountError::Token(TokenError::NotReady) => Status::unavailable(message),
        AccountError::Token(_) | AccountError::NoAccount | AccountError::NoPod => {
            Status::unauthenticated(message)
        }
        AccountError::NotAllowed(_) => Status::permission_denied(message),
    }
}
