//! One watcher's session.

use std::sync::Arc;

use proto::v1::watch_request::Message as Received;
use proto::v1::watch_response::Message;
use proto::v1::{Draining, Heartbeat, Hello, Lease, Nack, Ping, WatchRequest};
use tokio::sync::watch;
use tonic::{Status, Streaming};

use super::outgoing::Sender;
use crate::auth::{Claims, LiveStream};
use crate::core::Core;
use crate::grpc::refusal::Refused;
use crate::snapshot::{Channel, Next, encode};
use crate::stops::StopsFor;
use crate::store::Revision;
use crate::store::sidecars::{RejectedResource, SidecarHeartbeat};
use crate::traces::Notice;

pub(super) struct Session {
    core: Arc<Core>,
    claims: Claims,
    stops_for: StopsFor,
    channel: Arc<Channel>,
    live: LiveStream,
    incoming: Streaming<WatchRequest>,
    outgoing: Sender,
    /// What the receiver holds once it has taken everything sent; `None` before its Hello.
    sent: Option<Revision>,
}

/// What woke a session.
enum Event {
    Ended(Status),
    Drain,
    Received(Option<WatchRequest>),
    Head,
    Stops,
    Checkpoint,
}

impl Session {
    pub(super) fn new(
        core: Arc<Core>,
        claims: Claims,
        channel: Arc<Channel>,
        live: LiveStream,
        incoming: Streaming<WatchRequest>,
        outgoing: Sender,
    ) -> Self {
        let stops_for = StopsFor::of(&claims);
        Self {
            core,
            claims,
            stops_for,
            channel,
            live,
            incoming,
            outgoing,
            sent: None,
        }
    }

    pub(super) async fn run(mut self) {
        self.core.metrics.streams.inc();
        let end = self.serve().await;
        self.core.metrics.streams.dec();
        if let Err(status) = end {
            tracing::info!(sidecar = %self.claims.sidecar, epoch = self.claims.epoch, code = ?status.code(), reason = status.message(), "watch ended");
            self.outgoing.end(status);
        }
    }

    /// Serves until the receiver leaves (`Ok`) or is to be told why it ends (`Err`).
    async fn serve(&mut self) -> Result<(), Status> {
        let mut head = self.channel.subscribe();
        let mut stops = self.core.stops.subscribe();
        let mut checkpoint = self.core.checkpoints.subscribe();
        let draining = self.core.draining.clone();
        let mut told_to_drain = false;
        loop {
            let event = tokio::select! {
                biased;
                status = self.live.ended(&self.core) => Event::Ended(status),
                () = draining.cancelled(), if !told_to_drain => Event::Drain,
                Ok(()) = stops.changed(), if self.sent.is_some() => Event::Stops,
                Ok(()) = head.changed(), if self.sent.is_some() => Event::Head,
                Ok(()) = checkpoint.changed(), if self.sent.is_some() => Event::Checkpoint,
                message = self.incoming.message() => Event::Received(message?),
            };
            match event {
                Event::Ended(status) => return Err(status),
                Event::Drain => {
                    told_to_drain = true;
                    self.drain().await?;
                }
                Event::Stops => self.send_stops().await?,
                Event::Head => self.send_state().await?,
                Event::Checkpoint => self.send_checkpoint(&mut checkpoint).await?,
                Event::Received(None) => return Ok(()),
                Event::Received(Some(message)) => self.receive(message).await?,
            }
        }
    }

    async fn receive(&mut self, message: WatchRequest) -> Result<(), Status> {
        match message.message {
            Some(Received::Hello(hello)) => self.hello(hello).await,
            Some(Received::Ping(ping)) => self.heartbeat(ping).await,
            Some(Received::Ack(ack)) => {
                self.core.rollout.acknowledged(
                    &self.claims,
                    ack.revision.unwrap_or_default().into(),
                    ack.apply_us,
                    Vec::new(),
                );
                Ok(())
            }
            Some(Received::Nack(nack)) => {
                self.nack(nack);
                Ok(())
            }
            // A message of a newer contract.
            None => Ok(()),
        }
    }

    async fn hello(&mut self, hello: Hello) -> Result<(), Status> {
        if self.sent.is_some() {
            return Err(Status::invalid_argument(
                "Hello was said before; it is the first message of a stream",
            ));
        }
        if let Some(checkpoint) = &hello.checkpoint {
            crate::traces::compare_with_held(&self.core, checkpoint).await?;
        }
        let held = hello.held.map(Revision::from);
        match held.filter(|held| self.channel.knows(*held, &hello.held_digest)) {
            Some(held) => self.sent = Some(held),
            None => self.send_full().await?,
        }
        self.send_state().await?;
        self.send_stops().await?;
        let mut checkpoint = self.core.checkpoints.subscribe();
        self.send_checkpoint(&mut checkpoint).await
    }

    /// Sends what the receiver lacks of the present state.
    async fn send_state(&mut self) -> Result<(), Status> {
        loop {
            let Some(sent) = self.sent else { return Ok(()) };
            match self.channel.after(sent) {
                Next::Nothing => return Ok(()),
                Next::Steps(steps) => {
                    for step in steps {
                        self.send(step.bytes.clone()).await?;
                        self.core
                            .metrics
                            .delta_bytes
                            .inc_by(u64::try_from(step.bytes.len()).unwrap_or(0));
                        self.sent = Some(step.to);
                    }
                }
                Next::Full if sent.generation == self.channel.revision().generation => {
                    return Err(Refused::SlowReceiver.status(
                        "the receiver is too far behind the changes; reconnect for a full snapshot",
                    ));
                }
                Next::Full => self.send_full().await?,
            }
        }
    }

    async fn send_full(&mut self) -> Result<(), Status> {
        let image = self.core.hub.image(&self.channel).await.map_err(|error| {
            tracing::error!(%error, "cannot make a snapshot");
            Status::unavailable("the snapshot cannot be made now; reconnect")
        })?;
        self.send(image.bytes.clone()).await?;
        self.core.metrics.full_snapshots.inc();
        self.sent = Some(image.revision);
        Ok(())
    }

    async fn heartbeat(&mut self, ping: Ping) -> Result<(), Status> {
        let read = self.core.primary.last();
        let age = self.core.clock.since(read.began);
        let lease = Lease {
            nonce: ping.nonce.clone(),
            revision: Some(read.revision.into()),
            database_time: self.core.primary.database_now(),
            read_age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
        };
        let stops = self.core.stops.set_for(&self.stops_for);
        let heartbeat = SidecarHeartbeat {
            lease_age_ms: ping.lease_age_ms,
            high_water: ping.high_water,
            open_intents: ping.open_intents,
            stop_sequence: ping.stop_sequence,
        };
        self.core
            .rollout
            .heard(&self.claims, heartbeat, self.core.clock.boot_now());
        self.send(encode(Message::Heartbeat(Heartbeat {
            lease: Some(lease),
            stops: Some(stops),
        })))
        .await
    }

    fn nack(&self, nack: Nack) {
        let rejected = nack.rejected.into_iter().map(|rejected| RejectedResource {
            kind: rejected.r#type,
            name: rejected.name,
            reason: rejected.reason,
        });
        let revision = nack.revision.unwrap_or_default().into();
        self.core
            .rollout
            .acknowledged(&self.claims, revision, 0, rejected.collect());
    }

    async fn send_stops(&mut self) -> Result<(), Status> {
        let stops = self.core.stops.set_for(&self.stops_for);
        self.send(encode(Message::Stops(stops))).await
    }

    async fn send_checkpoint(
        &mut self,
        newest: &mut watch::Receiver<Option<Arc<Notice>>>,
    ) -> Result<(), Status> {
        let notice = newest.borrow_and_update().clone();
        match notice {
            Some(notice) => self.send(notice.bytes.clone()).await,
            None => Ok(()),
        }
    }

    async fn drain(&mut self) -> Result<(), Status> {
        let within_ms = u64::try_from((self.core.limits.drain / 2).as_millis()).unwrap_or(u64::MAX);
        self.send(encode(Message::Draining(Draining { within_ms }))).await
    }

    async fn send(&mut self, message: bytes::Bytes) -> Result<(), Status> {
        tokio::select! {
            biased;
            status = self.live.ended(&self.core) => Err(status),
            sent = self.outgoing.send(message) => sent,
        }
    }
}
