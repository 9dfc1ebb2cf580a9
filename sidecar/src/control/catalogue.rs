//! Tells the control plane what upstreams declare, and what it answers about pins.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use proto::v1;
use proto::v1::catalogue_client::CatalogueClient;
use tokio::sync::{Notify, watch};

use super::Revision;
use super::auth::{self, CALL_LIMIT, MAX_MESSAGE};
use super::shared::Shared;
use super::snapshot::PinStatus;
use super::stream::{End, Ended, Session};

/// Declarations beyond this are not sent; their fingerprint is.
const MAX_DECLARED: usize = 256 * 1024;

/// The declarations of one upstream beyond these are not sent either: the control plane reads messages of 16 MiB.
const MAX_TOGETHER: usize = 12 * 1024 * 1024;

/// A tool as it is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedTool {
    /// Full name, `<upstream>.<tool>`.
    pub name: String,
    /// Its fingerprint.
    pub fingerprint: [u8; 32],
    /// The declaration as the upstream sent it.
    pub declared: Bytes,
    /// `mcp`, `openapi`, `cli`.
    pub kind: &'static str,
}

/// All tools of one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    /// The upstream's name.
    pub upstream: String,
    /// Its tools; replaces what was published before.
    pub tools: Vec<PublishedTool>,
}

/// What the control plane answered to a catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The status of each tool at that moment; the snapshot's pins go on from there.
    pub pins: HashMap<String, PinStatus>,
    /// The snapshot has the pins of this answer from this revision on.
    pub revision: Revision,
    /// Pins are not kept: nothing is held back.
    pub pinning_off: bool,
}

/// Where catalogues wait for publication; the newest of each upstream counts.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    newest: Mutex<BTreeMap<String, (Arc<Catalogue>, bool)>>,
    arrived: Notify,
    answers: watch::Sender<HashMap<String, Arc<Published>>>,
}

impl Shelf {
    pub(super) fn put(&self, catalogue: Catalogue) {
        let name = catalogue.upstream.clone();
        self.lock().insert(name, (Arc::new(catalogue), false));
        self.arrived.notify_one();
    }

    pub(super) fn answers(&self) -> watch::Receiver<HashMap<String, Arc<Published>>> {
        self.answers.subscribe()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Arc<Catalogue>, bool)>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Arc<Catalogue>> {
        let newest = self.lock();
        let waiting = newest.values().find(|(_, is_published)| !is_published);
        waiting.map(|(catalogue, _)| catalogue.clone())
    }

    fn published(&self, catalogue: &Arc<Catalogue>, answer: Published) {
        self.done(catalogue);
        if catalogue.tools.is_empty() {
            // Nobody needs to hear again that there is nothing.
            self.lock()
                .retain(|_, (newest, is_published)| !(*is_published && newest.tools.is_empty()));
        }
        self.answers.send_modify(|answers| {
            answers.insert(catalogue.upstream.clone(), Arc::new(answer));
        });
    }

    /// Nothing more is to be done about a catalogue, unless a newer one has come meanwhile.
    fn done(&self, catalogue: &Arc<Catalogue>) {
        if let Some((newest, is_published)) = self.lock().get_mut(&catalogue.upstream) {
            *is_published = Arc::ptr_eq(newest, catalogue);
        }
    }

    /// A new epoch: the control plane may not know any of it.
    fn begin_anew(&self) {
        for (_, is_published) in self.lock().values_mut() {
            *is_published = false;
        }
    }
}

/// Publishes what is on the shelf, once per epoch and at each change.
pub(super) struct Publisher {
    shared: Arc<Shared>,
    shelf: Arc<Shelf>,
    epoch: u64,
}

impl Publisher {
    pub(super) fn new(shared: Arc<Shared>, shelf: Arc<Shelf>) -> Self {
        Self {
            shared,
            shelf,
            epoch: 0,
        }
    }

    async fn publish(&self, catalogue: &Arc<Catalogue>) -> Result<(), End> {
        let request = to_wire(catalogue);
        let mut client = CatalogueClient::new(self.shared.authenticated())
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        let answer = tokio::time::timeout(6 * CALL_LIMIT, client.publish(request))
            .await
            .map_err(|_| End::Failed("a catalogue was not answered in time".to_owned()))?;
        let answer = match answer {
            Ok(answer) => answer.into_inner(),
            // One upstream that lies outside the scope does not keep the others from being known.
            Err(status) if auth::is_final(&status) => {
                tracing::error!(upstream = catalogue.upstream, code = ?status.code(), reason = status.message(),
                    "the control plane refuses the catalogue of this upstream");
                self.shelf.done(catalogue);
                return Ok(());
            }
            Err(status) => return Err(End::Status(status)),
        };
        let pins = answer.pins.into_iter().map(|pin| {
            use v1::pin_status::Status;
            let status = match Status::try_from(pin.status) {
                Ok(Status::Pinned) => PinStatus::Pinned,
                Ok(Status::Changed) => PinStatus::Changed,
                Ok(Status::New | Status::Unspecified) | Err(_) => PinStatus::New,
            };
            (pin.tool, status)
        });
        let published = Published {
            pins: pins.collect(),
            revision: answer.revision.unwrap_or_default().into(),
            pinning_off: answer.pinning_off,
        };
        self.shelf.published(catalogue, published);
        Ok(())
    }

    async fn serve(&self, epoch: u64, was_useful: &mut bool) -> End {
        loop {
            while let Some(catalogue) = self.shelf.next() {
                if let Err(end) = self.publish(&catalogue).await {
                    return end;
                }
                *was_useful = true;
            }
            tokio::select! {
                () = self.shelf.arrived.notified() => {}
                () = self.shared.epoch_after(epoch) => return End::Again,
            }
            // Servers announce changes in bursts.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Session for Publisher {
    async fn run(&mut self, epoch: u64) -> Ended {
        if self.epoch != epoch {
            self.shelf.begin_anew();
            self.epoch = epoch;
        }
        let mut was_useful = false;
        let end = self.serve(epoch, &mut was_useful).await;
        Ended { end, was_useful }
    }
}

fn to_wire(catalogue: &Catalogue) -> v1::PublishRequest {
    let mut room = MAX_TOGETHER;
    let mut tool = |tool: &PublishedTool| v1::DeclaredTool {
        name: tool.name.clone(),
        fingerprint: Bytes::copy_from_slice(&tool.fingerprint),
        declared: match room.checked_sub(tool.declared.len()) {
            Some(left) if tool.declared.len() <= MAX_DECLARED => {
                room = left;
                tool.declared.clone()
            }
            Some(_) | None => Bytes::new(),
        },
        kind: tool.kind.to_owned(),
    };
    v1::PublishRequest {
        upstream: catalogue.upstream.clone(),
        tools: catalogue.tools.iter().map(&mut tool).collect(),
    }
}
