//! `Enrolment`: join tokens and renewal secrets into credentials.

mod pods;
mod refused;

pub(crate) use self::refused::Refusals;

use std::sync::Arc;

use net::clock::micros;
use proto::v1::enrol_request::{Proof, Resume};
use proto::v1::enrolment_server::Enrolment;
use proto::v1::{
    Credential, EnrolRequest, EnrolResponse, OpenEpoch, RenewRequest, RenewResponse, SidecarInfo,
};
use sha2::{Digest, Sha256};
use tonic::{Request, Response, Status};

use super::refusal::Refused;
use super::{scope, store_status};
use crate::auth::{Claims, credential};
use crate::core::Core;
use crate::keys::{KeyError, hex};
use crate::store::sidecars::{Enrolled, Redemption, Resumption, Sidecar, SidecarFacts, SidecarScope};
use crate::store::{EnrolRefusal, Micros, StoreError};

pub(super) struct Service {
    core: Arc<Core>,
}

impl Service {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    async fn redeem(
        &self,
        token: &str,
        info: &SidecarInfo,
        sidecar_id: Option<String>,
    ) -> Result<(Enrolled, String), Status> {
        let facts = facts(info)?;
        let token_hash = digest(token);
        let token = self
            .core
            .store
            .join_token(token_hash)
            .await
            .map_err(store_status)?;
        let agents = inside("agent", &token.agents, &info.agents)?;
        let upstreams = inside("upstream", &token.upstreams, &info.upstreams)?;
        let secret = hex::random_secret().map_err(|_| Status::internal("no randomness for a secret"))?;
        let redemption = Redemption {
            token_hash,
            sidecar_id,
            renewal_hash: digest(&secret),
            agents,
            upstreams,
            facts,
        };
        let enrolled = self.core.store.redeem(redemption).await.map_err(store_status)?;
        Ok((enrolled, secret))
    }

    async fn resume(&self, resume: &Resume, info: &SidecarInfo) -> Result<(Enrolled, String), Status> {
        let facts = facts(info)?;
        let known = match self.core.store.sidecar(&resume.sidecar_id).await {
            Ok(known) => known,
            Err(StoreError::NotFound { .. }) if !resume.join_token.is_empty() => {
                return self.redeem(&resume.join_token, info, None).await;
            }
            Err(StoreError::NotFound { .. }) if !resume.service_account_token.is_empty() => {
                return self.enrol_pod(&resume.service_account_token, info).await;
            }
            Err(StoreError::NotFound { .. }) => {
                return Err(super::enrol_status(&EnrolRefusal::UnknownSidecar(
                    resume.sidecar_id.clone(),
                )));
            }
            Err(other) => return Err(store_status(other)),
        };
        let (scope, token_hash) = self.scope_for(&known, resume, info).await?;
        let resumption = Resumption {
            sidecar_id: known.id.clone(),
            renewal_hash: digest(&resume.renewal_secret),
            token_hash,
            agents: inside("agent", &scope.agents, &info.agents)?,
            upstreams: inside("upstream", &scope.upstreams, &info.upstreams)?,
            facts,
        };
        let enrolled = self.core.store.resume(resumption).await.map_err(store_status)?;
        Ok((enrolled, resume.renewal_secret.clone()))
    }

    /// What a known sidecar may ask for: the scope that it has, or where it asks for more, that of a join token which allows it.
    async fn scope_for(
        &self,
        known: &Sidecar,
        resume: &Resume,
        info: &SidecarInfo,
    ) -> Result<(SidecarScope, Option<[u8; 32]>), Status> {
        if resume.join_token.is_empty() || covers(&known.scope, info) {
            return Ok((known.scope.clone(), None));
        }
        let token_hash = digest(&resume.join_token);
        let token = match self.core.store.join_token(token_hash).await {
            Ok(token) => token,
            // What is refused is what was asked for, not the token that the sidecar once enrolled by.
            Err(StoreError::Enrolment(_)) => return Ok((known.scope.clone(), None)),
            Err(other) => return Err(store_status(other)),
        };
        let scope = SidecarScope {
            agents: token.agents,
            upstreams: token.upstreams,
        };
        if token.namespace == known.namespace && covers(&scope, info) {
            Ok((scope, Some(token_hash)))
        } else {
            Ok((known.scope.clone(), None))
        }
    }

    async fn accept(&self, proof: &Proof, info: &SidecarInfo) -> Result<(Enrolled, String), Status> {
        match proof {
            Proof::JoinToken(token) => self.redeem(token, info, None).await,
            Proof::Resume(resume) => self.resume(resume, info).await,
            Proof::ServiceAccountToken(token) => self.enrol_pod(token, info).await,
        }
    }

    fn credential(&self, sidecar: &Sidecar, now: Micros) -> Result<Credential, Status> {
        let lifetime = self.core.lifetimes.credential;
        let claims = Claims {
            sidecar: sidecar.id.clone(),
            namespace: sidecar.namespace.clone(),
            epoch: sidecar.epoch,
            agents: sidecar.agents.clone(),
            upstreams: sidecar.upstreams.clone(),
            expires_at: now.saturating_add(micros(lifetime)),
        };
        let key = self.core.keys.credential_key();
        let token = credential::sign(&claims, &key.id, &key.key)
            .map_err(|_| Status::internal("the credential cannot be made"))?;
        Ok(Credential {
            token,
            expires_at: claims.expires_at,
            lifetime_ms: u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX),
        })
    }

    async fn digest_key(&self, namespace: &str) -> Result<crate::keys::Secret, Status> {
        self.core
            .keys
            .digest_key(&*self.core.store, namespace)
            .await
            .map_err(|error| match error {
                KeyError::Store(error) => store_status(error),
                other => {
                    tracing::error!(error = %other, namespace, "no digest key");
                    Status::unavailable(
                        "the namespace's digest key cannot be had; see the control plane's log",
                    )
                }
            })
    }
}

#[tonic::async_trait]
impl Enrolment for Service {
    async fn enrol(&self, request: Request<EnrolRequest>) -> Result<Response<EnrolResponse>, Status> {
        let request = request.into_inner();
        let info = request.info.unwrap_or_default();
        let contract = contract(&info)?;
        let proof = request.proof.ok_or_else(|| {
            Status::invalid_argument("no proof: send a join token or an id with its renewal secret")
        })?;
        let (enrolled, renewal_secret) = match self.accept(&proof, &info).await {
            Ok(accepted) => accepted,
            Err(status) => {
                refused::keep(&self.core, &proof, &status).await;
                return Err(status);
            }
        };
        let Enrolled {
            sidecar,
            open_epochs,
            database_time,
        } = enrolled;
        let digest_key = self.digest_key(&sidecar.namespace).await?;
        tracing::info!(sidecar = %sidecar.id, name = %sidecar.facts.name, namespace = %sidecar.namespace, epoch = sidecar.epoch, "sidecar enrolled");
        Ok(Response::new(EnrolResponse {
            credential: Some(self.credential(&sidecar, database_time)?),
            sidecar_id: sidecar.id,
            namespace: sidecar.namespace,
            epoch: sidecar.epoch,
            renewal_secret,
            agents: sidecar.agents,
            upstreams: sidecar.upstreams,
            digest_key: digest_key.key.to_vec().into(),
            digest_key_id: digest_key.id,
            public_keys: self.core.keys.public_keys(),
            contract,
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
            database_time,
            open_epochs: open_epochs
                .into_iter()
                .map(|mark| OpenEpoch {
                    epoch: mark.epoch,
                    committed: mark.committed,
                })
                .collect(),
        }))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        let RenewRequest {
            sidecar_id,
            epoch,
            renewal_secret,
        } = request.into_inner();
        let hash = digest(&renewal_secret);
        let sidecar = self
            .core
            .store
            .check_renewal(&sidecar_id, epoch, hash)
            .await
            .map_err(store_status)?;
        let digest_key = self.digest_key(&sidecar.namespace).await?;
        let now = self.core.primary.database_now();
        let credential = self.credential(&sidecar, now)?;
        self.core
            .sidecars
            .renewed(&sidecar.id, epoch, credential.expires_at, now);
        Ok(Response::new(RenewResponse {
            credential: Some(credential),
            public_keys: self.core.keys.public_keys(),
            digest_key: digest_key.key.to_vec().into(),
            digest_key_id: digest_key.id,
        }))
    }
}

pub(crate) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret).into()
}

/// Whether all that is asked for lies inside a scope.
fn covers(scope: &SidecarScope, info: &SidecarInfo) -> bool {
    scope::all_covered(&scope.agents, &info.agents) && scope::all_covered(&scope.upstreams, &info.upstreams)
}

/// What a sidecar gets of what it may have: what it asks for, or all where it names nothing.
fn inside(what: &str, given: &[String], asked: &[String]) -> Result<Vec<String>, Status> {
    if asked.is_empty() {
        return Ok(given.to_vec());
    }
    scope::check_globs(what, asked)?;
    if scope::all_covered(given, asked) {
        return Ok(asked.to_vec());
    }
    Err(Refused::OutOfScope.status(format!(
        "the {what}s asked for ({}) do not lie inside those of the join token ({})",
        asked.join(", "),
        given.join(", ")
    )))
}

fn contract(info: &SidecarInfo) -> Result<u32, Status> {
    let (min, max) = (
        info.min_contract.max(proto::MIN_CONTRACT),
        info.max_contract.min(proto::MAX_CONTRACT),
    );
    if min > max {
        return Err(Refused::VersionUnsupported.status(format!(
            "this control plane speaks contract {} to {}, the sidecar {} to {}; bring both to neighbouring versions",
            proto::MIN_CONTRACT,
            proto::MAX_CONTRACT,
            info.min_contract,
            info.max_contract
        )));
    }
    Ok(max)
}

fn facts(info: &SidecarInfo) -> Result<SidecarFacts, Status> {
    Ok(SidecarFacts {
        name: info.name.clone(),
        labels: info.labels.clone().into_iter().collect(),
        version: info.version.clone(),
        contract: contract(info)?,
    })
}
