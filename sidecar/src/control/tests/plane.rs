//! A control plane that does what a test says.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ed25519_dalek::{Signer, SigningKey};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use proto::v1;
use proto::view::{resource_digest, signed_text, view_digest};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

type Answers<T> = ReceiverStream<Result<T, Status>>;
/// What was asked for, and where states are told.
pub(crate) type ApprovalStream = (
    v1::WatchApprovalsRequest,
    mpsc::Sender<Result<v1::ApprovalState, Status>>,
);

/// One open stream: what the sidecar says, and what it is told.
pub(crate) struct Stream<Said, Told> {
    said: Streaming<Said>,
    tell: mpsc::Sender<Result<Told, Status>>,
}

impl<Said, Told> Stream<Said, Told> {
    pub(crate) async fn tell(&self, message: Told) {
        self.tell.send(Ok(message)).await.expect("the sidecar is gone");
    }

    pub(crate) async fn end(self, status: Status) {
        let _ = self.tell.send(Err(status)).await;
    }

    pub(crate) async fn next(&mut self) -> Option<Said> {
        let said = tokio::time::timeout(Duration::from_secs(10), self.said.message()).await;
        said.expect("the sidecar says nothing").ok().flatten()
    }
}

pub(crate) type WatchStream = Stream<v1::WatchRequest, v1::WatchResponse>;
pub(crate) type ReportStream = Stream<v1::ReportsRequest, v1::ReportsResponse>;

#[derive(Default)]
pub(crate) struct Script {
    pub(crate) epoch: AtomicU64,
    pub(crate) enrolments: AtomicU64,
    pub(crate) watches: AtomicU64,
    /// Answers to the next enrolments instead of a credential.
    pub(crate) refuse: Mutex<VecDeque<Status>>,
    pub(crate) open_epochs: Mutex<Vec<v1::OpenEpoch>>,
    /// Calls that a quota still grants.
    pub(crate) quota: AtomicU64,
    pub(crate) leases: AtomicU64,
    pub(crate) returned: AtomicU64,
    pub(crate) claims: Mutex<VecDeque<v1::claim_response::Outcome>>,
    pub(crate) published: Mutex<Vec<v1::PublishRequest>>,
    pub(crate) authorized: AtomicU64,
}

struct Service {
    script: Arc<Script>,
    watches: mpsc::Sender<WatchStream>,
    reports: mpsc::Sender<ReportStream>,
    approvals: mpsc::Sender<ApprovalStream>,
}

#[derive(Clone)]
struct Services(Arc<Service>);

/// The scripted plane.
pub(crate) struct Plane {
    pub(crate) script: Arc<Script>,
    connections: mpsc::Sender<tokio::io::DuplexStream>,
    watches: AsyncMutex<mpsc::Receiver<WatchStream>>,
    reports: AsyncMutex<mpsc::Receiver<ReportStream>>,
    approvals: AsyncMutex<mpsc::Receiver<ApprovalStream>>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

pub(crate) fn signing_key() -> SigningKey {
    SigningKey::from_bytes(&[3; 32])
}

impl Plane {
    pub(crate) fn start() -> Self {
        Self::with(Script::default())
    }

    pub(crate) fn with(script: Script) -> Self {
        let script = Arc::new(script);
        let (watch_sender, watches) = mpsc::channel(16);
        let (report_sender, reports) = mpsc::channel(16);
        let (approval_sender, approvals) = mpsc::channel(16);
        let (connections, accepted) = mpsc::channel::<tokio::io::DuplexStream>(16);
        let services = Services(Arc::new(Service {
            script: script.clone(),
            watches: watch_sender,
            reports: report_sender,
            approvals: approval_sender,
        }));
        let server = Server::builder()
            .add_service(v1::enrolment_server::EnrolmentServer::new(services.clone()))
            .add_service(v1::snapshots_server::SnapshotsServer::new(services.clone()))
            .add_service(v1::reports_server::ReportsServer::new(services.clone()))
            .add_service(v1::catalogue_server::CatalogueServer::new(services.clone()))
            .add_service(v1::approvals_server::ApprovalsServer::new(services.clone()))
            .add_service(v1::quotas_server::QuotasServer::new(services));
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let ended = shutdown.clone();
        let incoming = tokio_stream::StreamExt::map(ReceiverStream::new(accepted), Ok::<_, std::io::Error>);
        tasks.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                _ = server.serve_with_incoming(incoming) => {}
            }
        });
        Self {
            script,
            connections,
            watches: AsyncMutex::new(watches),
            reports: AsyncMutex::new(reports),
            approvals: AsyncMutex::new(approvals),
            shutdown,
            tasks,
        }
    }

    pub(crate) fn channel(&self) -> Channel {
        let (connections, shutdown, tasks) = (
            self.connections.clone(),
            self.shutdown.clone(),
            self.tasks.clone(),
        );
        Endpoint::from_static("http://plane.test").connect_with_connector_lazy(tower::service_fn(move |_| {
            let (connections, shutdown, tasks) = (connections.clone(), shutdown.clone(), tasks.clone());
            async move {
                let gone = || std::io::Error::other("the plane is gone");
                if shutdown.is_cancelled() {
                    return Err(gone());
                }
                let (ours, mut near) = tokio::io::duplex(256 * 1024);
                let (mut far, theirs) = tokio::io::duplex(256 * 1024);
                connections.send(theirs).await.map_err(|_| gone())?;
                tasks.spawn(async move {
                    tokio::select! {
                        () = shutdown.cancelled() => {}
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    }
                });
                Ok::<_, std::io::Error>(TokioIo::new(ours))
            }
        }))
    }

    /// The plane is unreachable from now on.
    pub(crate) fn cut(&self) {
        self.shutdown.cancel();
        self.tasks.close();
    }

    pub(crate) async fn watch(&self) -> WatchStream {
        let mut watches = self.watches.lock().await;
        let next = tokio::time::timeout(Duration::from_secs(10), watches.recv()).await;
        next.expect("no watch was opened").unwrap()
    }

    pub(crate) async fn reports(&self) -> ReportStream {
        let mut reports = self.reports.lock().await;
        let next = tokio::time::timeout(Duration::from_secs(10), reports.recv()).await;
        next.expect("no reports stream was opened").unwrap()
    }

    pub(crate) async fn approvals(&self) -> ApprovalStream {
        let mut approvals = self.approvals.lock().await;
        let next = tokio::time::timeout(Duration::from_secs(10), approvals.recv()).await;
        next.expect("no approvals stream was opened").unwrap()
    }
}

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

/// A view of desired state, as the plane makes it.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) resources: Vec<v1::Resource>,
}

pub(crate) fn revision(generation: u64, number: u64) -> v1::Revision {
    v1::Revision { generation, number }
}

pub(crate) fn resource(kind: &str, name: &str, number: u64, body: Vec<u8>) -> v1::Resource {
    v1::Resource {
        r#type: kind.into(),
        name: name.into(),
        revision: Some(revision(1, number)),
        body: body.into(),
        agents: vec!["billing-*".into()],
        namespaces: vec!["*".into()],
    }
}

/// A policy that allows everything to everybody.
pub(crate) fn policy(name: &str, number: u64) -> v1::Resource {
    let text = format!("name: {name}\nagent: \"*\"\nrules:\n  - tools: [\"*\"]\n    action: allow\n");
    let parsed = policy::Policy::parse_all(
        "test.yaml",
        &text,
        &policy::document::Source::Api,
        &policy::document::Lists::none(),
    );
    let parsed = parsed.unwrap_or_else(|problems| panic!("{problems:?}"));
    resource("policy", name, number, parsed[0].to_sent().unwrap())
}

impl State {
    pub(crate) fn of(resources: impl IntoIterator<Item = v1::Resource>) -> Self {
        Self {
            resources: resources.into_iter().collect(),
        }
    }

    fn proof(&self, at: v1::Revision) -> v1::StateProof {
        let mut sorted: Vec<_> = self.resources.iter().collect();
        sorted.sort_by_key(|resource| (&resource.r#type, &resource.name));
        let digests: Vec<_> = sorted.into_iter().map(resource_digest).collect();
        let digest = view_digest(&digests);
        let signature = signing_key().sign(&signed_text("scope", at, &digest));
        v1::StateProof {
            digest: digest.to_vec().into(),
            signature: signature.to_bytes().to_vec().into(),
            key_id: "k1".into(),
            scope: "scope".into(),
        }
    }

    pub(crate) fn full(&self, at: v1::Revision) -> v1::WatchResponse {
        let set = v1::ResourceSet {
            resources: self.resources.clone(),
        };
        message(v1::watch_response::Message::Full(v1::Full {
            revision: Some(at),
            compressed: zstd::bulk::compress(&set.encode_to_vec(), 1).unwrap().into(),
            proof: Some(self.proof(at)),
        }))
    }

    /// A delta that adds one resource.
    pub(crate) fn add(
        &mut self,
        added: v1::Resource,
        from: v1::Revision,
        to: v1::Revision,
    ) -> v1::WatchResponse {
        self.resources.push(added.clone());
        message(v1::watch_response::Message::Delta(v1::Delta {
            from: Some(from),
            to: Some(to),
            changed: vec![added],
            removed: vec![],
            proof: Some(self.proof(to)),
        }))
    }
}

pub(crate) fn message(message: v1::watch_response::Message) -> v1::WatchResponse {
    v1::WatchResponse {
        message: Some(message),
    }
}

pub(crate) fn heartbeat(ping: &v1::Ping, at: v1::Revision, stops: v1::StopSet) -> v1::WatchResponse {
    message(v1::watch_response::Message::Heartbeat(v1::Heartbeat {
        lease: Some(v1::Lease {
            nonce: ping.nonce.clone(),
            revision: Some(at),
            database_time: 1_000_000_000,
            read_age_ms: 0,
        }),
        stops: Some(stops),
    }))
}

/// A signed statement that the chain's head is record `seq` of generation 1.
pub(crate) fn checkpoint(seq: u64) -> v1::CheckpointNotice {
    let hash = chain::hash::Hash::from([u8::try_from(seq).unwrap(); 32]);
    let signed = chain::checkpoint::CheckpointSigner::from_seed(&[3; 32])
        .sign(&chain::checkpoint::Checkpoint {
            origin: "plane".into(),
            generation: 1,
            seq,
            hash,
            time: chain::timestamp::Timestamp::from_micros(1),
        })
        .unwrap();
    v1::CheckpointNotice {
        signature: signed.signature_bytes().unwrap().to_vec().into(),
        text: signed.text,
        key_id: "c1".into(),
        at: Some(v1::CheckpointRef {
            generation: 1,
            seq,
            hash: hash.as_bytes().to_vec().into(),
        }),
    }
}

impl WatchStream {
    pub(crate) async fn hello(&mut self) -> v1::Hello {
        match self.next().await.and_then(|said| said.message) {
            Some(v1::watch_request::Message::Hello(hello)) => hello,
            other => panic!("expected a Hello, got {other:?}"),
        }
    }

    /// The next message of the wanted kind; others are passed over.
    async fn find<T>(&mut self, wanted: impl Fn(v1::watch_request::Message) -> Option<T>) -> T {
        loop {
            let said = self.next().await.expect("the stream ended");
            if let Some(found) = said.message.and_then(&wanted) {
                return found;
            }
        }
    }

    pub(crate) async fn ping(&mut self) -> v1::Ping {
        self.find(|said| match said {
            v1::watch_request::Message::Ping(ping) => Some(ping),
            _ => None,
        })
        .await
    }

    pub(crate) async fn ack(&mut self) -> v1::Ack {
        self.find(|said| match said {
            v1::watch_request::Message::Ack(ack) => Some(ack),
            v1::watch_request::Message::Nack(nack) => panic!("{nack:?}"),
            _ => None,
        })
        .await
    }

    pub(crate) async fn nack(&mut self) -> v1::Nack {
        self.find(|said| match said {
            v1::watch_request::Message::Nack(nack) => Some(nack),
            _ => None,
        })
        .await
    }
}
