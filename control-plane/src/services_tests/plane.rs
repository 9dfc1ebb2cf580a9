//! A control plane in a temporary directory, and sidecars that enrol with it.

use std::time::Duration;

use crate::store::desired::{Expected, PolicyRow};
use crate::store::sidecars::JoinTokenDraft;
use crate::store::{Act, Store};
use crate::{ControlPlane, Options, documents};
use policy::Policy;
use policy::document::{Lists, Source};
use proto::v1::enrol_request::{Proof, Resume};
use proto::v1::enrolment_client::EnrolmentClient;
use proto::v1::{EnrolRequest, EnrolResponse, SidecarInfo};
use sha2::{Digest, Sha256};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Nothing here takes so long.
pub(super) const LONG: Duration = Duration::from_secs(20);

pub(super) struct Plane {
    pub(super) plane: ControlPlane,
    pub(super) channel: Channel,
    pub(super) directory: tempfile::TempDir,
}

impl Plane {
    pub(super) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(super) async fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::in_directory(directory.path());
        options.limits.drain = Duration::from_millis(300);
        options.lifetimes.checkpoint = Duration::from_millis(200);
        change(&mut options);
        let plane = crate::start(options).await.unwrap();
        let channel = plane.in_memory_channel();
        Self {
            plane,
            channel,
            directory,
        }
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.plane.core().store
    }

    pub(super) async fn put_policy(&self, text: &str) -> PolicyRow {
        let policies = Policy::parse_all("api", text, &Source::Api, &Lists::none()).unwrap();
        let draft = documents::draft(&policies[0], text).unwrap();
        let act = Act::new("mesh.policy_edit", "test", serde_json::json!({}));
        self.store().put_policy(draft, Expected::Any, act).await.unwrap()
    }

    pub(super) async fn join_token(&self, namespace: &str, agents: &[&str]) -> String {
        let token = format!("token-{namespace}-{}", agents.join(","));
        let draft = JoinTokenDraft {
            hash: Sha256::digest(&token).into(),
            label: String::new(),
            namespace: namespace.to_owned(),
            agents: agents.iter().map(|&agent| agent.to_owned()).collect(),
            upstreams: vec!["*".to_owned()],
            lifetime: None,
            uses: None,
            created_by: "test".to_owned(),
        };
        let act = Act::new("mesh.join_token_create", "test", serde_json::json!({}));
        self.store().create_join_token(draft, act).await.unwrap();
        token
    }

    pub(super) async fn enrol(&self, namespace: &str, agents: &[&str]) -> Enrolled {
        let token = self.join_token(namespace, agents).await;
        self.enrol_by(Proof::JoinToken(token)).await.unwrap()
    }

    pub(super) async fn enrol_by(&self, proof: Proof) -> Result<Enrolled, Status> {
        self.enrol_for(proof, &[], &[]).await
    }

    pub(super) async fn enrol_for(
        &self,
        proof: Proof,
        agents: &[&str],
        upstreams: &[&str],
    ) -> Result<Enrolled, Status> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let info = SidecarInfo {
            min_contract: 1,
            max_contract: 1,
            agents: owned(agents),
            upstreams: owned(upstreams),
            ..SidecarInfo::default()
        };
        let request = EnrolRequest {
            info: Some(info),
            proof: Some(proof),
        };
        let answer = EnrolmentClient::new(self.channel.clone()).enrol(request).await?;
        Ok(Enrolled {
            answer: answer.into_inner(),
        })
    }

    pub(super) async fn resume(&self, enrolled: &Enrolled) -> Result<Enrolled, Status> {
        self.enrol_by(enrolled.resumption("")).await
    }
}

/// A policy that allows one agent everything.
pub(super) fn policy(name: &str, agent: &str, namespace: &str) -> String {
    format!(
        "name: {name}\nagent: \"{agent}\"\nnamespace: \"{namespace}\"\nrules:\n  - tools: [\"*\"]\n    action: allow\n"
    )
}

pub(super) struct Enrolled {
    pub(super) answer: EnrolResponse,
}

impl Enrolled {
    /// What the next process proves itself by; it has this join token too.
    pub(super) fn resumption(&self, join_token: &str) -> Proof {
        Proof::Resume(Resume {
            sidecar_id: self.answer.sidecar_id.clone(),
            renewal_secret: self.answer.renewal_secret.clone(),
            join_token: join_token.to_owned(),
            service_account_token: String::new(),
        })
    }
}

impl Enrolled {
    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let token = &self.answer.credential.as_ref().unwrap().token;
        let mut request = Request::new(message);
        request
            .metadata_mut()
            .insert("authorization", format!("Bearer {token}").parse().unwrap());
        request
    }
}

/// The code in a status' details.
pub(super) fn refusal(status: &Status) -> String {
    use prost::Message as _;
    proto::v1::Refusal::decode(status.details()).unwrap().code
}

/// Waits until a condition holds.
pub(super) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(
        tokio::time::timeout(LONG, waiting).await.is_ok(),
        "{what} did not come"
    );
}
