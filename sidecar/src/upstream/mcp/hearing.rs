//! What an upstream says on a connection that answers none of our requests: to whom notifications go, and who answers its
//! questions.
//!
//! A question that comes while a request is served, on the stream of that request, is put to the agent that made it. What comes
//! elsewhere on a connection can be anybody's, so it is answered only where the connection is one agent session's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::progress::with_progress_token;
use super::{message, scan};
use crate::upstream::{Asks, Audience, Client, Notice, Question, Reply, UpstreamRequest};

/// Questions of one connection that wait for their answers; more are refused.
const MAX_QUESTIONS: usize = 64;
/// The longest name of a question, in bytes.
const MAX_NAME: usize = 64;
/// Progress of an agent that waits for a slow upstream; more is dropped.
const PROGRESS_ROOM: usize = 16;
/// The longest that an agent has for an answer.
const PATIENCE: Duration = Duration::from_secs(600);
const NOT_OFFERED: i32 = -32601;
const BUSY: i32 = -32603;
const INVALID: i32 = -32600;
const NO_ANSWER: i32 = -32001;

/// Whose a connection is.
#[derive(Debug)]
pub(super) enum Whose {
    /// Of everybody: what is told reaches those who subscribed to it.
    Everybody(broadcast::Sender<Notice>),
    /// Of one agent session, or of what one agent asks without a session.
    One(Option<Arc<dyn Client>>),
}

/// What is heard on one connection.
#[derive(Debug)]
pub(super) struct Hearing {
    upstream: Arc<str>,
    whose: Whose,
    asks: Asks,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// Questions by the id that the upstream gave them.
    questions: HashMap<Bytes, CancellationToken>,
    /// The requests in flight on a connection of one's own, the newest last.
    served: Vec<Serving>,
}

/// A request in flight: who can be asked about it, and who hears of it.
#[derive(Debug)]
struct Serving {
    id: u64,
    client: Option<Arc<dyn Client>>,
    audience: Option<Arc<dyn Audience>>,
}

/// Who made the request on whose stream something came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Caller<'c> {
    pub(super) client: Option<&'c Arc<dyn Client>>,
    pub(super) audience: Option<&'c Arc<dyn Audience>>,
}

/// What is to be done about a request of an upstream.
#[derive(Debug)]
pub(super) enum Answering {
    /// This message is the answer.
    Now(Vec<u8>),
    /// An agent is asked.
    Asked(Box<Asking>),
}

/// A question that is put to an agent.
#[derive(Debug)]
pub(super) struct Asking {
    hearing: Arc<Hearing>,
    id: Bytes,
    client: Arc<dyn Client>,
    question: Question,
    withdrawn: CancellationToken,
    /// The upstream's own token, and the progress that is to carry it.
    progress: Option<(Bytes, mpsc::Receiver<Bytes>)>,
}

impl Hearing {
    pub(super) fn new(upstream: Arc<str>, whose: Whose, asks: Asks) -> Self {
        Self {
            upstream,
            whose,
            asks,
            open: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a notification on to whom it may concern. `caller` made the request on whose stream it came.
    pub(super) fn notified(&self, method: &str, params: Bytes, caller: Caller<'_>) {
        if method == "notifications/cancelled" {
            return self.withdraw(&params);
        }
        let Some(notice) = Notice::of(method, &params) else {
            return;
        };
        match (&self.whose, &notice, caller.client) {
            // Nobody listens: nobody misses it.
            (Whose::Everybody(all), Notice::ResourceUpdated(_) | Notice::Log(_), _) => drop(all.send(notice)),
            (Whose::One(Some(owner)), _, _) => owner.tell(&self.upstream, notice),
            (Whose::One(None), Notice::Log(params), _) => self.logged(params, caller.audience),
            (Whose::Everybody(_) | Whose::One(None), Notice::Other { .. }, Some(caller)) => {
                caller.tell(&self.upstream, notice);
            }
            (Whose::Everybody(_), Notice::Other { .. }, None) | (Whose::One(None), _, _) => {
                tracing::debug!(upstream = %self.upstream, "notification {method:?} is nobody's");
            }
        }
    }

    /// A log message on the connection of a party without a session: it belongs to one of its requests.
    fn logged(&self, params: &Bytes, audience: Option<&Arc<dyn Audience>>) {
        let newest = || {
            let open = self.lock();
            open.served
                .iter()
                .rev()
                .find_map(|serving| serving.audience.clone())
        };
        match audience.cloned().or_else(newest) {
            Some(audience) => audience.logged(&self.upstream, params),
            None => {
                tracing::debug!(upstream = %self.upstream, "a log message that nobody asked for was dropped")
            }
        }
    }

    /// The upstream no longer wants an answer.
    fn withdraw(&self, params: &[u8]) {
        if let Some(id) = scan::member(params, "requestId")
            && let Some(question) = self.lock().questions.get(id)
        {
            question.cancel();
        }
    }

    /// Notes that a request is in flight, until the guard is dropped.
    pub(super) fn serves(&self, id: u64, request: &UpstreamRequest) -> Option<Served<'_>> {
        let client = request.origin.as_ref().and_then(|origin| origin.client.clone());
        let audience = request.audience.clone().filter(|_| request.log_level.is_some());
        let concerns = client.is_some() || audience.is_some();
        if !concerns || !matches!(self.whose, Whose::One(_)) {
            return None;
        }
        let serving = Serving { id, client, audience };
        self.lock().served.push(serving);
        Some(Served { hearing: self, id })
    }

    /// Takes in a request of the upstream.
    pub(super) fn question(
        self: &Arc<Self>,
        id: Bytes,
        method: &str,
        params: Bytes,
        caller: Option<&Arc<dyn Client>>,
    ) -> Answering {
        if method == "ping" {
            return Answering::Now(message::result(&id, b"{}"));
        }
        let refuse = |code: i32, text: &str| {
            let reply = Reply::error(code, text);
            Answering::Now(message::reply(&id, &reply))
        };
        let client = match (&self.whose, caller) {
            (_, Some(caller)) => Some(Arc::clone(caller)),
            (Whose::Everybody(_), None) if method == "roots/list" && self.asks.roots => {
                // Nobody's connection has nobody's folders.
                return Answering::Now(message::result(&id, br#"{"roots":[]}"#));
            }
            (Whose::Everybody(_), None) => None,
            (Whose::One(owner), None) => {
                let newest = self
                    .lock()
                    .served
                    .iter()
                    .rev()
                    .find_map(|serving| serving.client.clone());
                newest.or_else(|| owner.clone())
            }
        };
        let Some(client) = client else {
            return refuse(NOT_OFFERED, "Method not found");
        };
        let token = scan::member(&params, "_meta").and_then(|meta| scan::member(meta, "progressToken"));
        let (sender, progress) = match token {
            Some(token) => {
                let (sender, receiver) = mpsc::channel(PROGRESS_ROOM);
                (Some(sender), Some((params.slice_ref(token), receiver)))
            }
            None => (None, None),
        };
        let withdrawn = CancellationToken::new();
        {
            let mut open = self.lock();
            if open.questions.len() >= MAX_QUESTIONS {
                return refuse(BUSY, "too many questions wait for their answers already");
            }
            if open.questions.contains_key(&id) {
                return refuse(INVALID, "the id belongs to another question that is open");
            }
            open.questions.insert(id.clone(), withdrawn.clone());
        }
        Answering::Asked(Box::new(Asking {
            hearing: Arc::clone(self),
            client,
            question: Question {
                upstream: Arc::clone(&self.upstream),
                name: name(&id),
                is_let_through: self.asks.lets_through(method),
                method: method.into(),
                params,
                progress: sender,
            },
            id,
            withdrawn,
            progress,
        }))
    }
}

/// The name that an id is, where it is a short text.
fn name(id: &[u8]) -> Option<Arc<str>> {
    let text: String = serde_json::from_slice(id).ok()?;
    (text.len() <= MAX_NAME).then(|| text.into())
}

/// A request in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Served<'h> {
    hearing: &'h Hearing,
    id: u64,
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.hearing.lock().served.retain(|serving| serving.id != self.id);
    }
}

impl Asking {
    /// Asks, and sends the answer, unless the question is withdrawn or nobody waits for it any more.
    pub(super) async fn run<S, F>(mut self, ended: Option<CancellationToken>, send: S)
    where
        S: Fn(Vec<u8>) -> F,
        F: Future<Output = Result<(), Failure>>,
    {
        let asking = self.client.ask(Question {
            upstream: Arc::clone(&self.question.upstream),
            name: self.question.name.clone(),
            method: Arc::clone(&self.question.method),
            params: self.question.params.clone(),
            progress: self.question.progress.take(),
            is_let_through: self.question.is_let_through,
        });
        tokio::pin!(asking);
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        let over = async {
            match &ended {
                Some(ended) => ended.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        let reply = loop {
            let progress = async {
                match &mut self.progress {
                    Some((token, waiting)) => waiting
                        .recv()
                        .await
                        .map(|params| with_progress_token(&params, token)),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.withdrawn.cancelled() => return,
                () = &mut over => return,
                Some(params) = progress => if let Some(params) = params {
                    let _ = send(message::notification("notifications/progress", Some(&params))).await;
                },
                reply = &mut asking => break reply,
                () = &mut patience => break Reply::error(NO_ANSWER, "the agent gave no answer in time"),
            }
        };
        if let Err(failure) = send(message::reply(&self.id, &reply)).await {
            tracing::debug!(upstream = %self.hearing.upstream, "an answer was not taken: {failure}");
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.hearing.lock().questions.remove(&self.id);
    }
}
