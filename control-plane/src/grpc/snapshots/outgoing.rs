//! The bounded queue between a watch session and its connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::mpsc;
use tonic::Status;

use crate::core::StreamLimits;
use crate::grpc::refusal::Refused;

type End = Arc<Mutex<Option<Status>>>;

/// A queue as the limits say.
pub(crate) fn bounded(limits: &StreamLimits) -> (Sender, Outgoing) {
    let (queue, receiver) = mpsc::channel(limits.queue.max(1));
    let end = End::default();
    let sender = Sender {
        queue,
        end: Arc::clone(&end),
        patience: limits.patience,
    };
    (
        sender,
        Outgoing {
            receiver,
            end,
            is_over: false,
        },
    )
}

/// The session's side.
pub(crate) struct Sender {
    queue: mpsc::Sender<Bytes>,
    end: End,
    patience: Duration,
}

impl Sender {
    /// Queues one message; waits for room only as long as the receiver's patience allows.
    ///
    /// # Errors
    /// `slow_receiver` when there is no room in time; cancelled when the receiver is gone.
    pub(crate) async fn send(&self, message: Bytes) -> Result<(), Status> {
        match self.queue.send_timeout(message, self.patience).await {
            Ok(()) => Ok(()),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => Err(Refused::SlowReceiver
                .status("the receiver did not take its messages in time; reconnect and resume")),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(Status::cancelled("the receiver is gone")),
        }
    }

    /// Ends the stream with a status, in front of what is queued.
    pub(crate) fn end(self, status: Status) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
    }
}

/// The connection's side: messages, then the status that the session ended with.
pub(crate) struct Outgoing {
    receiver: mpsc::Receiver<Bytes>,
    end: End,
    is_over: bool,
}

impl Outgoing {
    fn taken_end(&self) -> Option<Status> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Stream for Outgoing {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        if let Some(status) = self.taken_end() {
            self.is_over = true;
            return Poll::Ready(Some(Err(status)));
        }
        match self.receiver.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(message)) => Poll::Ready(Some(Ok(message))),
            Poll::Ready(None) => {
                self.is_over = true;
                Poll::Ready(self.taken_end().map(Err))
            }
        }
    }
}
