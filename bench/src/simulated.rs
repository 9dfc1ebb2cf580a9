//! Sidecars that exist only as gRPC clients: they enrol, watch and report as real ones do, and govern nothing.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use proto::v1::enrol_request::Proof;
use proto::v1::enrolment_client::EnrolmentClient;
use proto::v1::reports_client::ReportsClient;
use proto::v1::reports_request::Message as Report;
use proto::v1::snapshots_client::SnapshotsClient;
use proto::v1::watch_request::Message as Say;
use proto::v1::watch_response::Message as Hear;
use proto::v1::{
    Ack, EnrolRequest, Hello, Opening, Ping, RecordBatch, ReportsRequest, Revision, SidecarInfo, WatchRequest,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};

use crate::error::{Result, unexpected};

const PING: Duration = Duration::from_secs(2);

/// A sidecar that has enrolled.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// Its id.
    pub id: String,
    /// Its epoch.
    pub epoch: u64,
    channel: Channel,
    authorization: String,
}

/// A view that a simulated sidecar has taken and acknowledged.
#[derive(Debug, Clone, Copy)]
pub struct Applied {
    /// The view's revision.
    pub revision: Revision,
    /// When the acknowledgement was handed over to be sent.
    pub at: Instant,
}

impl Simulated {
    /// Connects and enrols with a join token.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub async fn enrol(address: SocketAddr, token: &str, name: &str) -> Result<Self> {
        let channel = Endpoint::from_shared(format!("http://{address}"))
            .map_err(unexpected)?
            .tcp_nodelay(true)
            .connect()
            .await
            .map_err(|error| unexpected(format!("connect to {address}: {error}")))?;
        let request = EnrolRequest {
            proof: Some(Proof::JoinToken(token.to_owned())),
            info: Some(SidecarInfo {
                name: name.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                min_contract: proto::MIN_CONTRACT,
                max_contract: proto::MAX_CONTRACT,
                agents: vec!["*".to_owned()],
                ..SidecarInfo::default()
            }),
        };
        let answer = EnrolmentClient::new(channel.clone()).enrol(request).await;
        let answer = answer
            .map_err(|status| unexpected(format!("enrol: {status}")))?
            .into_inner();
        let credential = answer.credential.unwrap_or_default();
        Ok(Self {
            id: answer.sidecar_id,
            epoch: answer.epoch,
            channel,
            authorization: format!("Bearer {}", credential.token),
        })
    }

    fn request<T>(&self, message: T) -> Result<Request<T>> {
        let mut request = Request::new(message);
        let value = MetadataValue::try_from(&self.authorization).map_err(unexpected)?;
        request.metadata_mut().insert("authorization", value);
        Ok(request)
    }

    /// Watches desired state until the receiver of `applied` is gone; acknowledges each view at once, without checking it.
    ///
    /// # Errors
    /// When the stream ends.
    pub async fn watch(self, applied: mpsc::Sender<Applied>) -> Result<()> {
        let (say, said) = mpsc::channel(16);
        let stale = |error: mpsc::error::SendError<WatchRequest>| unexpected(error);
        say.send(asking(Say::Hello(Hello::default())))
            .await
            .map_err(stale)?;
        let request = self.request(ReceiverStream::new(said))?;
        let mut client = SnapshotsClient::new(self.channel.clone()).max_decoding_message_size(256 << 20);
        let answer = client.watch(request).await;
        let mut stream = answer
            .map_err(|status| unexpected(format!("watch: {status}")))?
            .into_inner();
        let mut ping = tokio::time::interval(PING);
        loop {
            let message = tokio::select! {
                () = applied.closed() => return Ok(()),
                _ = ping.tick() => {
                    let nonce = vec![7; 16].into();
                    say.send(asking(Say::Ping(Ping { nonce, ..Ping::default() }))).await.map_err(stale)?;
                    continue;
                }
                message = stream.message() => message.map_err(|status| unexpected(format!("watch: {status}")))?,
            };
            let Some(message) = message else {
                return Err(unexpected("the control plane ended a watch"));
            };
            let revision = match message.message {
                Some(Hear::Full(full)) => full.revision,
                Some(Hear::Delta(delta)) => delta.to,
                _ => None,
            };
            if let Some(revision) = revision {
                let ack = Ack {
                    revision: Some(revision),
                    apply_us: 1,
                };
                say.send(asking(Say::Ack(ack))).await.map_err(stale)?;
                let at = Instant::now();
                if applied.send(Applied { revision, at }).await.is_err() {
                    return Ok(());
                }
            }
        }
    }

    /// Sends batches of its records as fast as the window allows, and waits until all are in the chain.
    ///
    /// # Errors
    /// When the stream ends before.
    pub async fn report(self, batches: Vec<RecordBatch>) -> Result<()> {
        let (say, said) = mpsc::channel(2);
        let gone = |error: mpsc::error::SendError<ReportsRequest>| unexpected(error);
        let opening = Report::Opening(Opening {
            epochs: vec![self.epoch],
        });
        say.send(reporting(opening)).await.map_err(gone)?;
        let request = self.request(ReceiverStream::new(said))?;
        let answer = ReportsClient::new(self.channel.clone()).stream(request).await;
        let mut stream = answer
            .map_err(|status| unexpected(format!("report: {status}")))?
            .into_inner();
        let (mut sent, mut committed, mut window) = (0, 0, 256);
        let mut batches = batches.into_iter().peekable();
        loop {
            while let Some(batch) = batches.next_if(|_| sent - committed < window) {
                sent = batch.records.last().map_or(sent, |record| record.n);
                say.send(reporting(Report::Batch(batch))).await.map_err(gone)?;
            }
            if batches.peek().is_none() && committed == sent {
                return Ok(());
            }
            let message = stream.message().await;
            let message = message.map_err(|status| unexpected(format!("report: {status}")))?;
            let Some(message) = message else {
                return Err(unexpected("the control plane ended a report"));
            };
            if message.window > 0 {
                window = u64::from(message.window);
            }
            let own = message.watermarks.iter().filter(|mark| mark.epoch == self.epoch);
            committed = own
                .map(|mark| mark.committed)
                .max()
                .unwrap_or(committed)
                .max(committed);
        }
    }
}

fn asking(message: Say) -> WatchRequest {
    WatchRequest {
        message: Some(message),
    }
}

fn reporting(message: Report) -> ReportsRequest {
    ReportsRequest {
        message: Some(message),
    }
}
