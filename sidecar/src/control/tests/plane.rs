//! A control plane that does what a test says.

mod services;
mod view;

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ed25519_dalek::SigningKey;
use hyper_util::rt::TokioIo;
use proto::v1;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Status, Streaming};

pub(crate) use services::approval;
pub(crate) use view::{State, checkpoint, heartbeat, message, policy, resource, revision};

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
