//! How long a connection of one party is kept, and what follows when it ends before its party does.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::link::Link;
use super::own::{Key, Own};
use super::session::Session;
use super::upstream::McpUpstream;
use crate::upstream::Origin;
use crate::upstream::retry::RetrySchedule;

/// A connection of a party that has no session ends when it is not used for this long.
const IDLE: Duration = Duration::from_secs(300);

/// Keeps a connection until it, its party or the sidecar ends.
pub(super) struct Attendance {
    pub(super) upstream: Arc<McpUpstream>,
    pub(super) key: Key,
    pub(super) own: Arc<Own>,
    pub(super) session: Arc<Session>,
    pub(super) origin: Arc<Origin>,
    /// Cancelled when it was opened by a request that ended before its party had it.
    pub(super) abandoned: CancellationToken,
}

/// Why a connection is no longer attended to.
enum Over {
    /// Nobody needs it any more.
    Unneeded,
    /// It ended by itself.
    Lost,
    /// It never was its party's, which has another, or none.
    Abandoned,
}

impl Attendance {
    pub(super) async fn run(self) {
        let over = {
            let listening = Link::listen(&self.session);
            tokio::pin!(listening);
            let over = self.over();
            tokio::pin!(over);
            tokio::select! {
                over = &mut over => over,
                never = &mut listening => match never {},
            }
        };
        match over {
            Over::Unneeded => self.upstream.own.forget(&self.key, &self.own),
            Over::Lost => self.upstream.ended(&self.key, &self.own, &self.origin),
            Over::Abandoned => {}
        }
        self.session.link.close(Some(&self.session.opened.wire)).await;
    }

    async fn over(&self) -> Over {
        let party_ended = async {
            match &self.origin.ended {
                Some(ended) => ended.cancelled().await,
                None => self.unused().await,
            }
        };
        tokio::pin!(party_ended);
        let link = &self.session.link;
        loop {
            tokio::select! {
                () = self.upstream.stop.cancelled() => return Over::Unneeded,
                () = self.own.close.cancelled() => return Over::Unneeded,
                () = self.abandoned.cancelled() => return Over::Abandoned,
                () = &mut party_ended => return Over::Unneeded,
                reason = link.ended() => {
                    tracing::debug!(upstream = %self.upstream.name(), "a session's own connection ended: {reason}");
                    return Over::Lost;
                }
                _ = link.expired() => return Over::Lost,
                () = link.changed().notified() => self.upstream.look_again(),
            }
        }
    }

    /// Returns when nobody has used the connection for a while.
    async fn unused(&self) {
        loop {
            let until = self.own.last_used() + IDLE;
            if self.own.is_in_use() {
                tokio::time::sleep(IDLE).await;
            } else if until <= Instant::now() {
                return;
            } else {
                tokio::time::sleep_until(until).await;
            }
        }
    }
}

/// Opens a connection anew whose party wants to hear something over it.
pub(super) struct Renewal {
    pub(super) upstream: Arc<McpUpstream>,
    pub(super) key: Key,
    pub(super) own: Arc<Own>,
    pub(super) origin: Arc<Origin>,
}

impl Renewal {
    pub(super) async fn run(self) {
        let over = async {
            let party_ended = async {
                match &self.origin.ended {
                    Some(ended) => ended.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.upstream.stop.cancelled() => {}
                () = self.own.close.cancelled() => {}
                () = party_ended => {}
            }
        };
        tokio::select! {
            () = over => self.upstream.own.forget(&self.key, &self.own),
            () = self.open() => {}
        }
    }

    /// Tries until the connection is open, by whomever.
    async fn open(&self) {
        let mut schedule = RetrySchedule::new(self.upstream.spec.retry);
        let mut wait = schedule.after_loss(Duration::ZERO);
        while self.own.session.get().is_none() && self.upstream.own.is_current(&self.key, &self.own) {
            sleep(wait).await;
            let mut sessions = self.upstream.sessions.subscribe();
            let shared = match sessions.wait_for(Option::is_some).await {
                Ok(session) => session.clone(),
                Err(_) => return,
            };
            let Some(shared) = shared else { continue };
            let opening = self.upstream.opened(&self.own, &self.key, &self.origin, &shared);
            if let Err(failure) = opening.await {
                tracing::debug!(upstream = %self.upstream.name(), "a session's own connection is not there again: {failure}");
                wait = schedule.after_failure();
            }
        }
    }
}
