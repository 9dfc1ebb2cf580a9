//! MCP over Streamable HTTP, as both eras define it.

pub(super) mod endpoint;
mod exchange;
pub(super) mod legacy_sse;
mod listen;
pub(super) mod mirror;
mod outflow;
mod pool;
mod reader;
mod sse;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::endpoint::Endpoint;
use self::pool::Pool;
use super::envelope::Answer;
use super::failure::Failure;
use super::hearing::{Caller, Hearing};
use super::link::Reply;
use super::session::{Session, Wire};
use super::throttle::Throttle;
use super::{Era, message, scan};
use crate::upstream::{Audience, Client, UpstreamLimits, UpstreamRequest};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// How long a notification, an answer to the upstream or the end of a session may take.
const ASIDE_PATIENCE: Duration = Duration::from_secs(5);
const GOODBYE_PATIENCE: Duration = Duration::from_secs(1);
/// Answers to requests of the upstream that are under way at once; more are not answered.
const MAX_REPLIES: usize = 16;

/// A connection to one HTTP endpoint.
#[derive(Debug)]
pub(super) struct HttpLink {
    name: Arc<str>,
    limits: UpstreamLimits,
    pool: Pool,
    calls: Semaphore,
    replies: Arc<Semaphore>,
    next_id: AtomicU64,
    pub(super) changed: Notify,
    hearing: Arc<Hearing>,
    lost: CancellationToken,
    reason: Mutex<Option<String>>,
    expired: AtomicU64,
    expiry: Notify,
    end: CancellationToken,
    /// Cancelled once the upstream has said whether it has something to say outside requests.
    listens: CancellationToken,
    tasks: TaskTracker,
    unusable: Throttle,
}

/// One request over HTTP, before its headers are made.
struct Post<'a> {
    wire: &'a Wire,
    /// The MCP method, for modern upstreams; none for notifications and answers.
    method: Option<&'a str>,
    name: Option<HeaderValue>,
    mirrored: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

/// What a response may bring beside what everybody may hear.
#[derive(Clone, Copy, Debug, Default)]
struct Expected<'e> {
    /// The request that it answers.
    id: Option<u64>,
    /// Who hears of it meanwhile.
    audience: Option<&'e Arc<dyn Audience>>,
    /// Whom the upstream may ask meanwhile.
    asked: Option<&'e Asked>,
}

impl Expected<'_> {
    /// Who made the request that it answers.
    fn caller(&self) -> Caller<'_> {
        Caller {
            client: self.asked.map(|asked| &asked.client),
            audience: self.audience,
        }
    }

    fn of(id: u64) -> Self {
        Self {
            id: Some(id),
            ..Self::default()
        }
    }
}

/// The agent that made a request; what it is asked is withdrawn when the request ends.
#[derive(Debug)]
struct Asked {
    client: Arc<dyn Client>,
    ended: CancellationToken,
}

impl Asked {
    fn new(client: Arc<dyn Client>) -> Self {
        Self {
            client,
            ended: CancellationToken::new(),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.ended.cancel();
    }
}

impl HttpLink {
    pub(super) fn new(
        name: Arc<str>,
        endpoint: Arc<Endpoint>,
        limits: UpstreamLimits,
        hearing: Hearing,
        tasks: &TaskTracker,
    ) -> Arc<Self> {
        let end = CancellationToken::new();
        Arc::new(Self {
            name,
            pool: Pool::new(endpoint, tasks, end.clone()),
            calls: Semaphore::new(limits.calls_in_flight),
            replies: Arc::new(Semaphore::new(MAX_REPLIES)),
            limits,
            next_id: AtomicU64::new(1),
            changed: Notify::new(),
            hearing: Arc::new(hearing),
            lost: CancellationToken::new(),
            reason: Mutex::default(),
            expired: AtomicU64::new(0),
            expiry: Notify::new(),
            end,
            listens: CancellationToken::new(),
            tasks: tasks.clone(),
            unusable: Throttle::default(),
        })
    }

    pub(super) async fn request(
        self: &Arc<Self>,
        wire: &Wire,
        method: &str,
        params: &[u8],
    ) -> Result<Reply, Failure> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = Bytes::from(message::request(id, method, params));
        let post = Post {
            wire,
            method: Some(method),
            name: None,
            mirrored: Vec::new(),
            body,
        };
        let exchange = self.post(&post).await?;
        self.answer(exchange, wire, Expected::of(id)).await
    }

    pub(super) async fn call(
        self: &Arc<Self>,
        session: &Session,
        request: &UpstreamRequest,
        forwards_identity: bool,
    ) -> Result<Answer, Failure> {
        let Ok(_permit) = self.calls.try_acquire() else {
            return Err(Failure::Busy(self.limits.calls_in_flight));
        };
        let wire = &session.opened.wire;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = Bytes::from(message::call(id, request, &wire.dialect, forwards_identity));
        if body.len() > self.limits.message_bytes {
            return Err(Failure::RequestTooLarge(self.limits.message_bytes));
        }
        let method = request.method.as_deref().unwrap_or("tools/call");
        let mut post = Post {
            wire,
            method: Some(method),
            name: None,
            mirrored: Vec::new(),
            body,
        };
        if wire.dialect.era == Era::Modern {
            if matches!(method, "tools/call" | "prompts/get" | "resources/read") {
                post.name = mirror::encoded(&request.tool);
            } else if method.starts_with("tasks/") {
                post.name = task_of(request).and_then(|id| mirror::encoded(&id));
            }
            if let (Some(mirrors), Some(arguments)) =
                (session.mirrors.load().get(&request.tool), &request.arguments)
            {
                post.mirrored = mirror::headers(mirrors, arguments);
            }
        }
        let mut in_flight = InFlight {
            link: self,
            wire,
            id: Some(id),
        };
        let client = request.origin.as_ref().and_then(|origin| origin.client.as_ref());
        let _served = self.hearing.serves(id, request);
        let asked = client.map(|client| Asked::new(Arc::clone(client)));
        let expected = Expected {
            id: Some(id),
            audience: request.audience.as_ref(),
            asked: asked.as_ref(),
        };
        let outcome = match self.post(&post).await {
            Ok(exchange) => self.answer(exchange, wire, expected).await,
            Err(failure) => Err(failure),
        };
        in_flight.id = None;
        match outcome {
            Ok(reply) => Ok(reply.answer),
            Err(failure) => {
                self.judge(&failure, session.number);
                Err(failure)
            }
        }
    }

    /// What the failure of a call says about the connection.
    fn judge(&self, failure: &Failure, session: u64) {
        match failure {
            Failure::Unreachable(reason) => self.lose(reason),
            // Reading the catalogue again tells whether the upstream is still there.
            Failure::Lost(_) => self.changed.notify_one(),
            Failure::SessionExpired => self.expire(session),
            Failure::Busy(_)
            | Failure::RequestTooLarge(_)
            | Failure::AnswerTooLarge(_)
            | Failure::Status(_)
            | Failure::Protocol(_)
            | Failure::Timeout(_) => {}
        }
    }

    fn expire(&self, session: u64) {
        self.expired.fetch_max(session, Ordering::Relaxed);
        self.expiry.notify_one();
    }

    fn lose(&self, reason: &str) {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| reason.to_owned());
        self.lost.cancel();
    }

    pub(super) async fn ended(&self) -> String {
        self.lost.cancelled().await;
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reason.unwrap_or_else(|| "it was closed".to_owned())
    }

    pub(super) async fn expired(&self) -> u64 {
        self.expiry.notified().await;
        self.expired.load(Ordering::Relaxed)
    }

    /// Sends a message that has no answer.
    pub(super) async fn notify(&self, wire: &Wire, message: Vec<u8>) -> Result<(), Failure> {
        let post = Post {
            wire,
            method: None,
            name: None,
            mirrored: Vec::new(),
            body: Bytes::from(message),
        };
        let sending = async {
            let exchange = self.post(&post).await?;
            let status = exchange.status();
            self.discard(exchange).await;
            if status.is_success() {
                Ok(())
            } else {
                Err(Failure::Status(status.as_u16()))
            }
        };
        tokio::time::timeout(ASIDE_PATIENCE, sending)
            .await
            .unwrap_or(Err(Failure::Timeout(ASIDE_PATIENCE)))
    }

    /// Sends a message that has no answer, without waiting for it.
    fn notify_aside(self: &Arc<Self>, wire: &Wire, message: Vec<u8>) {
        let (Ok(permit), Ok(runtime)) = (
            Arc::clone(&self.replies).try_acquire_owned(),
            tokio::runtime::Handle::try_current(),
        ) else {
            return;
        };
        let (link, wire) = (Arc::clone(self), wire.clone());
        let sending = async move {
            if let Err(failure) = link.notify(&wire, message).await {
                tracing::debug!(upstream = %link.name, "a message was not taken: {failure}");
            }
            drop(permit);
        };
        self.tasks.spawn_on(sending, &runtime);
    }

    /// Says goodbye to a legacy session, then closes every connection.
    pub(super) async fn close(&self, wire: Option<&Wire>) {
        if let Some(wire) = wire.filter(|wire| wire.session_id.is_some()) {
            let leaving = self.send(Method::DELETE, Bytes::new(), || self.headers(wire));
            let _ = tokio::time::timeout(GOODBYE_PATIENCE, leaving).await;
        }
        self.end.cancel();
        self.pool.clear();
    }

    /// Waits until what the upstream says outside requests is heard, or it is known that it says nothing there.
    pub(super) async fn listens(&self) {
        self.listens.cancelled().await;
    }

    pub(super) fn give_up(&self) {
        self.end.cancel();
    }

    /// Where it is connected to.
    pub(super) fn endpoint(&self) -> Arc<Endpoint> {
        Arc::clone(&self.pool.endpoint)
    }

    /// Headers that every request of a session has.
    fn headers(&self, wire: &Wire) -> HeaderMap {
        let mut headers = self.pool.endpoint.headers.clone();
        headers.insert(REVISION, HeaderValue::from_static(wire.dialect.revision));
        if let Some(session_id) = &wire.session_id {
            headers.insert(SESSION_ID, session_id.clone());
        }
        headers
    }

    fn post_headers(&self, post: &Post<'_>) -> HeaderMap {
        let mut headers = self.headers(post.wire);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, BOTH);
        if post.wire.dialect.era == Era::Modern {
            if let Some(method) = post.method.and_then(|method| HeaderValue::from_str(method).ok()) {
                headers.insert(MCP_METHOD, method);
            }
            if let Some(name) = &post.name {
                headers.insert(MCP_NAME, name.clone());
            }
            for (name, value) in &post.mirrored {
                headers.insert(name.clone(), value.clone());
            }
        }
        headers
    }
}

/// The task that a request is about.
fn task_of(request: &UpstreamRequest) -> Option<String> {
    serde_json::from_slice(scan::member(request.extra.as_deref()?, "taskId")?).ok()
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// A call that was sent; dropped before its answer, it tells a legacy upstream. A modern one sees the stream close.
struct InFlight<'a> {
    link: &'a Arc<HttpLink>,
    wire: &'a Wire,
    id: Option<u64>,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.filter(|_| self.wire.dialect.era == Era::Legacy) {
            self.link.notify_aside(self.wire, message::cancelled(id));
        }
    }
}
