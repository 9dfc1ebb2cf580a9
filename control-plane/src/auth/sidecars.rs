//! The live streams of sidecars, and the events that end them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tonic::Status;

use super::credential::Claims;
use crate::core::Core;
use crate::grpc::Refused;
use crate::store::{Micros, Store, StoreResult};

const EVENTS_AT_ONCE: u32 = 500;
/// The longest that a stream waits before it looks again whether its credential has run out.
const EXPIRY_CHECK: Duration = Duration::from_secs(30);

/// Streams of which a sidecar has one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// `Snapshots.Watch`.
    Watch,
    /// `Reports.Stream`.
    Reports,
    /// `Approvals.Watch`.
    Approvals,
}

/// Why a stream was ended from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A newer stream of the same kind and epoch took its place.
    Replaced,
    /// A newer process of the same id has started.
    StaleEpoch,
    /// An operator revoked the id.
    Revoked,
}

#[derive(Debug)]
struct Slot {
    epoch: u64,
    number: u64,
    end: watch::Sender<Option<End>>,
}

/// What is known of an id: it only moves forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    epoch: u64,
    is_revoked: bool,
}

/// Ids whose standing is remembered at least; of more, those that were not seen for the longest are asked for again.
const REMEMBERED: usize = 10_000;

/// What is known of ids, in two generations that take turns: what is not looked at while the younger one fills up is forgotten, since
/// the store knows it.
#[derive(Debug, Default)]
struct Standings {
    young: HashMap<String, Standing>,
    old: HashMap<String, Standing>,
}

impl Standings {
    fn get(&mut self, sidecar: &str) -> Option<Standing> {
        if let Some(standing) = self.young.get(sidecar) {
            return Some(*standing);
        }
        let (sidecar, standing) = self.old.remove_entry(sidecar)?;
        self.put(sidecar, standing);
        Some(standing)
    }

    /// Takes what was seen; it only moves forward.
    fn learn(&mut self, sidecar: &str, seen: Standing) -> Standing {
        let known = self.get(sidecar).unwrap_or_default();
        let standing = Standing {
            epoch: known.epoch.max(seen.epoch),
            is_revoked: known.is_revoked || seen.is_revoked,
        };
        self.put(sidecar.to_owned(), standing);
        standing
    }

    fn put(&mut self, sidecar: String, standing: Standing) {
        if self.young.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(sidecar, standing);
    }

    fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[derive(Debug, Default)]
struct State {
    sequence: u64,
    standings: Standings,
    streams: HashMap<(String, StreamKind), Slot>,
    /// Ends of credentials renewed here, by sidecar and epoch.
    renewed: HashMap<(String, u64), Micros>,
    opened: u64,
    counts: HashMap<StreamKind, usize>,
}

/// The streams of this replica.
#[derive(Debug, Default)]
pub struct Sidecars {
    state: Mutex<State>,
}

impl Sidecars {
    /// A registry that has seen the events up to `sequence`.
    #[must_use]
    pub fn new(sequence: u64) -> Self {
        Self {
            state: Mutex::new(State {
                sequence,
                ..State::default()
            }),
        }
    }

    /// The newest event that was taken.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.lock().sequence
    }

    /// Registers a stream; ends the one of the same kind that was there before. A stream of an older epoch than the one registered
    /// ends at once.
    #[must_use]
    pub fn open(self: &Arc<Self>, kind: StreamKind, claims: &Claims) -> LiveStream {
        let mut state = self.lock();
        state.opened += 1;
        let number = state.opened;
        let key = (claims.sidecar.clone(), kind);
        // Its credential was checked a moment ago: what was learned since then must not be missed.
        let standing = state.standings.get(&key.0).unwrap_or_default();
        let ended = if standing.is_revoked {
            Some(End::Revoked)
        } else {
            (standing.epoch > claims.epoch).then_some(End::StaleEpoch)
        };
        let sender = watch::Sender::new(ended);
        let receiver = sender.subscribe();
        match state.streams.get(&key) {
            Some(present) if present.epoch > claims.epoch => {
                sender.send_replace(Some(End::StaleEpoch));
            }
            present => {
                if let Some(present) = present {
                    let end = if present.epoch == claims.epoch {
                        End::Replaced
                    } else {
                        End::StaleEpoch
                    };
                    present.end.send_replace(Some(end));
                }
                let slot = Slot {
                    epoch: claims.epoch,
                    number,
                    end: sender,
                };
                if state.streams.insert(key.clone(), slot).is_none() {
                    *state.counts.entry(kind).or_default() += 1;
                }
            }
        }
        LiveStream {
            registry: Arc::clone(self),
            key,
            number,
            claims: claims.clone(),
            end: receiver,
        }
    }

    /// A credential of this sidecar and epoch was renewed until `expires_at`: its streams may go on.
    pub fn renewed(&self, sidecar: &str, epoch: u64, expires_at: Micros, now: Micros) {
        let mut state = self.lock();
        state.renewed.retain(|_, end| *end > now);
        state.renewed.insert((sidecar.to_owned(), epoch), expires_at);
    }

    /// Takes the events since the last time: new epochs and revocations end streams.
    ///
    /// # Errors
    /// When the store fails; what was taken stays taken.
    pub async fn refresh(&self, store: &dyn Store) -> StoreResult<()> {
        loop {
            let events = store
                .sidecar_events_after(self.sequence(), EVENTS_AT_ONCE)
                .await?;
            if events.is_empty() {
                return Ok(());
            }
            let mut state = self.lock();
            for event in events {
                state.sequence = state.sequence.max(event.sequence);
                let standing = Standing {
                    epoch: event.epoch,
                    is_revoked: event.revoked,
                };
                state.standings.learn(&event.sidecar, standing);
                state.end_streams(&event.sidecar, event.epoch, event.revoked);
            }
        }
    }

    /// A new generation began: what was known may have been lost with it.
    pub fn restart(&self, sequence: u64) {
        let mut state = self.lock();
        state.sequence = sequence;
        state.standings.clear();
    }

    /// Whether these claims are of the present epoch of an id that is not revoked.
    ///
    /// # Errors
    /// `stale_epoch` or `revoked`; unavailable when the store cannot be asked.
    pub async fn check(&self, store: &dyn Store, claims: &Claims) -> Result<(), Status> {
        let known = self.lock().standings.get(&claims.sidecar);
        let standing = match known {
            Some(standing) => standing,
            None => {
                let row = store
                    .sidecar(&claims.sidecar)
                    .await
                    .map_err(crate::grpc::store_status)?;
                let standing = Standing {
                    epoch: row.epoch,
                    is_revoked: row.revoked.is_some(),
                };
                self.lock().standings.learn(&claims.sidecar, standing)
            }
        };
        if standing.is_revoked {
            return Err(end_status(claims, End::Revoked));
        }
        if standing.epoch > claims.epoch {
            return Err(end_status(claims, End::StaleEpoch));
        }
        Ok(())
    }

    /// Ids of the sidecars that have a stream of this kind here.
    #[must_use]
    pub fn with_stream(&self, kind: StreamKind) -> Vec<String> {
        self.lock()
            .streams
            .keys()
            .filter(|(_, of)| *of == kind)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Whether a sidecar has a stream of this kind here.
    #[must_use]
    pub fn has_stream(&self, kind: StreamKind, sidecar: &str) -> bool {
        self.lock().streams.contains_key(&(sidecar.to_owned(), kind))
    }

    /// How many sidecars have a stream of this kind here.
    #[must_use]
    pub fn count(&self, kind: StreamKind) -> usize {
        self.lock().counts.get(&kind).copied().unwrap_or_default()
    }

    fn expires_at(&self, claims: &Claims) -> Micros {
        let renewed = self
            .lock()
            .renewed
            .get(&(claims.sidecar.clone(), claims.epoch))
            .copied();
        renewed.unwrap_or_default().max(claims.expires_at)
    }

    fn close(&self, key: &(String, StreamKind), number: u64) {
        let mut state = self.lock();
        if state.streams.get(key).is_some_and(|slot| slot.number == number) {
            state.streams.remove(key);
            if let Some(count) = state.counts.get_mut(&key.1) {
                *count = count.saturating_sub(1);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_streams(&self, sidecar: &str, epoch: u64, is_revoked: bool) {
        for kind in [StreamKind::Watch, StreamKind::Reports, StreamKind::Approvals] {
            let Some(slot) = self.streams.get(&(sidecar.to_owned(), kind)) else {
                continue;
            };
            if is_revoked {
                slot.end.send_replace(Some(End::Revoked));
            } else if slot.epoch < epoch {
                slot.end.send_replace(Some(End::StaleEpoch));
            }
        }
    }
}

/// One registered stream; leaves the registry when dropped.
#[derive(Debug)]
pub struct LiveStream {
    registry: Arc<Sidecars>,
    key: (String, StreamKind),
    number: u64,
    claims: Claims,
    end: watch::Receiver<Option<End>>,
}

impl LiveStream {
    /// Waits until the stream has to end, and says why.
    pub async fn ended(&self, core: &Core) -> Status {
        let mut end = self.end.clone();
        loop {
            if let Some(end) = *end.borrow_and_update() {
                return self.status(end);
            }
            let left = self.registry.expires_at(&self.claims) - core.primary.database_now();
            let Some(left) = u64::try_from(left).ok().filter(|left| *left > 0) else {
                return Status::unauthenticated("the credential has expired; renew it and reconnect");
            };
            tokio::select! {
                changed = end.changed() => if changed.is_err() { return self.status(End::Replaced) },
                () = core.shutdown.cancelled() => {
                    return Refused::Draining.status("this control plane is going down; reconnect elsewhere");
                }
                () = tokio::time::sleep(EXPIRY_CHECK.min(Duration::from_micros(left))) => {}
            }
        }
    }

    fn status(&self, end: End) -> Status {
        end_status(&self.claims, end)
    }
}

fn end_status(claims: &Claims, end: End) -> Status {
    let Claims { sidecar, epoch, .. } = claims;
    match end {
        End::Replaced => Refused::StaleEpoch.status(format!(
            "a newer stream of sidecar {sidecar} epoch {epoch} has taken its place"
        )),
        End::StaleEpoch => {
            Refused::StaleEpoch.status(format!("a newer process of sidecar {sidecar} has started"))
        }
        End::Revoked => Refused::Revoked.status(format!(
            "sidecar {sidecar} was revoked; enrol it anew with a join token"
        )),
    }
}

impl Drop for LiveStream {
    fn drop(&mut self) {
        self.registry.close(&self.key, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(standing: Option<Standing>) -> Option<End> {
        let registry = Arc::new(Sidecars::new(0));
        if let Some(standing) = standing {
            registry.lock().standings.learn("s", standing);
        }
        let claims = Claims {
            sidecar: "s".into(),
            namespace: "default".into(),
            epoch: 3,
            agents: Vec::new(),
            upstreams: Vec::new(),
            expires_at: 0,
        };
        let live = registry.open(StreamKind::Watch, &claims);
        *live.end.borrow()
    }

    #[test]
    fn a_stream_that_opens_after_its_revocation_or_a_newer_epoch_was_heard_of_ends_at_once() {
        let standing = |epoch, is_revoked| Some(Standing { epoch, is_revoked });
        assert_eq!(ended(None), None);
        assert_eq!(ended(standing(3, false)), None);
        assert_eq!(ended(standing(3, true)), Some(End::Revoked));
        assert_eq!(ended(standing(4, false)), Some(End::StaleEpoch));
    }
}
