//! Reading the answer to a request out of its response, or out of the stream that the response is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::ACCEPT;
use http::{Method, StatusCode};

use super::exchange::Exchange;
use super::sse::Events;
use super::{Asked, EVENTS, Expected, HttpLink, LAST_EVENT_ID, SESSION_ID};
use crate::upstream::AnswerKind;
use crate::upstream::mcp::envelope::{self, Answer, Message};
use crate::upstream::mcp::failure::Failure;
use crate::upstream::mcp::hearing::Answering;
use crate::upstream::mcp::link::Reply;
use crate::upstream::mcp::session::Wire;
use crate::upstream::mcp::{Era, scan};

/// The largest body that is read of a response that is no success.
const MAX_REFUSAL: usize = 64 * 1024;
/// How long the end of a stream is waited for once its answer came.
const STREAM_END: Duration = Duration::from_secs(2);
/// Times that a stream which brings nothing new is resumed, where the upstream does not ask for it.
const MAX_IDLE_RESUMES: u32 = 5;
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// How a stream ended before its answer.
enum Ending {
    /// The upstream closed it.
    Closed,
    Broken(Failure),
}

impl Ending {
    fn failure(self) -> Failure {
        match self {
            Self::Closed => Failure::Lost("the event stream ended before the answer".to_owned()),
            Self::Broken(failure) => failure,
        }
    }
}

/// How long is waited before a stream is resumed that brought nothing new so many times. `None`: it is not. One whose upstream asks to
/// be asked again is resumed for as long as its call may take.
fn pause(retry: Option<Duration>, idle_resumes: u32) -> Option<Duration> {
    let is_idle = idle_resumes >= MAX_IDLE_RESUMES;
    match retry {
        Some(retry) if is_idle => Some(retry.clamp(DEFAULT_RETRY, LONGEST_RETRY)),
        Some(retry) => Some(retry.min(LONGEST_RETRY)),
        None => (!is_idle).then_some(DEFAULT_RETRY),
    }
}

impl HttpLink {
    /// Reads the answer to request `id`.
    pub(super) async fn answer(
        self: &Arc<Self>,
        mut exchange: Exchange,
        wire: &Wire,
        expected: Expected<'_>,
    ) -> Result<Reply, Failure> {
        let session_id = exchange.head.headers.get(SESSION_ID).cloned();
        let answer = if !exchange.status().is_success() {
            Box::pin(self.refusal(exchange, wire)).await?
        } else if exchange.is("text/event-stream") {
            Box::pin(self.stream(exchange, wire, expected)).await?
        } else if exchange.is("application/json") {
            let text = exchange.whole(self.limits.message_bytes).await?;
            self.pool.give(exchange.connection);
            match envelope::read(&text) {
                Ok(Message::Answer { id: answered, answer }) if Some(answered) == expected.id => answer,
                Ok(_) => return Err(Failure::Protocol("it answered another request".to_owned())),
                Err(unreadable) => return Err(Failure::Protocol(unreadable.problem.to_owned())),
            }
        } else {
            let status = exchange.status().as_u16();
            return Err(Failure::Protocol(format!(
                "it answered a request with status {status} and neither JSON nor an event stream"
            )));
        };
        Ok(Reply { answer, session_id })
    }

    /// What a response that is no success says: a JSON-RPC error is an answer, everything else a failure.
    pub(super) async fn refusal(&self, mut exchange: Exchange, wire: &Wire) -> Result<Answer, Failure> {
        let status = exchange.status();
        let has_session = wire.session_id.is_some();
        if status == StatusCode::NOT_FOUND && has_session {
            self.discard(exchange).await;
            return Err(Failure::SessionExpired);
        }
        let read = exchange.whole(MAX_REFUSAL).await;
        if read.is_ok() {
            self.pool.give(exchange.connection);
        }
        let text = read.unwrap_or_default();
        if matches!(status.as_u16(), 401 | 403 | 407 | 429) {
            return Err(Failure::Status(status.as_u16()));
        }
        let is_readable =
            std::str::from_utf8(&text).is_ok() && scan::members(&text).all(|member| member.is_ok());
        let error = scan::member(&text, "error").filter(|error| is_readable && error.starts_with(b"{"));
        let Some(error) = error else {
            return Err(Failure::Status(status.as_u16()));
        };
        // Some servers say 400 where the specification says 404.
        if status == StatusCode::BAD_REQUEST && has_session && names_session(error) {
            return Err(Failure::SessionExpired);
        }
        Ok(Answer {
            kind: AnswerKind::Error,
            raw: text.slice_ref(error),
        })
    }

    async fn stream(
        self: &Arc<Self>,
        mut exchange: Exchange,
        wire: &Wire,
        expected: Expected<'_>,
    ) -> Result<Answer, Failure> {
        let mut last_id: Option<String> = None;
        let mut retry = None;
        let mut idle_resumes = 0;
        loop {
            let mut events = Events::new(self.limits.message_bytes);
            let ending = loop {
                match events.next() {
                    Ok(Some(data)) => {
                        idle_resumes = 0;
                        if let Some(answer) = self.event(&data, wire, expected)? {
                            self.release(exchange);
                            return Ok(answer);
                        }
                        continue;
                    }
                    Ok(None) => {}
                    Err(_) => return Err(Failure::AnswerTooLarge(self.limits.message_bytes)),
                }
                match exchange.chunk().await {
                    Ok(Some(chunk)) => events.push(&chunk),
                    Ok(None) => break Ending::Closed,
                    Err(failure) => break Ending::Broken(failure),
                }
            };
            if let Some(id) = events.last_id() {
                last_id = Some(id.to_owned());
            }
            retry = events.retry().or(retry);
            let Some(last_id) = last_id.as_deref().filter(|_| wire.dialect.era == Era::Legacy) else {
                return Err(ending.failure());
            };
            let Some(pause) = pause(retry, idle_resumes) else {
                return Err(ending.failure());
            };
            idle_resumes += 1;
            if let (Ending::Closed, Some(_), Some(audience)) = (&ending, retry, expected.audience) {
                audience.paused(pause);
            }
            tokio::time::sleep(pause).await;
            exchange = self.resume(wire, Some(last_id)).await?;
            if !exchange.status().is_success() || !exchange.is("text/event-stream") {
                return Err(ending.failure());
            }
        }
    }

    /// Opens the stream of a legacy session, from behind the event `last_id` on where there is one.
    pub(super) async fn resume(&self, wire: &Wire, last_id: Option<&str>) -> Result<Exchange, Failure> {
        self.send(Method::GET, Bytes::new(), || {
            let mut headers = self.headers(wire);
            headers.insert(ACCEPT, EVENTS);
            if let Some(id) = last_id.and_then(|id| id.parse().ok()) {
                headers.insert(LAST_EVENT_ID, id);
            }
            headers
        })
        .await
    }

    /// Takes in one message of a stream; returns the answer to request `id` when it is that.
    pub(super) fn event(
        self: &Arc<Self>,
        data: &Bytes,
        wire: &Wire,
        expected: Expected<'_>,
    ) -> Result<Option<Answer>, Failure> {
        match envelope::read(data) {
            Ok(Message::Answer { id: answered, answer }) => {
                if Some(answered) == expected.id {
                    return Ok(Some(answer));
                }
                self.ignore("an answer that nobody waits for");
            }
            Ok(Message::Request { id, method, params }) => {
                if wire.dialect.era == Era::Legacy {
                    self.asked(wire, id, &method, params, expected.asked);
                } else {
                    self.ignore("a request, which its revision does not allow");
                }
            }
            Ok(Message::Notification { method, params }) => {
                self.notified(&method, params, wire, expected);
            }
            Err(unreadable) => {
                if unreadable.id.is_some() && unreadable.id == expected.id {
                    return Err(Failure::Protocol(unreadable.problem.to_owned()));
                }
                self.ignore(unreadable.problem);
            }
        }
        Ok(None)
    }

    fn notified(&self, method: &str, params: Bytes, wire: &Wire, expected: Expected<'_>) {
        match method {
            "notifications/progress" => {
                let token = scan::member(&params, "progressToken")
                    .and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<u64>().ok());
                let audience = expected
                    .audience
                    .filter(|audience| token == expected.id && audience.wants_progress());
                match audience {
                    Some(audience) => audience.progressed(&params),
                    None => tracing::debug!(upstream = %self.name, "progress that nobody takes was dropped"),
                }
            }
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.changed.notify_one(),
            // A modern upstream logs on the stream of the request that asked for it, which is nobody else's.
            "notifications/message" if wire.dialect.era == Era::Modern => {
                if let Some(audience) = expected.audience {
                    audience.logged(&self.name, &params);
                }
            }
            other => self.hearing.notified(other, params, expected.caller()),
        }
    }

    /// A request of the upstream, on the stream of a request whose agent can be asked where there is one.
    fn asked(self: &Arc<Self>, wire: &Wire, id: Bytes, method: &str, params: Bytes, asked: Option<&Asked>) {
        let client = asked.map(|asked| &asked.client);
        match self.hearing.question(id, method, params, client) {
            Answering::Now(message) => self.notify_aside(wire, message),
            Answering::Asked(asking) => {
                let (link, wire) = (Arc::clone(self), wire.clone());
                let request_ended = asked.map(|asked| asked.ended.clone());
                let end = self.end.clone();
                self.tasks.spawn(async move {
                    let sending = asking.run(request_ended, |message| link.notify(&wire, message));
                    tokio::select! {
                        () = end.cancelled() => {}
                        () = sending => {}
                    }
                });
            }
        }
    }

    /// Gives the connection of a stream back once the stream has ended.
    fn release(self: &Arc<Self>, mut exchange: Exchange) {
        match exchange.chunk().now_or_never() {
            Some(Ok(None)) => self.pool.give(exchange.connection),
            Some(Err(_)) => {}
            Some(Ok(Some(_))) | None => {
                let link = Arc::clone(self);
                self.tasks.spawn(async move {
                    let _ = tokio::time::timeout(STREAM_END, link.discard(exchange)).await;
                });
            }
        }
    }

    fn ignore(&self, what: &str) {
        if let Some(number) = self.unusable.admit() {
            tracing::warn!(upstream = %self.name, number, "ignored what it sent: {what}");
        }
    }
}

fn names_session(error: &[u8]) -> bool {
    scan::member(error, "message")
        .and_then(|raw| serde_json::from_slice::<String>(raw).ok())
        .is_some_and(|message| message.to_lowercase().contains("session"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_that_asks_to_be_asked_again_is_and_never_in_a_hurry() {
        let soon = Some(Duration::from_millis(20));
        assert_eq!(pause(soon, 0), soon);
        assert_eq!(pause(soon, 500), Some(DEFAULT_RETRY));
        assert_eq!(
            pause(Some(Duration::from_secs(4)), 500),
            Some(Duration::from_secs(4))
        );
        assert_eq!(pause(Some(Duration::MAX), 0), Some(LONGEST_RETRY));
        assert_eq!(pause(None, 0), Some(DEFAULT_RETRY));
        assert_eq!(pause(None, MAX_IDLE_RESUMES), None);
    }
}
