//! What the scripted plane answers, service by service.

use std::sync::atomic::Ordering;

use proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{Answers, Services, Stream, signing_key};

impl Services {
    fn authorize<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let epoch = self.0.script.epoch.load(Ordering::SeqCst);
        let expected = format!("Bearer credential-{epoch}");
        match request.metadata().get("authorization") {
            Some(given) if given.as_bytes() == expected.as_bytes() => {
                self.0.script.authorized.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
            Some(_) | None => Err(Status::unauthenticated("wrong credential")),
        }
    }
}

#[tonic::async_trait]
impl v1::enrolment_server::Enrolment for Services {
    async fn enrol(&self, request: Request<v1::EnrolRequest>) -> Result<Response<v1::EnrolResponse>, Status> {
        let script = &self.0.script;
        script.enrolments.fetch_add(1, Ordering::SeqCst);
        if let Some(refused) = script.refuse.lock().unwrap().pop_front() {
            return Err(refused);
        }
        match request.into_inner().proof.unwrap() {
            v1::enrol_request::Proof::JoinToken(token) => assert_eq!(token, "join me"),
            v1::enrol_request::Proof::Resume(resume) => assert_eq!(resume.renewal_secret, "renew me"),
            v1::enrol_request::Proof::ServiceAccountToken(_) => panic!("not asked for"),
        }
        let epoch = script.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(Response::new(v1::EnrolResponse {
            sidecar_id: "s1".into(),
            namespace: "default".into(),
            epoch,
            credential: Some(v1::Credential {
                token: format!("credential-{epoch}"),
                expires_at: 0,
                lifetime_ms: 3_600_000,
            }),
            renewal_secret: "renew me".into(),
            agents: vec!["*".into()],
            upstreams: vec!["*".into()],
            digest_key: vec![9; 32].into(),
            digest_key_id: "d1".into(),
            public_keys: [("k1", "snapshot"), ("c1", "checkpoint")]
                .map(|(id, purpose)| v1::PublicKey {
                    id: id.into(),
                    purpose: purpose.into(),
                    ed25519: signing_key().verifying_key().to_bytes().to_vec().into(),
                })
                .to_vec(),
            contract: 1,
            open_epochs: script.open_epochs.lock().unwrap().clone(),
            ..v1::EnrolResponse::default()
        }))
    }

    async fn renew(&self, _: Request<v1::RenewRequest>) -> Result<Response<v1::RenewResponse>, Status> {
        Err(Status::permission_denied("not scripted"))
    }
}

#[tonic::async_trait]
impl v1::snapshots_server::Snapshots for Services {
    type WatchStream = Answers<v1::WatchResponse>;

    async fn watch(
        &self,
        request: Request<Streaming<v1::WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.authorize(&request)?;
        self.0.script.watches.fetch_add(1, Ordering::SeqCst);
        let (tell, answers) = mpsc::channel(16);
        let stream = Stream {
            said: request.into_inner(),
            tell,
        };
        // A test that has no room for more streams wants them to end at once.
        let _ = self.0.watches.try_send(stream);
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

#[tonic::async_trait]
impl v1::reports_server::Reports for Services {
    type StreamStream = Answers<v1::ReportsResponse>;

    async fn stream(
        &self,
        request: Request<Streaming<v1::ReportsRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        self.authorize(&request)?;
        let (tell, answers) = mpsc::channel(16);
        let stream = Stream {
            said: request.into_inner(),
            tell,
        };
        let _ = self.0.reports.try_send(stream);
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

#[tonic::async_trait]
impl v1::catalogue_server::Catalogue for Services {
    async fn publish(
        &self,
        request: Request<v1::PublishRequest>,
    ) -> Result<Response<v1::PublishResponse>, Status> {
        self.authorize(&request)?;
        let request = request.into_inner();
        if request.upstream == "outside" {
            return Err(Status::permission_denied("out of scope"));
        }
        let pin = |tool: &v1::DeclaredTool| v1::PinStatus {
            tool: tool.name.clone(),
            status: v1::pin_status::Status::Pinned.into(),
        };
        let pins = request.tools.iter().map(pin).collect();
        self.0.script.published.lock().unwrap().push(request);
        Ok(Response::new(v1::PublishResponse {
            pins,
            revision: Some(v1::Revision::default()),
            pinning_off: false,
        }))
    }
}

#[tonic::async_trait]
impl v1::approvals_server::Approvals for Services {
    type WatchStream = Answers<v1::ApprovalState>;

    async fn open(
        &self,
        request: Request<v1::OpenApprovalRequest>,
    ) -> Result<Response<v1::ApprovalState>, Status> {
        self.authorize(&request)?;
        Ok(Response::new(approval(
            &request.into_inner().call_id,
            v1::approval_state::Status::Pending,
            5,
        )))
    }

    async fn watch(
        &self,
        request: Request<v1::WatchApprovalsRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        self.authorize(&request)?;
        let (tell, answers) = mpsc::channel(16);
        let _ = self.0.approvals.try_send((request.into_inner(), tell));
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn claim(&self, request: Request<v1::ClaimRequest>) -> Result<Response<v1::ClaimResponse>, Status> {
        self.authorize(&request)?;
        match self.0.script.claims.lock().unwrap().pop_front() {
            Some(outcome) => Ok(Response::new(v1::ClaimResponse {
                outcome: Some(outcome),
            })),
            None => Err(Status::unavailable("not now")),
        }
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelApprovalRequest>,
    ) -> Result<Response<v1::ApprovalState>, Status> {
        self.authorize(&request)?;
        Ok(Response::new(approval(
            &request.into_inner().id,
            v1::approval_state::Status::Cancelled,
            6,
        )))
    }
}

#[tonic::async_trait]
impl v1::quotas_server::Quotas for Services {
    async fn lease(
        &self,
        request: Request<v1::LeaseQuotaRequest>,
    ) -> Result<Response<v1::LeaseQuotaResponse>, Status> {
        self.authorize(&request)?;
        let request = request.into_inner();
        self.0.script.leases.fetch_add(1, Ordering::SeqCst);
        let left = self.0.script.quota.load(Ordering::SeqCst);
        let granted = u64::from(request.want).min(left);
        self.0.script.quota.fetch_sub(granted, Ordering::SeqCst);
        Ok(Response::new(v1::LeaseQuotaResponse {
            lease_id: request.lease_id,
            granted: u32::try_from(granted).unwrap(),
            valid_ms: 2_000,
            retry_after_ms: 7_000,
        }))
    }

    async fn r#return(
        &self,
        request: Request<v1::ReturnQuotaRequest>,
    ) -> Result<Response<v1::ReturnQuotaResponse>, Status> {
        self.authorize(&request)?;
        let unused = u64::from(request.into_inner().unused);
        self.0.script.returned.fetch_add(unused, Ordering::SeqCst);
        Ok(Response::new(v1::ReturnQuotaResponse {}))
    }
}

pub(crate) fn approval(id: &str, status: v1::approval_state::Status, cursor: u64) -> v1::ApprovalState {
    v1::ApprovalState {
        id: id.to_owned(),
        status: status.into(),
        cursor,
        ..v1::ApprovalState::default()
    }
}
