//! The transport of revision 2024-11-05: what the upstream says comes on one event stream, and what it is told goes by
//! POST to an address that it names.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{Method, StatusCode};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::endpoint::Endpoint;
use super::exchange::Exchange;
use super::pool::Pool;
use super::sse::{Events, Kind, TooLarge};
use super::{EVENTS, JSON};
use crate::upstream::UpstreamLimits;
use crate::upstream::mcp::duplex::DuplexLink;
use crate::upstream::mcp::failure::Failure;
use crate::upstream::mcp::hearing::Hearing;
use crate::upstream::mcp::scan;

/// Messages that are being sent at once; more wait.
const MAX_POSTS: usize = 64;
/// How long a notification may take; messages behind it wait for that.
const NOTIFICATION_PATIENCE: Duration = Duration::from_secs(5);
/// An upstream that says nothing for this long is asked whether it is still there.
const SILENCE: Duration = Duration::from_secs(60);
/// How long the answer to that is waited for.
const PING_PATIENCE: Duration = Duration::from_secs(15);

/// Connects in the background. The link ends with `stop`, when it is closed, or when the stream ends.
pub(in super::super) fn start(
    name: Arc<str>,
    endpoint: Arc<Endpoint>,
    limits: UpstreamLimits,
    hearing: Hearing,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) -> Arc<DuplexLink> {
    let end = CancellationToken::new();
    let pool = Pool::new(endpoint, tasks, end.clone());
    DuplexLink::carried(name, limits, hearing, tasks, stop, |link, queue| async move {
        let _end = end.drop_guard();
        attend(&pool, &link, queue).await;
    })
}

async fn attend(pool: &Pool, link: &Arc<DuplexLink>, queue: mpsc::Receiver<Bytes>) {
    let reason = tokio::select! {
        () = link.closing() => "it was closed".to_owned(),
        reason = carry(pool, link, queue) => reason,
    };
    link.close_with(&reason);
}

/// Carries messages both ways; why that ended.
async fn carry(pool: &Pool, link: &Arc<DuplexLink>, queue: mpsc::Receiver<Bytes>) -> String {
    let bound = link.limits().handshake_timeout;
    let opening = timeout(bound, Stream::open(pool, link.limits().message_bytes));
    let (stream, target) = match opening.await.unwrap_or(Err(Failure::Timeout(bound))) {
        Ok(opened) => opened,
        Err(failure) => return failure.to_string(),
    };
    let heard = watch::Sender::new(Instant::now());
    tokio::select! {
        reason = stream.read(link, &heard) => reason,
        reason = write(pool, &target, link, queue) => reason,
        reason = keep_alive(link, heard.subscribe(), SILENCE, PING_PATIENCE) => reason,
    }
}

/// The stream of what the upstream says.
struct Stream {
    exchange: Exchange,
    events: Events,
}

impl Stream {
    /// Opens the stream and waits for the address that messages go to.
    async fn open(pool: &Pool, limit: usize) -> Result<(Self, PathAndQuery), Failure> {
        let target = pool.endpoint.target.clone();
        let headers = || {
            let mut headers = pool.endpoint.headers.clone();
            headers.insert(ACCEPT, EVENTS);
            headers
        };
        let exchange = pool.send(Method::GET, target, Bytes::new(), headers).await?;
        if !exchange.status().is_success() {
            return Err(Failure::Status(exchange.status().as_u16()));
        }
        if !exchange.is("text/event-stream") {
            return Err(Failure::Protocol(
                "it does not answer with an event stream; check its url and transport".to_owned(),
            ));
        }
        let mut stream = Self {
            exchange,
            events: Events::new(limit),
        };
        let target = stream.endpoint(&pool.endpoint).await?;
        Ok((stream, target))
    }

    async fn endpoint(&mut self, here: &Endpoint) -> Result<PathAndQuery, Failure> {
        loop {
            match self.events.next_event() {
                Ok(Some(event)) if event.kind == Kind::Endpoint => {
                    let reference = std::str::from_utf8(&event.data).unwrap_or_default();
                    return here.within(reference.trim()).ok_or_else(|| {
                        Failure::Protocol(
                            "the address that it names for messages is no path of its own origin".to_owned(),
                        )
                    });
                }
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(TooLarge) => {
                    return Err(Failure::Protocol(
                        "its stream begins with an event that is too large".to_owned(),
                    ));
                }
            }
            match self.exchange.chunk().await? {
                Some(chunk) => self.events.push(&chunk),
                None => {
                    return Err(Failure::Protocol(
                        "its stream ended before it named an address for messages".to_owned(),
                    ));
                }
            }
        }
    }

    /// Hands on what comes; why the stream ended.
    async fn read(mut self, link: &Arc<DuplexLink>, heard: &watch::Sender<Instant>) -> String {
        let mut is_skipping = false;
        loop {
            loop {
                if is_skipping {
                    let Some(ends) = self.events.skip() else { break };
                    link.receive_overlong(&ends.head, &ends.tail);
                    is_skipping = false;
                }
                match self.events.next() {
                    Ok(Some(message)) => link.receive(message),
                    Ok(None) => break,
                    Err(TooLarge) => is_skipping = true,
                }
            }
            match self.exchange.chunk().await {
                Ok(Some(chunk)) => self.events.push(&chunk),
                Ok(None) => return "it closed its event stream".to_owned(),
                Err(failure) => return failure.to_string(),
            }
            heard.send_replace(Instant::now());
        }
    }
}

/// Sends what is queued; why nothing more can be sent.
async fn write(
    pool: &Pool,
    target: &PathAndQuery,
    link: &Arc<DuplexLink>,
    mut queue: mpsc::Receiver<Bytes>,
) -> String {
    let mut posts = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(message) = queue.recv(), if posts.len() < MAX_POSTS => {
                if scan::member(&message, "id").is_some() {
                    posts.push(post(pool, target, link, message));
                    continue;
                }
                // What follows a notification may depend on it.
                let sending = post(pool, target, link, message);
                if let Ok(Err(reason)) = timeout(NOTIFICATION_PATIENCE, sending).await {
                    return reason;
                }
            }
            Some(outcome) = posts.next() => if let Err(reason) = outcome {
                return reason;
            },
            else => return "it was closed".to_owned(),
        }
    }
}

/// Sends one message. A request that is not taken fails; an error is the end of the connection.
async fn post(
    pool: &Pool,
    target: &PathAndQuery,
    link: &Arc<DuplexLink>,
    message: Bytes,
) -> Result<(), String> {
    let headers = || {
        let mut headers = pool.endpoint.headers.clone();
        headers.insert(CONTENT_TYPE, JSON);
        headers
    };
    let bound = link.limits().handshake_timeout;
    let sending = async {
        let exchange = pool
            .send(Method::POST, target.clone(), message.clone(), headers)
            .await?;
        let status = exchange.status();
        pool.discard(exchange).await;
        Ok(status)
    };
    let failure = match timeout(bound, sending).await {
        Ok(Ok(status)) if status.is_success() => return Ok(()),
        Ok(Ok(StatusCode::NOT_FOUND | StatusCode::GONE)) => return Err(Failure::SessionExpired.to_string()),
        Ok(Ok(status)) => Failure::Status(status.as_u16()),
        Ok(Err(failure @ Failure::Unreachable(_))) => return Err(failure.to_string()),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::Timeout(bound),
    };
    link.not_sent(&message, failure);
    Ok(())
}

/// Asks an upstream that was silent for `silence` whether it is still there; returns when it is not.
async fn keep_alive(
    link: &Arc<DuplexLink>,
    heard: watch::Receiver<Instant>,
    silence: Duration,
    patience: Duration,
) -> String {
    loop {
        let last = *heard.borrow();
        sleep_until(last + silence).await;
        if *heard.borrow() != last {
            continue;
        }
        let asked = timeout(patience, link.request("ping", b"{}")).await;
        if asked.is_err() && *heard.borrow() == last {
            return format!("it was silent for {:?}", silence + patience);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;
    use crate::upstream::Asks;
    use crate::upstream::mcp::hearing::Whose;

    #[tokio::test]
    async fn an_upstream_that_stays_silent_is_given_up() {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let (asked, mut heard_ping) = mpsc::channel(1);
        let link = DuplexLink::carried(
            "silent".into(),
            UpstreamLimits::default(),
            Hearing::new(
                "x".into(),
                Whose::Everybody(broadcast::Sender::new(1)),
                Asks::default(),
            ),
            &tasks,
            &stop,
            |link, mut queue| async move {
                asked.send(queue.recv().await.unwrap()).await.unwrap();
                link.closing().await;
            },
        );
        let heard = watch::Sender::new(Instant::now());
        let short = Duration::from_millis(10);
        let reason = keep_alive(&link, heard.subscribe(), short, short).await;
        assert_eq!(reason, "it was silent for 20ms");
        let ping = heard_ping.recv().await.unwrap();
        assert!(ping.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"ping""#));
        link.close().await;
    }
}
