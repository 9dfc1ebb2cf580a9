//! One POST for each message; answers and streams come back as lines.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::LINE_BYTES;
use super::envelope::Envelope;
use super::events::Events;
use super::launch::Launch;
use crate::client::Client;
use crate::connection::Target;
use crate::error::CliError;
use crate::output;

/// Requests under way at once; the next line waits.
const CONCURRENT: usize = 64;

/// Carries messages between the agent's stdio and `/mcp`.
#[derive(Clone)]
pub(super) struct Bridge {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    launch: Launch,
    session: Mutex<Option<Session>>,
    in_flight: Mutex<HashMap<String, CancellationToken>>,
    slots: Arc<Semaphore>,
    tasks: TaskTracker,
    end: CancellationToken,
}

/// What a legacy `initialize` made.
#[derive(Clone, Debug)]
struct Session {
    id: Option<String>,
    revision: Option<String>,
}

impl Bridge {
    pub(super) fn new(target: Target, launch: Launch) -> Result<Self, CliError> {
        // The operator's token is for operators: the bridge speaks as the agent only.
        let client = Client::new(Target {
            token: None,
            ..target
        })?;
        Ok(Self {
            shared: Arc::new(Shared {
                client,
                launch,
                session: Mutex::new(None),
                in_flight: Mutex::new(HashMap::new()),
                slots: Arc::new(Semaphore::new(CONCURRENT)),
                tasks: TaskTracker::new(),
                end: CancellationToken::new(),
            }),
        })
    }

    /// Whether somebody answers.
    pub(super) async fn probe(&self) -> Result<(), CliError> {
        self.shared.client.get("/health").await.map(|_| ())
    }

    /// Takes one message of the agent. `initialize` and notifications are sent in the order they came; requests run side by side.
    pub(super) async fn forward(&self, line: Vec<u8>) {
        let Some(envelope) = Envelope::read(&line) else {
            // Not a message: the server says what is wrong with it.
            self.exchange(&line, None, &CancellationToken::new()).await;
            return;
        };
        if let Some(cancelled) = &envelope.cancels
            && self.cancel_modern(cancelled)
        {
            return;
        }
        let in_order = envelope.id.is_none() || envelope.method.as_deref() == Some("initialize");
        if in_order {
            self.exchange(&line, Some(&envelope), &CancellationToken::new())
                .await;
            if envelope.method.as_deref() == Some("notifications/initialized") {
                self.listen();
            }
            return;
        }
        let Ok(slot) = Arc::clone(&self.shared.slots).acquire_owned().await else {
            return;
        };
        let bridge = self.clone();
        let cancelled = CancellationToken::new();
        if envelope.modern.is_some()
            && let Some(id) = &envelope.id
        {
            lock(&self.shared.in_flight).insert(id.clone(), cancelled.clone());
        }
        self.shared.tasks.spawn(async move {
            bridge.exchange(&line, Some(&envelope), &cancelled).await;
            if let Some(id) = &envelope.id {
                lock(&bridge.shared.in_flight).remove(id);
            }
            drop(slot);
        });
    }

    /// Waits for what is under way, then ends the session.
    pub(super) async fn finish(&self) {
        self.shared.end.cancel();
        self.shared.tasks.close();
        // An agent that is gone reads no answers: what does not end soon is dropped with the process.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.shared.tasks.wait()).await;
        let ended = lock(&self.shared.session).take();
        if ended.as_ref().is_some_and(|session| session.id.is_some()) {
            let request = self.with_session(self.request(Method::DELETE), ended.as_ref());
            let _ = request.timeout(Duration::from_secs(2)).send().await;
        }
    }

    /// Modern requests are cancelled by closing their response (revision 2026-07-28, "Cancellation").
    fn cancel_modern(&self, id: &str) -> bool {
        lock(&self.shared.in_flight)
            .remove(id)
            .map(|token| token.cancel())
            .is_some()
    }

    fn request(&self, method: Method) -> RequestBuilder {
        self.shared
            .client
            .request(method, "/mcp")
            .header("X-Toolgate-Launch", self.shared.launch.header())
            .header("Accept", "application/json, text/event-stream")
    }

    fn with_session(&self, mut request: RequestBuilder, session: Option<&Session>) -> RequestBuilder {
        if let Some(id) = session.and_then(|session| session.id.as_ref()) {
            request = request.header("Mcp-Session-Id", id);
        }
        if let Some(revision) = session.and_then(|session| session.revision.as_ref()) {
            request = request.header("MCP-Protocol-Version", revision);
        }
        request
    }

    /// Sends one message and writes every message that comes back.
    async fn exchange(&self, line: &[u8], envelope: Option<&Envelope>, cancelled: &CancellationToken) {
        let mut request = self
            .request(Method::POST)
            .header("Content-Type", "application/json");
        match envelope.and_then(|envelope| envelope.modern.as_ref()) {
            Some(revision) => {
                request = request.header("MCP-Protocol-Version", revision);
                if let Some(method) = envelope.and_then(|envelope| envelope.method.as_ref()) {
                    request = request.header("Mcp-Method", method);
                }
                if let Some(name) = envelope.and_then(|envelope| envelope.name.as_ref()) {
                    request = request.header("Mcp-Name", header_text(name));
                }
            }
            None => {
                let session = lock(&self.shared.session).clone();
                request = self.with_session(request, session.as_ref());
            }
        }
        let exchange = async {
            let response = request
                .body(line.to_vec())
                .send()
                .await
                .map_err(|error| error.to_string())?;
            if envelope.is_some_and(|envelope| envelope.method.as_deref() == Some("initialize")) {
                self.remember(&response);
            }
            self.write(response, envelope).await
        };
        let outcome = tokio::select! {
            outcome = exchange => outcome,
            () = cancelled.cancelled() => return,
        };
        if let Err(cause) = outcome {
            self.fail(envelope, &cause);
        }
    }

    fn remember(&self, response: &Response) {
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        *lock(&self.shared.session) = Some(Session {
            id: header("mcp-session-id"),
            revision: None,
        });
    }

    async fn write(&self, response: Response, envelope: Option<&Envelope>) -> Result<(), String> {
        let status = response.status();
        let kind = response
            .headers()
            .get("content-type")
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return stream(response, &self.shared.end).await;
        }
        let is_json_rpc = kind.starts_with("application/json");
        let body = response.bytes().await.map_err(|error| error.to_string())?;
        if status == StatusCode::ACCEPTED || body.is_empty() {
            return Ok(());
        }
        if status.is_success() || is_json_rpc {
            self.note_revision(envelope, &body);
            return emit(&body);
        }
        Err(format!("{status}: {}", String::from_utf8_lossy(&body)))
    }

    /// The revision that `initialize` settled on goes into every later request.
    fn note_revision(&self, envelope: Option<&Envelope>, body: &[u8]) {
        if envelope.is_none_or(|envelope| envelope.method.as_deref() != Some("initialize")) {
            return;
        }
        let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let revision = answer
            .pointer("/result/protocolVersion")
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned);
        if let Some(session) = lock(&self.shared.session).as_mut() {
            session.revision = revision;
        }
    }

    /// Keeps the session's GET stream open, for what the server says on its own.
    fn listen(&self) {
        let bridge = self.clone();
        self.shared.tasks.spawn(async move {
            let mut backoff = net::backoff::Backoff::default();
            loop {
                let Some(session) = lock(&bridge.shared.session).clone() else {
                    return;
                };
                let request = bridge.with_session(bridge.request(Method::GET), Some(&session));
                let opened = tokio::select! {
                    opened = request.send() => opened,
                    () = bridge.shared.end.cancelled() => return,
                };
                match opened {
                    Ok(response) if response.status().is_success() => {
                        let began = tokio::time::Instant::now();
                        let _ = stream(response, &bridge.shared.end).await;
                        if began.elapsed() > Duration::from_secs(30) {
                            backoff.reset();
                        }
                    }
                    // 404 and 405 are final: the session is gone, or there is no such stream.
                    Ok(response) if response.status().is_client_error() => return,
                    Ok(_) | Err(_) => {}
                }
                tokio::select! {
                    () = backoff.wait() => {}
                    () = bridge.shared.end.cancelled() => return,
                }
            }
        });
    }

    /// A request that the server cannot answer is answered here, so that the agent does not wait for ever.
    fn fail(&self, envelope: Option<&Envelope>, cause: &str) {
        output::note(&format!("toolgate mcp: {cause}"));
        if let Some(id) = envelope.and_then(|envelope| envelope.id.as_ref()) {
            let message = serde_json::Value::String(format!("the gateway did not answer: {cause}"));
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":{message}}}}}"#);
            let _ = emit(line.as_bytes());
        }
    }
}

/// Writes the messages of an event stream as they come.
async fn stream(response: Response, end: &CancellationToken) -> Result<(), String> {
    let mut events = Events::default();
    let mut bytes = response.bytes_stream();
    loop {
        let chunk = tokio::select! {
            chunk = bytes.next() => chunk,
            () = end.cancelled() => return Ok(()),
        };
        let Some(chunk) = chunk else { return Ok(()) };
        for message in events.push(&chunk.map_err(|error| error.to_string())?) {
            emit(&message)?;
        }
        if events.held() > LINE_BYTES {
            return Err(format!(
                "the server sent a message of more than {LINE_BYTES} bytes"
            ));
        }
    }
}

/// Writes one message as one line. Line breaks between tokens are legal JSON, but would end the line: they become blanks.
fn emit(message: &[u8]) -> Result<(), String> {
    let mut line: Vec<u8> = message
        .iter()
        .map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                *byte
            }
        })
        .collect();
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)
        .and_then(|()| out.flush())
        .map_err(|error| error.to_string())
}

/// A header value as revision 2026-07-28 wants it: plain where that is safe, else base64.
fn header_text(text: &str) -> String {
    let safe = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    if safe {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
