//! `Snapshots.Watch`: desired state, leases and stops come in; acknowledgements and pings go out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::v1::snapshots_client::SnapshotsClient;
use proto::v1::watch_request::Message as Say;
use proto::v1::watch_response::Message as Hear;
use proto::v1::{Ack, Heartbeat, Hello, Nack, Ping, WatchRequest, WatchResponse};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::codec::CompressionEncoding;

use super::Revision;
use super::apply::{Applied, Applier, Step};
use super::auth::MAX_MESSAGE;
use super::checkpoint::{Heard, Held};
use super::lease::Lease;
use super::shared::Shared;
use super::stops::StopSet;
use super::stream::{End, Ended, OPEN_LIMIT, Session};
use super::view::View;

/// How often a lease is asked for.
const PING_EVERY: Duration = Duration::from_secs(2);
/// A stream that says nothing for this long is dead.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);
/// Nonces that may be unanswered.
const MAX_NONCES: usize = 16;

/// The watch and the view that it keeps from one stream to the next.
pub(super) struct Watch {
    shared: Arc<Shared>,
    /// `None`: the next stream asks for a full snapshot.
    view: Option<Arc<View>>,
    /// What is to be kept on disk.
    newest: watch::Sender<Option<Arc<View>>>,
    checkpoint: Held,
}

impl Watch {
    pub(super) fn new(
        shared: Arc<Shared>,
        view: Option<Arc<View>>,
        newest: watch::Sender<Option<Arc<View>>>,
    ) -> Self {
        let checkpoint = Held::load(&shared);
        Self {
            shared,
            view,
            newest,
            checkpoint,
        }
    }

    fn hello(&self) -> Hello {
        Hello {
            held: self.view.as_ref().map(|view| view.revision.into()),
            held_digest: self
                .view
                .as_ref()
                .map_or_else(Bytes::new, |view| view.proof.digest.clone()),
            checkpoint: self.checkpoint.notice(),
        }
    }

    async fn open(&self, say: mpsc::Receiver<WatchRequest>) -> Result<Streaming<WatchResponse>, End> {
        let mut client = SnapshotsClient::new(self.shared.authenticated())
            .accept_compressed(CompressionEncoding::Zstd)
            .max_decoding_message_size(MAX_MESSAGE);
        match tokio::time::timeout(OPEN_LIMIT, client.watch(ReceiverStream::new(say))).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(End::Status(status)),
            Err(_) => Err(End::Failed(
                "the control plane did not open the stream in time".to_owned(),
            )),
        }
    }
}

impl Session for Watch {
    async fn run(&mut self, epoch: u64) -> Ended {
        let (say, said) = mpsc::channel(64);
        // INVARIANT: the queue is new and has room for the two first messages.
        let _ = say.try_send(message(Say::Hello(self.hello())));
        let mut live = Live::new(self, say);
        live.ping();
        let hear = match live.watch.open(said).await {
            Ok(hear) => hear,
            Err(end) => {
                return Ended {
                    end,
                    was_useful: false,
                };
            }
        };
        let end = live.serve(hear, epoch).await;
        Ended {
            end,
            was_useful: live.was_useful,
        }
    }
}

fn message(say: Say) -> WatchRequest {
    WatchRequest { message: Some(say) }
}

/// One open stream.
struct Live<'w> {
    watch: &'w mut Watch,
    say: mpsc::Sender<WatchRequest>,
    applier: Applier,
    /// Nonces that are under way, with the boot time at which each was sent.
    nonces: VecDeque<(Bytes, Duration)>,
    was_useful: bool,
}

impl<'w> Live<'w> {
    fn new(watch: &'w mut Watch, say: mpsc::Sender<WatchRequest>) -> Self {
        let applier = Applier::new(watch.shared.clone(), watch.view.clone());
        Self {
            watch,
            say,
            applier,
            nonces: VecDeque::new(),
            was_useful: false,
        }
    }

    async fn serve(&mut self, mut hear: Streaming<WatchResponse>, epoch: u64) -> End {
        let shared = self.watch.shared.clone();
        let mut pings = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let silence = tokio::time::sleep(SILENCE_LIMIT);
        let mut silence = std::pin::pin!(silence);
        loop {
            let outcome = tokio::select! {
                biased;
                heard = hear.message() => match heard {
                    Ok(Some(heard)) => {
                        silence.as_mut().reset(Instant::now() + SILENCE_LIMIT);
                        self.hear(heard)
                    }
                    Ok(None) => Err(End::closed()),
                    Err(status) => Err(End::Status(status)),
                },
                applied = self.applier.next() => self.applied(applied),
                _ = pings.tick() => { self.ping(); Ok(()) }
                () = shared.epoch_after(epoch) => Err(End::Again),
                () = &mut silence => Err(End::Failed("the control plane has gone silent".to_owned())),
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    fn hear(&mut self, heard: WatchResponse) -> Result<(), End> {
        match heard.message {
            Some(Hear::Full(full)) => self.enqueue(Step::Full(full)),
            Some(Hear::Delta(delta)) => self.enqueue(Step::Delta(delta)),
            Some(Hear::Heartbeat(heartbeat)) => {
                self.heartbeat(heartbeat);
                Ok(())
            }
            Some(Hear::Stops(stops)) => {
                let generation = self.watch.shared.in_force.snapshot().revision.generation;
                self.replace_stops(stops, generation);
                Ok(())
            }
            Some(Hear::Checkpoint(notice)) => match self.watch.checkpoint.hear(notice, &self.watch.shared) {
                Heard::Settled => Ok(()),
                Heard::Behind => Err(End::Again),
            },
            Some(Hear::Draining(draining)) => {
                let within = Duration::from_millis(draining.within_ms).min(Duration::from_secs(60));
                Err(End::Later(jittered(within)))
            }
            // A message of a newer contract.
            None => Ok(()),
        }
    }

    fn enqueue(&mut self, step: Step) -> Result<(), End> {
        if self.applier.push(step) {
            return Ok(());
        }
        self.watch.view = None;
        Err(End::Failed("too many changes wait to be applied".to_owned()))
    }

    fn applied(&mut self, applied: Applied) -> Result<(), End> {
        match applied {
            Applied::InForce { view, apply } => {
                let revision = view.revision;
                let rejected = view.rejected();
                self.watch.view = Some(view.clone());
                self.watch.newest.send_replace(Some(view));
                let say = if rejected.is_empty() {
                    Say::Ack(Ack {
                        revision: Some(revision.into()),
                        apply_us: u64::try_from(apply.as_micros()).unwrap_or(u64::MAX),
                    })
                } else {
                    tracing::error!(%revision, ?rejected, "parts of the snapshot cannot be decoded: their agents are denied");
                    Say::Nack(Nack {
                        revision: Some(revision.into()),
                        rejected,
                    })
                };
                self.say(say)
            }
            Applied::Refused { reason } => {
                // Whatever is held may be what is wrong: begin anew.
                self.watch.view = None;
                Err(End::Failed(reason))
            }
        }
    }

    fn heartbeat(&mut self, heartbeat: Heartbeat) {
        let shared = self.watch.shared.clone();
        let lease = heartbeat.lease.unwrap_or_default();
        let Some(at) = self.nonces.iter().position(|(nonce, _)| *nonce == lease.nonce) else {
            tracing::warn!("a heartbeat answers no ping of this stream and is left out");
            return;
        };
        let Some((_, asked_at)) = self.nonces.drain(..=at).next_back() else {
            return;
        };
        let revision: Revision = lease.revision.unwrap_or_default().into();
        // Stops first: the lease says that they hold.
        if let Some(stops) = heartbeat.stops {
            let applied = shared.in_force.snapshot().revision.generation;
            self.replace_stops(stops, applied.max(revision.generation));
        }
        shared.in_force.renew(Lease {
            asked_at,
            read_age: Duration::from_millis(lease.read_age_ms),
            revision,
            database_time: lease.database_time,
        });
        self.was_useful = true;
    }

    fn replace_stops(&mut self, stops: proto::v1::StopSet, generation: u64) {
        let shared = &self.watch.shared;
        let held = shared.in_force.stops().generation();
        let stops = StopSet::new(stops, generation.max(held));
        if shared.in_force.replace_stops(stops) {
            // Wakes the keeper: a restart must find the stop.
            self.watch.newest.send_modify(|_| {});
            // Says at once which stops hold here: somebody may wait for it.
            self.ping();
        }
    }

    /// Asks for a heartbeat. A queue that is full means a stream that is stuck, which silence ends.
    fn ping(&mut self) {
        let mut nonce = [0; 16];
        if getrandom::fill(&mut nonce).is_err() {
            return;
        }
        let nonce = Bytes::copy_from_slice(&nonce);
        let shared = &self.watch.shared;
        let spool = shared.spool.status();
        let ping = Ping {
            nonce: nonce.clone(),
            high_water: spool.high_water,
            open_intents: u32::try_from(spool.open_intents).unwrap_or(u32::MAX),
            lease_age_ms: shared
                .in_force
                .lease_age()
                .map_or(u64::MAX, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            applied: Some(shared.in_force.snapshot().revision.into()),
            stop_sequence: shared.in_force.stops().sequence(),
        };
        let asked_at = shared.clock.boot_now();
        if self.say(Say::Ping(ping)).is_err() {
            return;
        }
        if self.nonces.len() >= MAX_NONCES {
            self.nonces.pop_front();
        }
        self.nonces.push_back((nonce, asked_at));
    }

    fn say(&self, say: Say) -> Result<(), End> {
        self.say
            .try_send(message(say))
            .map_err(|_| End::Failed("the control plane takes no messages".to_owned()))
    }
}

/// Somewhere between nothing and the whole.
fn jittered(whole: Duration) -> Duration {
    let fraction = getrandom::u32().map_or(1.0, |number| f64::from(number) / f64::from(u32::MAX));
    whole.mul_f64(fraction)
}
