//! Sidecars that are only gRPC clients: they enrol, watch, renew and acknowledge over TLS as real ones do, and govern nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use proto::v1::enrol_request::Proof;
use proto::v1::enrolment_client::EnrolmentClient;
use proto::v1::snapshots_client::SnapshotsClient;
use proto::v1::watch_request::Message as Say;
use proto::v1::watch_response::Message as Hear;
use proto::v1::{
    Ack, EnrolRequest, EnrolResponse, Hello, Ping, RenewRequest, Revision, SidecarInfo, WatchRequest,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Request, Status};

/// Heartbeats and renewals: both well within the 3 seconds that credentials live.
const BEAT: Duration = Duration::from_secs(1);

/// What a simulated sidecar was sent.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The revision that it has acknowledged.
    pub revision: Revision,
    /// Full snapshots so far.
    pub fulls: usize,
    /// Names of the policies in deltas so far.
    pub changed: BTreeSet<String>,
}

/// A simulated sidecar; leaves when dropped.
#[derive(Debug)]
pub struct Simulated {
    /// Its id.
    pub id: String,
    received: watch::Receiver<Received>,
    _tasks: JoinSet<()>,
}

impl Simulated {
    /// Enrols with a join token and watches until it is dropped; returns once it has acknowledged its first snapshot.
    pub async fn join(url: &str, ca_file: &Path, token: &str, name: &str) -> Self {
        let channel = connect(url, ca_file).await;
        let proof = Proof::JoinToken(token.to_owned());
        let enrolled = enrol(channel.clone(), proof, name).await.unwrap();
        let id = enrolled.sidecar_id.clone();
        let (told, mut received) = watch::channel(Received::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(renew(channel.clone(), enrolled.clone()));
        tasks.spawn(follow(channel, enrolled, told));
        received
            .wait_for(|received| received.fulls > 0)
            .await
            .expect("the watch goes on");
        Self {
            id,
            received,
            _tasks: tasks,
        }
    }

    /// What it was sent so far.
    #[must_use]
    pub fn received(&self) -> Received {
        self.received.borrow().clone()
    }
}

/// A connection to a control plane of the tests.
pub async fn connect(url: &str, ca_file: &Path) -> Channel {
    let tls = ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(std::fs::read(ca_file).unwrap()))
        .domain_name("localhost");
    let endpoint = Endpoint::from_shared(url.to_owned()).unwrap();
    let endpoint = endpoint.tcp_nodelay(true).tls_config(tls).unwrap();
    endpoint.connect().await.unwrap()
}

/// One attempt to enrol, for all agents that the proof gives.
pub async fn enrol(channel: Channel, proof: Proof, name: &str) -> Result<EnrolResponse, Status> {
    let request = EnrolRequest {
        proof: Some(proof),
        info: Some(SidecarInfo {
            name: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            min_contract: proto::MIN_CONTRACT,
            max_contract: proto::MAX_CONTRACT,
            agents: vec!["*".to_owned()],
            ..SidecarInfo::default()
        }),
    };
    let answer = EnrolmentClient::new(channel).enrol(request).await?;
    Ok(answer.into_inner())
}

async fn renew(channel: Channel, enrolled: EnrolResponse) {
    let mut client = EnrolmentClient::new(channel);
    loop {
        tokio::time::sleep(BEAT).await;
        let request = RenewRequest {
            sidecar_id: enrolled.sidecar_id.clone(),
            epoch: enrolled.epoch,
            renewal_secret: enrolled.renewal_secret.clone(),
        };
        client.renew(request).await.unwrap();
    }
}

async fn follow(channel: Channel, enrolled: EnrolResponse, told: watch::Sender<Received>) {
    let (say, said) = mpsc::channel(16);
    let say = async |message| {
        let message = Some(message);
        say.send(WatchRequest { message }).await.unwrap();
    };
    say(Say::Hello(Hello::default())).await;
    let said = futures_util::stream::unfold(said, async |mut said| Some((said.recv().await?, said)));
    let mut request = Request::new(said);
    let bearer = format!("Bearer {}", enrolled.credential.unwrap().token);
    request
        .metadata_mut()
        .insert("authorization", bearer.parse().unwrap());
    let mut client = SnapshotsClient::new(channel).max_decoding_message_size(256 << 20);
    let mut stream = client.watch(request).await.unwrap().into_inner();
    let mut beat = tokio::time::interval(BEAT);
    loop {
        let message = tokio::select! {
            message = stream.message() => message.unwrap().expect("the control plane goes on").message,
            _ = beat.tick() => {
                let ping = Ping { nonce: vec![7; 16].into(), applied: Some(told.borrow().revision), ..Ping::default() };
                say(Say::Ping(ping)).await;
                continue;
            }
        };
        let (revision, changed) = match message {
            Some(Hear::Full(full)) => (full.revision.unwrap(), None),
            Some(Hear::Delta(delta)) => (delta.to.unwrap(), Some(delta.changed)),
            _ => continue,
        };
        say(Say::Ack(Ack {
            revision: Some(revision),
            apply_us: 1,
        }))
        .await;
        told.send_modify(|received| {
            received.revision = revision;
            match changed {
                None => received.fulls += 1,
                Some(changed) => received.changed.extend(changed.into_iter().map(|one| one.name)),
            }
        });
    }
}
