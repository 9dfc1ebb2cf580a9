//! What the long-lived streams have in common: one loop that opens them again and again, patiently.

use std::sync::Arc;
use std::time::Duration;

use net::backoff::Backoff;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::auth;
use super::shared::Shared;

/// How long a stream must have lived, and been of use, before the next attempt is quick again.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// How long opening a stream may take.
pub(super) const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// Why a stream ended.
#[derive(Debug)]
pub(super) enum End {
    /// Its work is done, or a better stream is wanted at once.
    Again,
    /// The server asked to come back elsewhere, after this wait.
    Later(Duration),
    /// The server ended it.
    Status(Status),
    /// This side ended it, for a reason.
    Failed(String),
}

impl End {
    pub(super) fn closed() -> Self {
        Self::Failed("the control plane closed the stream".to_owned())
    }
}

impl From<Status> for End {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// How a stream went.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) end: End,
    /// It did what it is for.
    pub(super) was_useful: bool,
}

/// One kind of stream, with what it keeps from one to the next.
pub(super) trait Session: Send {
    /// Opens the stream and serves it until it ends.
    fn run(&mut self, epoch: u64) -> impl Future<Output = Ended> + Send;
}

/// Opens a stream, once enrolled, and opens it again whenever it ends, until shutdown. A status that is final until configuration
/// changes is waited out.
pub(super) async fn keep_open<S: Session>(
    name: &'static str,
    shared: Arc<Shared>,
    shutdown: CancellationToken,
    mut session: S,
) {
    let mut backoff = Backoff::default();
    loop {
        let epoch = tokio::select! {
            () = shutdown.cancelled() => return,
            epoch = shared.enrolled() => epoch,
        };
        let opened = Instant::now();
        let Ended { end, was_useful } = tokio::select! {
            () = shutdown.cancelled() => return,
            ended = session.run(epoch) => ended,
        };
        if was_useful && opened.elapsed() >= SETTLED_AFTER {
            backoff.reset();
        }
        let wait = after(name, &shared, epoch, end, &mut backoff);
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = wait => {}
        }
    }
}

/// What comes before the next attempt.
async fn after(name: &'static str, shared: &Arc<Shared>, epoch: u64, end: End, backoff: &mut Backoff) {
    match end {
        End::Again => backoff.wait().await,
        End::Later(wait) => tokio::time::sleep(wait.max(backoff.next_delay())).await,
        End::Failed(reason) => {
            tracing::warn!(stream = name, reason, "a stream to the control plane ended");
            backoff.wait().await;
        }
        End::Status(status) if auth::is_final(&status) => {
            tracing::error!(stream = name, code = ?status.code(), reason = status.message(),
                "the control plane refuses this stream until configuration changes");
            if auth::is_revoked(&status) {
                // The enrolment asks, and ends what runs here: this may be the late word about an earlier credential.
                shared.renew_now.notify_one();
            }
            tokio::select! {
                () = shared.reconfigured.notified() => {}
                () = shared.epoch_after(epoch) => {}
            }
            backoff.reset();
        }
        End::Status(status) => {
            if status.code() == Code::Unauthenticated {
                shared.renew_now.notify_one();
            }
            tracing::warn!(stream = name, code = ?status.code(), reason = status.message(),
                "a stream to the control plane ended");
            backoff.wait().await;
        }
    }
}
