//! A watcher that verifies everything it is sent, as a sidecar does.

use std::collections::BTreeMap;

use chain::checkpoint::{PublicKey, SignedCheckpoint};
use ed25519_dalek::{Signature, VerifyingKey};
use prost::Message as _;
use proto::v1::snapshots_client::SnapshotsClient;
use proto::v1::watch_request::Message as Sent;
use proto::v1::watch_response::Message;
use proto::v1::{
    Ack, CheckpointNotice, Delta, Full, Heartbeat, Hello, Ping, Resource, ResourceSet, Revision, StateProof,
    WatchRequest, WatchResponse,
};
use proto::view::{resource_digest, signed_text, view_digest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::plane::{Enrolled, LONG, Plane};

pub(super) struct Watcher {
    requests: mpsc::Sender<WatchRequest>,
    responses: Streaming<WatchResponse>,
    keys: Vec<proto::v1::PublicKey>,
    pub(super) view: BTreeMap<(String, String), Resource>,
    pub(super) revision: Revision,
    pub(super) fulls: usize,
    pub(super) delta_bytes: usize,
    pub(super) checkpoint: Option<CheckpointNotice>,
    pub(super) stop_ids: Vec<String>,
}

impl Watcher {
    pub(super) async fn open(plane: &Plane, enrolled: &Enrolled) -> Result<Self, Status> {
        let (requests, receiver) = mpsc::channel(16);
        let stream = ReceiverStream::new(receiver);
        let mut client =
            SnapshotsClient::new(plane.channel.clone()).max_decoding_message_size(64 * 1024 * 1024);
        let responses = client.watch(enrolled.request(stream)).await?.into_inner();
        Ok(Self {
            requests,
            responses,
            keys: enrolled.answer.public_keys.clone(),
            view: BTreeMap::new(),
            revision: Revision::default(),
            fulls: 0,
            delta_bytes: 0,
            checkpoint: None,
            stop_ids: Vec::new(),
        })
    }

    /// Opens a stream and takes the first snapshot.
    pub(super) async fn start(plane: &Plane, enrolled: &Enrolled) -> Self {
        let mut watcher = Self::open(plane, enrolled).await.unwrap();
        watcher.say(Sent::Hello(Hello::default())).await;
        while watcher.fulls == 0 {
            watcher.next().await.unwrap();
        }
        watcher
    }

    pub(super) async fn say(&self, message: Sent) {
        self.requests
            .send(WatchRequest {
                message: Some(message),
            })
            .await
            .unwrap();
    }

    pub(super) async fn ack(&self) {
        self.say(Sent::Ack(Ack {
            revision: Some(self.revision),
            apply_us: 7,
        }))
        .await;
    }

    /// The answer to a ping; what comes before it is applied.
    pub(super) async fn heartbeat(&mut self, nonce: &[u8]) -> Heartbeat {
        self.say(Sent::Ping(Ping {
            nonce: nonce.to_vec().into(),
            ..Ping::default()
        }))
        .await;
        loop {
            if let Some(Message::Heartbeat(heartbeat)) = self.next().await.unwrap() {
                return heartbeat;
            }
        }
    }

    /// Takes messages until the view holds a resource of this name, or does not.
    pub(super) async fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            self.next().await.unwrap().expect("the stream goes on");
        }
    }

    pub(super) fn has_policy(&self, name: &str) -> bool {
        self.view.contains_key(&("policy".to_owned(), name.to_owned()))
    }

    /// The status that the stream ends with.
    pub(super) async fn end(&mut self) -> Status {
        loop {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("ended without a status"),
                Err(status) => return status,
            }
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Message>, Status> {
        let received = tokio::time::timeout(LONG, self.responses.message())
            .await
            .expect("a message in time")?;
        let Some(response) = received else { return Ok(None) };
        let bytes = response.encoded_len();
        let message = response.message.unwrap();
        match &message {
            Message::Full(full) => self.full(full),
            Message::Delta(delta) => {
                self.delta_bytes += bytes;
                self.delta(delta);
            }
            Message::Checkpoint(notice) => {
                self.verify_notice(notice);
                self.checkpoint = Some(notice.clone());
            }
            Message::Stops(stops) => self.stop_ids = stops.stops.iter().map(|stop| stop.id.clone()).collect(),
            Message::Heartbeat(_) | Message::Draining(_) => {}
        }
        Ok(Some(message))
    }

    /// A checkpoint notice says what its signed text says.
    fn verify_notice(&self, notice: &CheckpointNotice) {
        let key = self
            .keys
            .iter()
            .find(|key| key.id == notice.key_id && key.purpose == "checkpoint")
            .unwrap();
        let key = PublicKey::from_bytes(key.ed25519.as_ref().try_into().unwrap()).unwrap();
        let signed =
            SignedCheckpoint::from_parts(notice.text.clone(), &notice.signature, notice.key_id.clone());
        let stated = key.verify(&signed).unwrap();
        let at = notice.at.clone().unwrap();
        assert_eq!((stated.generation, stated.seq), (at.generation, at.seq));
        assert_eq!(stated.hash.as_bytes().as_slice(), at.hash.as_ref());
    }

    fn full(&mut self, full: &Full) {
        let bytes = zstd::decode_all(full.compressed.as_ref()).unwrap();
        let set = ResourceSet::decode(bytes.as_slice()).unwrap();
        self.view = set
            .resources
            .into_iter()
            .map(|one| ((one.r#type.clone(), one.name.clone()), one))
            .collect();
        self.revision = full.revision.unwrap();
        self.fulls += 1;
        self.verify(full.proof.as_ref().unwrap());
    }

    fn delta(&mut self, delta: &Delta) {
        assert_eq!(delta.from, Some(self.revision), "a delta applies on what is held");
        for one in &delta.changed {
            self.view
                .insert((one.r#type.clone(), one.name.clone()), one.clone());
        }
        for name in &delta.removed {
            self.view
                .remove(&(name.r#type.clone(), name.name.clone()))
                .expect("what is removed was there");
        }
        self.revision = delta.to.unwrap();
        self.verify(delta.proof.as_ref().unwrap());
    }

    pub(super) fn digest(&self) -> [u8; 32] {
        let digests: Vec<_> = self.view.values().map(resource_digest).collect();
        view_digest(&digests)
    }

    fn verify(&self, proof: &StateProof) {
        let digest = self.digest();
        assert_eq!(proof.digest.as_ref(), digest, "the digest is that of the view");
        let key = self
            .keys
            .iter()
            .find(|key| key.id == proof.key_id && key.purpose == "snapshot")
            .unwrap();
        let key = VerifyingKey::from_bytes(key.ed25519.as_ref().try_into().unwrap()).unwrap();
        let signature = Signature::from_slice(&proof.signature).unwrap();
        key.verify_strict(&signed_text(&proof.scope, self.revision, &digest), &signature)
            .unwrap();
    }
}
