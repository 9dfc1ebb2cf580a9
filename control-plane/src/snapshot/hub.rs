//! The view of all desired state in memory, and the channels of the scopes in use.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::channel::{Change, Channel, Image};
use super::entry::{Entry, Key};
use super::scope::{Filter, Scope};
use crate::keys::KeyRing;
use crate::store::Revision;

/// How many whole snapshots are compressed at the same time.
const IMAGES_AT_ONCE: usize = 2;

/// Why a channel or an image cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// A credential names agents or upstreams by something that is no glob.
    #[error("the credential's scope holds a pattern that is no glob; enrol again with a new join token")]
    Scope,
    /// Compression failed.
    #[error("the snapshot could not be compressed: {0}")]
    Compress(#[from] std::io::Error),
    /// The control plane is going down.
    #[error("the control plane is draining")]
    Draining,
}

#[derive(Debug, Default)]
struct View {
    entries: BTreeMap<Key, Arc<Entry>>,
    channels: HashMap<Scope, Weak<Channel>>,
}

/// Desired state in memory.
///
/// INVARIANT: every channel's revision is the view's, because both move under the same lock.
#[derive(Debug)]
pub struct Hub {
    view: Mutex<View>,
    revision: watch::Sender<Revision>,
    images: Semaphore,
    keys: Arc<KeyRing>,
}

impl Hub {
    /// A hub over the state at `revision`.
    #[must_use]
    pub fn new(keys: Arc<KeyRing>, revision: Revision, entries: Vec<Entry>) -> Self {
        let view = View {
            entries: by_key(entries),
            channels: HashMap::new(),
        };
        Self {
            view: Mutex::new(view),
            revision: watch::Sender::new(revision),
            images: Semaphore::new(IMAGES_AT_ONCE),
            keys,
        }
    }

    /// The revision of the view.
    #[must_use]
    pub fn revision(&self) -> Revision {
        *self.revision.borrow()
    }

    /// Wakes at every new revision of the view.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.revision.subscribe()
    }

    /// Waits until the view is at `revision` or later, at most for `patience`; answers whether it is.
    pub async fn reaches(&self, revision: Revision, patience: Duration) -> bool {
        let mut seen = self.subscribe();
        let reached = seen.wait_for(|seen| *seen >= revision);
        tokio::time::timeout(patience, reached)
            .await
            .is_ok_and(|reached| reached.is_ok())
    }

    /// The channel of a scope, shared with every other sidecar of the same scope.
    ///
    /// # Errors
    /// When the scope holds something that is no glob.
    pub fn channel(&self, scope: &Scope) -> Result<Arc<Channel>, HubError> {
        let filter = Filter::new(scope).ok_or(HubError::Scope)?;
        let mut view = self.lock();
        if let Some(channel) = view.channels.get(scope).and_then(Weak::upgrade) {
            return Ok(channel);
        }
        let channel = Arc::new(Channel::new(
            scope,
            filter,
            self.revision(),
            view.entries.values(),
        ));
        view.channels.retain(|_, channel| channel.strong_count() > 0);
        view.channels.insert(scope.clone(), Arc::downgrade(&channel));
        Ok(channel)
    }

    /// The image of a channel's present state. Few are made at a time: the others wait for their turn.
    ///
    /// # Errors
    /// When compression fails.
    pub async fn image(&self, channel: &Arc<Channel>) -> Result<Arc<Image>, HubError> {
        if let Some(image) = channel.image() {
            return Ok(image);
        }
        let _permit = self.images.acquire().await.map_err(|_| HubError::Draining)?;
        if let Some(image) = channel.image() {
            return Ok(image);
        }
        let (channel, signer) = (Arc::clone(channel), self.keys.snapshot_signer());
        tokio::task::spawn_blocking(move || channel.make_image(&signer))
            .await
            .map_err(|_| HubError::Draining)?
            .map_err(HubError::Compress)
    }

    /// Takes changes that lead to `to`, in one step for every scope.
    pub fn advance(&self, to: Revision, changes: Vec<Change>) {
        let signer = self.keys.snapshot_signer();
        let mut view = self.lock();
        for change in &changes {
            match change {
                Change::Set(entry) => view.entries.insert(entry.key(), Arc::clone(entry)),
                Change::Removed(key) => view.entries.remove(key),
            };
        }
        for channel in view.live_channels() {
            channel.advance(to, &changes, &signer);
        }
        self.revision.send_replace(to);
    }

    /// Replaces the whole state: a new generation, or a gap in the changes that were read.
    pub fn reset(&self, revision: Revision, entries: Vec<Entry>) {
        let mut view = self.lock();
        view.entries = by_key(entries);
        for channel in view.live_channels() {
            channel.reset(revision, view.entries.values());
        }
        self.revision.send_replace(revision);
    }

    /// All resources of one type, in the order of their names.
    #[must_use]
    pub fn resources(&self, r#type: &str) -> Vec<Arc<Entry>> {
        let from = (r#type.to_owned(), String::new());
        let view = self.lock();
        view.entries
            .range(from..)
            .take_while(|(key, _)| key.0 == r#type)
            .map(|(_, entry)| Arc::clone(entry))
            .collect()
    }

    /// One resource.
    #[must_use]
    pub fn resource(&self, r#type: &str, name: &str) -> Option<Arc<Entry>> {
        self.lock()
            .entries
            .get(&(r#type.to_owned(), name.to_owned()))
            .cloned()
    }

    /// How many scopes have a receiver.
    #[must_use]
    pub fn scopes(&self) -> usize {
        self.lock().live_channels().len()
    }

    fn lock(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View {
    fn live_channels(&self) -> Vec<Arc<Channel>> {
        self.channels.values().filter_map(Weak::upgrade).collect()
    }
}

fn by_key(entries: Vec<Entry>) -> BTreeMap<Key, Arc<Entry>> {
    entries
        .into_iter()
        .map(|entry| (entry.key(), Arc::new(entry)))
        .collect()
}
