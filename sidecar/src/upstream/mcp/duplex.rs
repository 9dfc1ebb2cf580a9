//! MCP over a connection that carries all messages both ways, whatever carries them: the standard streams of a child process, or
//! the transport of revision 2024-11-05.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::envelope::{self, Answer, Message};
use super::failure::Failure;
use super::hearing::{Answering, Caller, Hearing};
use super::link::Reply;
use super::pending::Pending;
use super::session::{self, Session};
use super::throttle::Throttle;
use super::{Dialect, Era, message, scan};
use crate::upstream::{UpstreamLimits, UpstreamRequest};

/// Lines that wait to be written. When it is full, callers wait.
const QUEUE: usize = 64;
/// How long a cancellation may wait for room in the queue.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);
/// Between two subscriptions to an upstream that ends them.
const LISTEN_PAUSE: Duration = Duration::from_secs(5);

/// A connection that calls share, by ids of our own.
#[derive(Debug)]
pub(super) struct DuplexLink {
    name: Arc<str>,
    limits: UpstreamLimits,
    queue: mpsc::Sender<Bytes>,
    pending: Pending,
    next_id: AtomicU64,
    pub(super) changed: Notify,
    hearing: Arc<Hearing>,
    end: CancellationToken,
    gone: CancellationToken,
    tasks: TaskTracker,
    unusable: Throttle,
}

impl DuplexLink {
    /// A link whose messages `carry` takes both ways, until it is done.
    pub(super) fn carried<F>(
        name: Arc<str>,
        limits: UpstreamLimits,
        hearing: Hearing,
        tasks: &TaskTracker,
        stop: &CancellationToken,
        carry: impl FnOnce(Arc<Self>, mpsc::Receiver<Bytes>) -> F,
    ) -> Arc<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (queue, lines) = mpsc::channel(QUEUE);
        let link = Arc::new(Self {
            name,
            queue,
            pending: Pending::new(limits.calls_in_flight),
            limits,
            next_id: AtomicU64::new(1),
            changed: Notify::new(),
            hearing: Arc::new(hearing),
            end: stop.child_token(),
            gone: CancellationToken::new(),
            tasks: tasks.clone(),
            unusable: Throttle::default(),
        });
        let gone = link.gone.clone().drop_guard();
        let carrying = carry(Arc::clone(&link), lines);
        tasks.spawn(async move {
            carrying.await;
            drop(gone);
        });
        link
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn limits(&self) -> &UpstreamLimits {
        &self.limits
    }

    /// Waits until somebody wants the connection to end.
    pub(super) async fn closing(&self) {
        self.end.cancelled().await;
    }

    /// A message could not be sent: if it is a request, whoever waits for its answer learns of it.
    pub(super) fn not_sent(&self, message: &[u8], failure: Failure) {
        let is_request = scan::member(message, "method").is_some();
        let id = scan::member(message, "id")
            .and_then(number)
            .filter(|_| is_request);
        if !id.is_some_and(|id| self.pending.settle(id, Err(failure.clone()))) {
            tracing::debug!(upstream = %self.name, "a message was not taken: {failure}");
        }
    }

    pub(super) async fn request(&self, method: &str, params: &[u8]) -> Result<Reply, Failure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let outcome = self.pending.add(id, None)?;
        let mut guard = InFlight {
            link: self,
            id,
            is_cancellable: false,
        };
        self.send(message::request(id, method, params)).await?;
        // An `initialize` request cannot be cancelled.
        guard.is_cancellable = method != "initialize";
        let answer = outcome.await.unwrap_or_else(|_| Err(self.lost()))?;
        Ok(Reply {
            answer,
            session_id: None,
        })
    }

    pub(super) async fn call(
        &self,
        dialect: &Dialect,
        request: &UpstreamRequest,
        forwards_identity: bool,
    ) -> Result<Answer, Failure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = message::call(id, request, dialect, forwards_identity);
        let outcome = self.pending.add(id, request.audience.clone())?;
        let _served = self.hearing.serves(id, request);
        let mut guard = InFlight {
            link: self,
            id,
            is_cancellable: false,
        };
        self.send(message).await?;
        guard.is_cancellable = true;
        outcome.await.unwrap_or_else(|_| Err(self.lost()))
    }

    /// Queues one message.
    pub(super) async fn send(&self, message: Vec<u8>) -> Result<(), Failure> {
        if message.len() > self.limits.message_bytes {
            return Err(Failure::RequestTooLarge(self.limits.message_bytes));
        }
        let line = Bytes::from(message::on_one_line(message));
        tokio::select! {
            sent = self.queue.send(line) => sent.map_err(|_| self.unreachable()),
            () = self.end.cancelled() => Err(self.unreachable()),
        }
    }

    /// Keeps a subscription to changes of the lists open.
    pub(super) async fn listen(&self, session: &Session) -> Infallible {
        if session.opened.wire.dialect.era == Era::Legacy {
            return std::future::pending().await;
        }
        let mut subscribed = session.subscribed.clone();
        loop {
            let params = session.opened.listen_params(&subscribed.borrow_and_update());
            tokio::select! {
                ended = self.request("subscriptions/listen", &params) => {
                    tracing::debug!(upstream = %self.name, "subscription ended: {:?}", ended.map(|reply| reply.answer.kind));
                    tokio::time::sleep(LISTEN_PAUSE).await;
                    self.changed.notify_one();
                }
                () = session::changed(&mut subscribed) => {}
            }
        }
    }

    pub(super) async fn ended(&self) -> String {
        self.end.cancelled().await;
        self.pending
            .reason()
            .unwrap_or_else(|| "it was closed".to_owned())
    }

    pub(super) async fn close(&self) {
        self.end.cancel();
        self.gone.cancelled().await;
    }

    pub(super) fn give_up(&self) {
        self.end.cancel();
    }

    pub(super) fn close_with(&self, reason: &str) {
        self.pending.close(reason);
        self.end.cancel();
    }

    fn lost(&self) -> Failure {
        Failure::Lost(
            self.pending
                .reason()
                .unwrap_or_else(|| "it was closed".to_owned()),
        )
    }

    fn unreachable(&self) -> Failure {
        Failure::Unreachable(
            self.pending
                .reason()
                .unwrap_or_else(|| "it was closed".to_owned()),
        )
    }

    /// One message of the upstream.
    pub(super) fn receive(self: &Arc<Self>, line: Bytes) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match envelope::read(&line) {
            Ok(Message::Answer { id, answer }) => {
                if !self.pending.settle(id, Ok(answer)) {
                    self.ignore("an answer that nobody waits for");
                }
            }
            Ok(Message::Request { id, method, params }) => self.asked(id, &method, params),
            Ok(Message::Notification { method, params }) => self.notified(&method, params),
            Err(unreadable) => {
                let failure = Failure::Protocol(unreadable.problem.to_owned());
                if !unreadable
                    .id
                    .is_some_and(|id| self.pending.settle(id, Err(failure)))
                {
                    self.ignore(unreadable.problem);
                }
            }
        }
    }

    pub(super) fn receive_overlong(&self, head: &[u8], tail: &[u8]) {
        let failure = Failure::AnswerTooLarge(self.limits.message_bytes);
        let settled = overlong_id(head, tail).is_some_and(|id| self.pending.settle(id, Err(failure)));
        if !settled {
            self.ignore("a message larger than limits.message_bytes");
        }
    }

    fn notified(&self, method: &str, params: Bytes) {
        match method {
            "notifications/progress" => {
                let token = scan::member(&params, "progressToken").and_then(number);
                if !token.is_some_and(|token| self.pending.progress(token, &params)) {
                    tracing::debug!(upstream = %self.name, "progress that nobody takes was dropped");
                }
            }
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.changed.notify_one(),
            other => self.hearing.notified(other, params, Caller::default()),
        }
    }

    fn asked(self: &Arc<Self>, id: Bytes, method: &str, params: Bytes) {
        match self.hearing.question(id, method, params, None) {
            Answering::Now(message) => {
                let line = message::on_one_line(message);
                if self.queue.try_send(Bytes::from(line)).is_err() {
                    self.ignore("a request, as it reads too slowly");
                }
            }
            Answering::Asked(asking) => {
                let link = Arc::clone(self);
                let ended = Some(self.end.clone());
                self.tasks.spawn(async move {
                    let sender = Arc::clone(&link);
                    asking
                        .run(ended, move |message| {
                            let link = Arc::clone(&sender);
                            async move { link.send(message).await }
                        })
                        .await;
                });
            }
        }
    }

    fn ignore(&self, what: &str) {
        if let Some(number) = self.unusable.admit() {
            tracing::warn!(upstream = %self.name, number, "ignored what it wrote: {what}");
        }
    }
}

/// The request that a message beyond the bound answers, from what is left of its ends.
fn overlong_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    let first = scan::members(head)
        .map_while(Result::ok)
        .find(|member| member.key == b"id");
    if let Some(member) = first {
        return number(member.value);
    }
    let key = b"\"id\":";
    let start = memchr::memmem::rfind(tail, key)? + key.len();
    let rest = tail.get(start..)?.trim_ascii();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (id, rest) = rest.split_at_checked(digits)?;
    let closes = matches!(rest.trim_ascii(), b"}" | b",\"jsonrpc\":\"2.0\"}");
    if closes { number(id) } else { None }
}

fn number(raw: &[u8]) -> Option<u64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

/// A request that was sent; dropped before its answer, it tells the upstream.
struct InFlight<'a> {
    link: &'a DuplexLink,
    id: u64,
    is_cancellable: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.link.pending.forget(self.id) || !self.is_cancellable {
            return;
        }
        let line = Bytes::from(message::on_one_line(message::cancelled(self.id)));
        let Err(mpsc::error::TrySendError::Full(line)) = self.link.queue.try_send(line) else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let queue = self.link.queue.clone();
        self.link.tasks.spawn_on(
            async move {
                let _ = tokio::time::timeout(CANCEL_PATIENCE, queue.send(line)).await;
            },
            &runtime,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_beyond_the_bound_still_names_its_request() {
        assert_eq!(
            overlong_id(br#"{"jsonrpc":"2.0","id":7,"result":{"content":["#, b"x}}"),
            Some(7)
        );
        assert_eq!(
            overlong_id(br#"{"result":{"content":["#, br#"xx"}]},"jsonrpc":"2.0","id":8}"#),
            Some(8)
        );
        assert_eq!(
            overlong_id(br#"{"result":{"#, br#"xx"}]},"id":9,"jsonrpc":"2.0"}"#),
            Some(9)
        );
        assert_eq!(overlong_id(br#"{"result":{"#, br#"xx","id":9}}"#), None);
    }
}
