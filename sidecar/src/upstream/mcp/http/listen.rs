//! The stream on which an upstream says what no request asked for.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::Instant;

use super::exchange::Exchange;
use super::sse::Events;
use super::{Expected, HttpLink, Post};
use crate::upstream::mcp::failure::Failure;
use crate::upstream::mcp::session::{self, Opened, Session, Wire};
use crate::upstream::mcp::standing::Subscribed;
use crate::upstream::mcp::{Era, message};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A stream that lived this long was opened for good reason.
const STABLE: Duration = Duration::from_secs(60);

/// How an attempt to listen ended.
enum End {
    /// The upstream offers no such stream.
    Refused,
    /// The stream ended; it may be opened again after the pause that the upstream asks for.
    Over(Option<Duration>),
}

/// What was heard before.
#[derive(Debug, Default)]
struct Heard {
    last_id: Option<String>,
    has_listened: bool,
}

impl HttpLink {
    /// Listens for as long as the upstream offers it; never returns.
    pub(in super::super) async fn listen(self: &Arc<Self>, session: &Session) -> Infallible {
        let mut pause = FIRST_PAUSE;
        let mut heard = Heard::default();
        let mut subscribed = session.subscribed.clone();
        let is_modern = session.opened.wire.dialect.era == Era::Modern;
        loop {
            let started = Instant::now();
            let wanted = Arc::clone(&subscribed.borrow_and_update());
            let ended = tokio::select! {
                ended = self.listen_once(&session.opened, &wanted, &mut heard) => ended,
                () = session::changed(&mut subscribed), if is_modern => continue,
            };
            match ended {
                Ok(End::Over(retry)) => {
                    if started.elapsed() >= STABLE {
                        pause = FIRST_PAUSE;
                    }
                    tokio::time::sleep(pause.max(retry.unwrap_or_default()).min(LONGEST_PAUSE)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    // What was said meanwhile was not heard.
                    self.changed.notify_one();
                }
                Ok(End::Refused) => return std::future::pending().await,
                Err(failure) => {
                    self.judge(&failure, session.number);
                    return std::future::pending().await;
                }
            }
        }
    }

    async fn listen_once(
        self: &Arc<Self>,
        opened: &Opened,
        subscribed: &Subscribed,
        heard: &mut Heard,
    ) -> Result<End, Failure> {
        let wire = &opened.wire;
        let (exchange, id) = match wire.dialect.era {
            Era::Legacy => {
                let resumed = self.resume(wire, heard.last_id.as_deref()).await;
                self.listens.cancel();
                (resumed?, None)
            }
            Era::Modern => {
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                let params = opened.listen_params(subscribed);
                let method = "subscriptions/listen";
                let body = Bytes::from(message::request(id, method, &params));
                let post = Post {
                    wire,
                    method: Some(method),
                    name: None,
                    mirrored: Vec::new(),
                    body,
                };
                (self.post(&post).await?, Some(id))
            }
        };
        if exchange.status() == StatusCode::NOT_FOUND && wire.session_id.is_some() {
            return Err(Failure::SessionExpired);
        }
        if !exchange.status().is_success() && heard.has_listened {
            // It let itself be listened to before: it may no longer know the session, and say so as it likes.
            return match self.refusal(exchange, wire).await {
                Err(failure @ Failure::SessionExpired) => Err(failure),
                Ok(_) | Err(_) => Ok(End::Refused),
            };
        }
        if !exchange.status().is_success() || !exchange.is("text/event-stream") {
            self.discard(exchange).await;
            return Ok(End::Refused);
        }
        heard.has_listened = true;
        Ok(self.hear(exchange, wire, id, heard).await)
    }

    async fn hear(
        self: &Arc<Self>,
        mut exchange: Exchange,
        wire: &Wire,
        id: Option<u64>,
        heard: &mut Heard,
    ) -> End {
        let mut events = Events::new(self.limits.message_bytes);
        let expected = Expected {
            id,
            ..Expected::default()
        };
        while let Ok(Some(chunk)) = exchange.chunk().await {
            events.push(&chunk);
            while let Ok(Some(data)) = events.next() {
                if let Ok(Some(_)) = self.event(&data, wire, expected) {
                    return End::Over(events.retry());
                }
            }
        }
        if let Some(id) = events.last_id() {
            heard.last_id = Some(id.to_owned());
        }
        End::Over(events.retry())
    }
}
