//! A sidecar's side of the wire, without a sidecar: raw messages of the contract, to see and to send what a real one would not.

use prost::Message as _;
use proto::v1::approvals_client::ApprovalsClient;
use proto::v1::enrol_request::Proof;
use proto::v1::enrolment_client::EnrolmentClient;
use proto::v1::reports_client::ReportsClient;
use proto::v1::snapshots_client::SnapshotsClient;
use proto::v1::watch_request::Message as Say;
use proto::v1::watch_response::Message as Hear;
use proto::v1::{
    EnrolRequest, EnrolResponse, Hello, Ping, Resource, ResourceSet, SidecarInfo, WatchRequest, WatchResponse,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status, Streaming};

use crate::fleet::Fleet;

/// The largest view that is taken.
const MAX_VIEW: usize = 256 << 20;

/// Somebody who holds a sidecar's credential.
#[derive(Debug)]
pub struct RawSidecar {
    /// What enrolment answered, the credential in it.
    pub enrolled: EnrolResponse,
    /// The connection.
    pub channel: Channel,
}

/// The connection to one of a fleet's control planes.
pub async fn channel(fleet: &Fleet, plane: usize) -> Channel {
    let ca = std::fs::read(fleet.ca_file()).unwrap();
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
    let endpoint = Endpoint::from_shared(fleet.grpc_url(plane)).unwrap();
    let endpoint = endpoint.tcp_nodelay(true).tls_config(tls).unwrap();
    endpoint.connect().await.unwrap()
}

impl RawSidecar {
    /// Enrols with a join token, for the agents given.
    ///
    /// # Errors
    /// When the control plane refuses.
    pub async fn enrol(fleet: &Fleet, join_token: &str, agents: &[String]) -> Result<Self, Status> {
        let channel = channel(fleet, 0).await;
        let info = SidecarInfo {
            name: "raw".to_owned(),
            version: "0".to_owned(),
            min_contract: proto::MIN_CONTRACT,
            max_contract: proto::MAX_CONTRACT,
            agents: agents.to_vec(),
            ..SidecarInfo::default()
        };
        let request = EnrolRequest {
            proof: Some(Proof::JoinToken(join_token.to_owned())),
            info: Some(info),
        };
        let answer = EnrolmentClient::new(channel.clone()).enrol(request).await?;
        Ok(Self {
            enrolled: answer.into_inner(),
            channel,
        })
    }

    /// The credential.
    #[must_use]
    pub fn credential(&self) -> &str {
        &self.enrolled.credential.as_ref().unwrap().token
    }

    /// A message with the credential.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let value = MetadataValue::try_from(format!("Bearer {}", self.credential())).unwrap();
        request.metadata_mut().insert("authorization", value);
        request
    }

    /// A client of the approvals.
    #[must_use]
    pub fn approvals(&self) -> ApprovalsClient<Channel> {
        ApprovalsClient::new(self.channel.clone())
    }

    /// A client of the reports.
    #[must_use]
    pub fn reports(&self) -> ReportsClient<Channel> {
        ReportsClient::new(self.channel.clone())
    }

    /// Watches desired state from nothing.
    pub async fn watch(&self) -> RawWatch {
        let (say, said) = mpsc::channel(16);
        say.send(asking(Say::Hello(Hello::default()))).await.unwrap();
        let mut client = SnapshotsClient::new(self.channel.clone()).max_decoding_message_size(MAX_VIEW);
        let request = self.request(ReceiverStream::new(said));
        let stream = client.watch(request).await.unwrap().into_inner();
        RawWatch {
            say,
            stream,
            heard: Vec::new(),
        }
    }
}

/// A stream of desired state; everything that came is kept.
#[derive(Debug)]
pub struct RawWatch {
    say: mpsc::Sender<WatchRequest>,
    stream: Streaming<WatchResponse>,
    /// Every message so far, in order.
    pub heard: Vec<Hear>,
}

impl RawWatch {
    /// Asks for a heartbeat.
    pub async fn ping(&self) {
        let nonce = vec![7; 16].into();
        let ping = Ping {
            nonce,
            ..Ping::default()
        };
        self.say.send(asking(Say::Ping(ping))).await.unwrap();
    }

    /// Reads on until a message satisfies the test.
    pub async fn until(&mut self, what: &str, is_met: impl Fn(&Hear) -> bool) {
        let read = async {
            loop {
                let message = self.stream.message().await.unwrap();
                let message = message.unwrap_or_else(|| panic!("the stream ended before {what}"));
                let message = message.message.unwrap();
                let is_last = is_met(&message);
                self.heard.push(message);
                if is_last {
                    return;
                }
            }
        };
        let read = tokio::time::timeout(crate::wait::PATIENCE, read).await;
        read.unwrap_or_else(|_| panic!("waited in vain: {what}"));
    }

    /// Everything that came, decoded and decompressed, as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{:?}", self.heard);
        for message in &self.heard {
            text.push_str(&format!("{:?}", resources(message)));
        }
        text
    }

    /// Every resource that came.
    #[must_use]
    pub fn resources(&self) -> Vec<Resource> {
        self.heard.iter().flat_map(resources).collect()
    }
}

/// The resources that a message brings.
#[must_use]
pub fn resources(message: &Hear) -> Vec<Resource> {
    match message {
        Hear::Full(full) => {
            let bytes = zstd::decode_all(full.compressed.as_ref()).unwrap();
            ResourceSet::decode(bytes.as_slice()).unwrap().resources
        }
        Hear::Delta(delta) => delta.changed.clone(),
        _ => Vec::new(),
    }
}

fn asking(message: Say) -> WatchRequest {
    WatchRequest {
        message: Some(message),
    }
}
