//! Reading the answer to a request out of its response, or out of the stream that the response is.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::ACCEPT;
use http::{Method, StatusCode};

use super::exchange::Exchange;
use super::sse::Events;
use super::{Caller, EVENTS, Expected, HttpLink, LAST_EVENT_ID, SESSION_ID};
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
/// Times that a stream which brings nothing new is resumed.
const MAX_IDLE_RESUMES: usize = 5;
const DEFAULT_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

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
    async fn refusal(&self, mut exchange: Exchange, wire: &Wire) -> Result<Answer, Failure> {
        let status = exchange.status();
        let has_session = wire.session_id.is_some();
        if status == StatusCode::NOT_FOUND && has_session {
            self.discard(exchange).await;
            return Err(Failure::SessionExpired);
        }
        let text = exchange.whole(MAX_REFUSAL).await.unwrap_or_default();
        self.pool.give(exchange.connection);
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
                    Ok(None) => break Failure::Lost("the event stream ended before the answer".to_owned()),
                    Err(failure) => break failure,
                }
            };
            if let Some(id) = events.last_id() {
                last_id = Some(id.to_owned());
            }
            let resumable = last_id.as_deref().filter(|_| wire.dialect.era == Era::Legacy);
            let Some(last_id) = resumable.filter(|_| idle_resumes < MAX_IDLE_RESUMES) else {
                return Err(ending);
            };
            idle_resumes += 1;
            tokio::time::sleep(events.retry().unwrap_or(DEFAULT_RETRY).min(LONGEST_RETRY)).await;
            exchange = self.resume(wire, Some(last_id)).await?;
            if !exchange.status().is_success() || !exchange.is("text/event-stream") {
                return Err(ending);
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
                    self.asked(wire, id, &method, params, expected.caller);
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
                let taken = token == expected.id
                    && expected
                        .progress
                        .is_some_and(|progress| progress.try_send(params).is_ok());
                if !taken {
                    tracing::debug!(upstream = %self.name, "progress that nobody takes was dropped");
                }
            }
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => self.changed.notify_one(),
            // A modern upstream logs on the stream of the request that asked for it, which is nobody else's.
            "notifications/message" if wire.dialect.era == Era::Modern => {}
            other => {
                let caller = expected.caller.map(|caller| &caller.client);
                self.hearing.notified(other, params, caller);
            }
        }
    }

    /// A request of the upstream, on the stream of a request of `caller` where there is one.
    fn asked(self: &Arc<Self>, wire: &Wire, id: Bytes, method: &str, params: Bytes, caller: Option<&Caller>) {
        let client = caller.map(|caller| &caller.client);
        match self.hearing.question(id, method, params, client) {
            Answering::Now(message) => self.notify_aside(wire, message),
            Answering::Asked(asking) => {
                let (link, wire) = (Arc::clone(self), wire.clone());
                let request_ended = caller.map(|caller| caller.ended.clone());
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
