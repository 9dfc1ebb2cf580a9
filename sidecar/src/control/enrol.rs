//! Becoming known to the control plane, and staying so.

use std::sync::Arc;
use std::time::Duration;

use net::backoff::Backoff;
use policy::glob::Glob;
use proto::v1;
use proto::v1::enrol_request::{Proof, Resume};
use proto::v1::enrolment_client::EnrolmentClient;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::auth::{self, CALL_LIMIT};
use super::credentials::{Credentials, TrustedKeys};
use super::options::{JoinProof, Options};
use super::shared::{LinkState, Shared};
use crate::spool::{EpochGrant, SpoolError};

/// How often a refused sidecar looks whether its token has changed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Epochs that are asked for in a row when the control plane's count is behind the spool's.
const MAX_EPOCHS_SKIPPED: u64 = 10_000;

/// Why an attempt did not enrol this sidecar.
#[derive(Debug)]
enum Failure {
    Status(Status),
    /// The control plane's count of epochs is behind what this spool has used.
    EpochUsed,
    Other(String),
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// The enrolment of this process.
pub(super) struct Enrolment {
    shared: Arc<Shared>,
    join: Option<JoinProof>,
    info: v1::SidecarInfo,
    /// What is asked for, as far as it has been.
    upstreams: watch::Receiver<Vec<String>>,
    credentials: Option<Credentials>,
}

impl Enrolment {
    pub(super) fn new(shared: Arc<Shared>, options: &Options, credentials: Option<Credentials>) -> Self {
        let info = v1::SidecarInfo {
            name: options.name.clone(),
            labels: options.labels.clone().into_iter().collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            min_contract: proto::MIN_CONTRACT,
            max_contract: proto::MAX_CONTRACT,
            agents: options.agents.clone(),
            upstreams: Vec::new(),
        };
        Self {
            upstreams: shared.upstreams.subscribe(),
            shared,
            join: options.join.clone(),
            info,
            credentials,
        }
    }

    /// Enrols, and renews until shutdown.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.stay_enrolled() => {}
        }
    }

    async fn stay_enrolled(&mut self) {
        let mut backoff = Backoff::default();
        let mut skipped = 0;
        loop {
            let proof = self.proof();
            let failure = match self.enrol(proof.clone()).await {
                Ok(renewal) => {
                    backoff.reset();
                    skipped = 0;
                    self.renew(renewal).await;
                    continue;
                }
                Err(failure) => failure,
            };
            match failure {
                Failure::EpochUsed if skipped < MAX_EPOCHS_SKIPPED => skipped += 1,
                Failure::EpochUsed => self.wait(&mut backoff, "its count of epochs is far behind").await,
                Failure::Other(reason) => self.wait(&mut backoff, &reason).await,
                Failure::Status(status) if is_refusal(&status) => self.refused(&status, proof).await,
                Failure::Status(status) => self.wait(&mut backoff, status.message()).await,
            }
        }
    }

    async fn wait(&self, backoff: &mut Backoff, reason: &str) {
        tracing::warn!(reason, "this sidecar cannot enrol yet");
        self.shared.state.send_replace(LinkState::Connecting {
            last_error: Some(reason.to_owned()),
        });
        backoff.wait().await;
    }

    /// Waits until configuration, or what the token file holds, is another.
    async fn refused(&self, status: &Status, refused: Result<Proof, String>) {
        tracing::error!(code = ?status.code(), reason = status.message(),
            "the control plane refuses this sidecar; give it a valid join token");
        if auth::is_revoked(status) {
            self.shared.in_force.set_revoked(true);
        }
        self.shared.state.send_replace(LinkState::Refused {
            message: status.message().to_owned(),
        });
        loop {
            tokio::select! {
                () = self.shared.reconfigured.notified() => return,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
            if self.proof() != refused {
                return;
            }
        }
    }

    /// What is shown: the renewal secret of an earlier process, else what the configuration names.
    fn proof(&self) -> Result<Proof, String> {
        let joining = self.join.as_ref().map(read_proof).transpose();
        match (&self.credentials, joining) {
            (Some(kept), joining) => {
                let (join_token, service_account_token) = match joining {
                    Ok(Some(Proof::JoinToken(token))) => (token, String::new()),
                    Ok(Some(Proof::ServiceAccountToken(token))) => (String::new(), token),
                    Ok(Some(Proof::Resume(_)) | None) | Err(_) => Default::default(),
                };
                Ok(Proof::Resume(Resume {
                    sidecar_id: kept.sidecar_id.clone(),
                    renewal_secret: kept.renewal_secret.clone(),
                    join_token,
                    service_account_token,
                }))
            }
            (None, Ok(Some(proof))) => Ok(proof),
            (None, Ok(None)) => {
                Err("there is no join token; set one (`toolgate sidecars tokens create`)".to_owned())
            }
            (None, Err(reason)) => Err(reason),
        }
    }

    fn client(&self) -> EnrolmentClient<Channel> {
        EnrolmentClient::new(self.shared.channel.clone())
    }

    /// One attempt. Answers when to renew.
    async fn enrol(&mut self, proof: Result<Proof, String>) -> Result<Duration, Failure> {
        let request = v1::EnrolRequest {
            proof: Some(proof.map_err(Failure::Other)?),
            info: Some(v1::SidecarInfo {
                upstreams: self.upstreams.borrow_and_update().clone(),
                ..self.info.clone()
            }),
        };
        let response = within(self.client().enrol(request)).await?;
        self.adopt(response).await
    }

    async fn adopt(&mut self, response: v1::EnrolResponse) -> Result<Duration, Failure> {
        let credential = response.credential.unwrap_or_default();
        let credentials = Credentials {
            sidecar_id: response.sidecar_id,
            namespace: response.namespace.parse().map_err(|error| {
                Failure::Other(format!("the control plane gave an invalid namespace: {error}"))
            })?,
            renewal_secret: response.renewal_secret,
            agents: response.agents,
            upstreams: response.upstreams,
            digest_key_id: response.digest_key_id,
            digest_key: response.digest_key.to_vec(),
            public_keys: TrustedKeys::new(&response.public_keys),
        };
        let grant = EpochGrant {
            sidecar: credentials.sidecar_id.clone(),
            namespace: credentials.namespace.to_string(),
            epoch: response.epoch,
            agents: credentials.agents.clone(),
            open_epochs: response
                .open_epochs
                .iter()
                .map(|open| (open.epoch, open.committed))
                .collect(),
        };
        self.keep(credentials).await;
        let spool = self.shared.spool.clone();
        let opened = tokio::task::spawn_blocking(move || spool.open_epoch(&grant)).await;
        match opened {
            Ok(Ok(())) => {}
            Ok(Err(SpoolError::EpochUsed { .. })) => return Err(Failure::EpochUsed),
            Ok(Err(error)) => return Err(Failure::Other(error.to_string())),
            Err(error) => return Err(Failure::Other(error.to_string())),
        }
        self.use_credential(&credential)?;
        self.shared.in_force.set_revoked(false);
        self.publish(response.epoch);
        tracing::info!(
            epoch = response.epoch,
            server = response.server_version,
            "enrolled"
        );
        Ok(renew_after(&credential))
    }

    /// Keeps credentials on disk before they are used: the renewal secret is shown once.
    async fn keep(&mut self, credentials: Credentials) {
        if self.credentials.as_ref() != Some(&credentials) {
            let (dir, copy) = (self.shared.dir.clone(), credentials.clone());
            let saved = tokio::task::spawn_blocking(move || copy.save(&dir)).await;
            if let Ok(Err(error)) = saved {
                tracing::error!(%error, "the credentials are not kept on disk: after a restart this sidecar needs a join token");
            }
        }
        self.credentials = Some(credentials);
    }

    fn use_credential(&self, credential: &v1::Credential) -> Result<(), Failure> {
        if self.shared.attach.set(&credential.token) {
            Ok(())
        } else {
            Err(Failure::Other(
                "the control plane gave a credential that cannot be sent".to_owned(),
            ))
        }
    }

    fn publish(&self, epoch: u64) {
        let Some(credentials) = &self.credentials else {
            return;
        };
        self.shared.keys.store(Arc::new(credentials.public_keys.clone()));
        self.shared
            .identity
            .store(Some(Arc::new(credentials.identity(epoch))));
        self.shared.state.send_if_modified(|state| {
            let now = LinkState::Enrolled { epoch };
            let is_new = *state != now;
            *state = now;
            is_new
        });
    }

    /// Renews again and again; returns when only a new enrolment can help.
    async fn renew(&mut self, first: Duration) {
        let mut wait = first;
        let mut backoff = Backoff::default();
        let mut upstreams = self.upstreams.clone();
        loop {
            let covered = self.covered();
            tokio::select! {
                () = until_uncovered(&mut upstreams, &covered) => {
                    if let Some(next) = self.widen(&mut backoff, &mut upstreams).await {
                        wait = next;
                    }
                    continue;
                }
                () = tokio::time::sleep(wait) => {}
                // A little later, so that a credential that is refused again and again does not spin.
                () = self.shared.renew_now.notified() => backoff.wait().await,
            }
            match self.renew_once().await {
                Ok(next) => {
                    wait = next;
                    backoff.reset();
                }
                Err(Failure::Status(status)) if is_refusal(&status) || status.code() == Code::NotFound => {
                    tracing::warn!(code = ?status.code(), reason = status.message(), "the credential is not renewed; enrolling again");
                    return;
                }
                Err(Failure::Status(status))
                    if matches!(status.code(), Code::Aborted | Code::FailedPrecondition) =>
                {
                    tracing::warn!(
                        reason = status.message(),
                        "the credential is not renewed; enrolling again"
                    );
                    return;
                }
                Err(failure) => {
                    tracing::warn!(?failure, "the credential is not renewed yet");
                    wait = backoff.next_delay();
                }
            }
        }
    }

    /// Enrols again for upstreams that the credential does not cover; refused, this sidecar goes on with what it has. Answers when to renew.
    async fn widen(
        &mut self,
        backoff: &mut Backoff,
        upstreams: &mut watch::Receiver<Vec<String>>,
    ) -> Option<Duration> {
        let proof = self.proof();
        match self.enrol(proof).await {
            Ok(next) => Some(next),
            Err(Failure::Status(status)) if is_refusal(&status) => {
                tracing::error!(code = ?status.code(), reason = status.message(),
                    "the control plane refuses the new upstreams; give this sidecar a join token that allows them");
                None
            }
            Err(failure) => {
                tracing::warn!(?failure, "the new upstreams are not asked for yet");
                backoff.wait().await;
                upstreams.mark_changed();
                None
            }
        }
    }

    /// Globs over the upstreams that the credential covers.
    fn covered(&self) -> Vec<Glob> {
        let upstreams = self
            .credentials
            .iter()
            .flat_map(|credentials| &credentials.upstreams);
        upstreams.filter_map(|glob| glob.parse().ok()).collect()
    }

    async fn renew_once(&mut self) -> Result<Duration, Failure> {
        let identity = self.shared.identity.load_full();
        let epoch = identity.map_or(0, |identity| identity.epoch);
        let Some(mut credentials) = self.credentials.clone() else {
            return Err(Failure::Other("there are no credentials".to_owned()));
        };
        let request = v1::RenewRequest {
            sidecar_id: credentials.sidecar_id.clone(),
            epoch,
            renewal_secret: credentials.renewal_secret.clone(),
        };
        let response = within(self.client().renew(request)).await?;
        let credential = response.credential.unwrap_or_default();
        credentials.public_keys = TrustedKeys::new(&response.public_keys);
        if !response.digest_key_id.is_empty() {
            credentials.digest_key_id = response.digest_key_id;
            credentials.digest_key = response.digest_key.to_vec();
        }
        self.keep(credentials).await;
        self.use_credential(&credential)?;
        self.publish(epoch);
        Ok(renew_after(&credential))
    }
}

/// Waits until upstreams change to some that no glob covers.
async fn until_uncovered(upstreams: &mut watch::Receiver<Vec<String>>, covered: &[Glob]) {
    while upstreams.changed().await.is_ok() {
        let names = upstreams.borrow_and_update();
        let is_covered = |name: &String| covered.iter().any(|glob| glob.matches(name));
        if !names.iter().all(is_covered) {
            return;
        }
    }
    // INVARIANT: what is shared holds the sender, so the loop does not end.
    std::future::pending::<()>().await;
}

/// Two thirds of the credential's life, a tenth of it jittered away.
fn renew_after(credential: &v1::Credential) -> Duration {
    let lifetime = Duration::from_millis(credential.lifetime_ms.max(100));
    let fraction = getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX));
    lifetime.mul_f64(2.0 / 3.0 - 0.1 * fraction)
}

fn is_refusal(status: &Status) -> bool {
    auth::is_final(status) || status.code() == Code::Unauthenticated
}

fn read_proof(proof: &JoinProof) -> Result<Proof, String> {
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("cannot read the token file {}: {error}; it is tried again, `toolgate sidecars tokens create > FILE` makes a join token", path.display()))
    };
    match proof {
        JoinProof::Token(token) => Ok(Proof::JoinToken(token.reveal().to_owned())),
        JoinProof::TokenFile(path) => read(path).map(Proof::JoinToken),
        JoinProof::ServiceAccountFile(path) => read(path).map(Proof::ServiceAccountToken),
    }
}

async fn within<T>(call: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, Status> {
    match tokio::time::timeout(CALL_LIMIT, call).await {
        Ok(answer) => answer.map(tonic::Response::into_inner),
        Err(_) => Err(Status::deadline_exceeded(
            "the control plane did not answer in time",
        )),
    }
}
