//! A call that becomes a task of this sidecar: its agent is answered while the call waits for a person or runs, and asks for what
//! came of it later.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::id::UpstreamName;
use tools::json::Kind;

use super::super::call;
use super::super::call_stream::Opening;
use super::super::client;
use super::super::envelope::{self, Message};
use super::super::error::ProtocolError;
use super::super::line::Line;
use super::super::round_client::RoundQuestions;
use super::super::serve::{Answer, Exchange};
use super::super::session::Session;
use super::own::{Beginnings, MAX_OF_AGENT, Outcome, OwnTask, Owner, Phase};
use super::{speaks, words};
use crate::agent::attended::{Attended, WhenAbandoned};
use crate::agent::state::AgentState;
use crate::gate::{PendingApproval, TraceContext, Unreadable, Waits};
use crate::identity::Identity;
use crate::upstream::AnswerKind;
use crate::upstream::mcp::scan;

/// A call that becomes a task, or can.
pub(in super::super) struct Beginning {
    state: Arc<AgentState>,
    session: Option<Arc<Session>>,
    owner: Owner,
    /// How long its client wants the task to be kept.
    ttl: Option<Duration>,
    is_modern: bool,
    /// Whose answer the call got: what was served when it came may have changed since.
    answered_by: OnceLock<UpstreamName>,
    /// Whether its upstream is asked for a task of its own.
    pub(in super::super) is_for_upstream: bool,
    /// Whether a legacy upstream runs it as a task, which is followed here for a modern client.
    is_followed: bool,
    /// What its upstream asks a modern client.
    questions: Arc<RoundQuestions>,
    /// Its agent can have no more tasks: it is refused.
    has_no_room: bool,
    cancel: CancellationToken,
    task: OnceLock<Arc<OwnTask>>,
    told: Mutex<Option<oneshot::Sender<Arc<OwnTask>>>>,
}

/// Whether a call is to be a task, or can become one: a legacy client says so in the call, a modern one by what it can do.
pub(in super::super) fn is_wished(exchange: &Exchange<'_>) -> bool {
    if exchange.again.is_some() || exchange.task.is_some() || !speaks(exchange) {
        return false;
    }
    let task = exchange.params.and_then(|params| params.get("task"));
    exchange.is_modern || task.is_some_and(|task| task.kind() == Kind::Object)
}

/// Serves a call that is to be a task, or can become one.
pub(in super::super) async fn call(
    exchange: &Exchange<'_>,
    open: Option<oneshot::Sender<Opening>>,
) -> Answer {
    let (tell, told) = oneshot::channel();
    let beginning = Arc::new(Beginning::of(exchange, tell));
    if beginning.is_at_once()
        && let Some(task) = beginning.begin(Phase::Working, None)
    {
        let created = words::created(&task, exchange.is_modern);
        let work = Outliving::of(exchange).run(beginning, None);
        exchange.state.tasks.go_on(async move {
            work.await;
        });
        return exchange.result(&created);
    }
    let work = Box::pin(Outliving::of(exchange).run(Arc::clone(&beginning), open));
    let mut work = Attended::new(work, WhenAbandoned::GoOn, exchange.state.tasks.clone());
    let mut told = Some(told);
    let mut is_cancelled = false;
    loop {
        let begun = async {
            match &mut told {
                Some(told) => told.await.ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = &mut work => return beginning.answered_at_once(exchange, answer),
            begun = begun => match begun {
                // From here on nobody attends to the call, and it goes on.
                Some(task) => return exchange.result(&words::created(&task, exchange.is_modern)),
                None => told = None,
            },
            () = exchange.cancel.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                beginning.cancel.cancel();
            }
        }
    }
}

impl fmt::Debug for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beginning")
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

impl Beginning {
    fn of(exchange: &Exchange<'_>, tell: oneshot::Sender<Arc<OwnTask>>) -> Self {
        let params = exchange.params;
        let asked_for = params
            .and_then(|params| params.get("name"))
            .and_then(tools::json::Node::as_str)
            .and_then(|name| exchange.state.gate.lookup(&exchange.state.names, &name));
        let upstream = asked_for.as_ref().and_then(|tool| tool.upstream.clone());
        let runs_tasks = |name: &UpstreamName| {
            let registry = exchange.state.gate.registry();
            registry.upstreams_with(|offers| offers.tasks).contains(name)
        };
        let is_run_there = asked_for
            .is_some_and(|tool| super::declared::is_supported(tool.declared.get().as_bytes()))
            && upstream.as_ref().is_some_and(runs_tasks);
        let is_for_upstream = is_run_there && !exchange.is_modern;
        let ttl = params
            .and_then(|params| params.get("task"))
            .filter(|_| !exchange.is_modern)
            .and_then(|task| task.get("ttl"))
            .and_then(|ttl| ttl.raw_str().parse().ok())
            .map(Duration::from_millis);
        let owner = Owner::of(exchange);
        let has_no_room =
            !exchange.is_modern && !is_for_upstream && !exchange.state.own_tasks.has_room(&owner);
        Self {
            state: Arc::clone(exchange.state),
            session: exchange.session.cloned(),
            owner,
            ttl,
            is_modern: exchange.is_modern,
            answered_by: OnceLock::new(),
            is_for_upstream,
            is_followed: is_run_there && exchange.is_modern,
            questions: Arc::default(),
            has_no_room,
            cancel: CancellationToken::new(),
            task: OnceLock::new(),
            told: Mutex::new(Some(tell)),
        }
    }

    /// Whether it is a task before anything is known of it: its client or its upstream says so.
    fn is_at_once(&self) -> bool {
        if self.is_modern {
            return self.is_followed;
        }
        !self.is_for_upstream && !self.has_no_room
    }

    /// This upstream has answered the call.
    pub(in super::super) fn was_answered_by(&self, upstream: Option<&str>) {
        if let Some(upstream) = upstream.and_then(|name| UpstreamName::try_from(name).ok()) {
            let _ = self.answered_by.set(upstream);
        }
    }

    /// Why the call is not looked at.
    pub(in super::super) fn refused(&self) -> Option<Unreadable> {
        self.has_no_room
            .then_some(Unreadable::NoRoomForTask { limit: MAX_OF_AGENT })
    }

    /// The task, once there is one.
    pub(in super::super) fn id(&self) -> Option<&str> {
        self.task.get().map(|task| task.id.as_str())
    }

    fn begin(&self, phase: Phase, message: Option<&str>) -> Option<Arc<OwnTask>> {
        let task = self.state.own_tasks.begin(Beginnings {
            owner: &self.owner,
            ended: self.session.as_ref().map(|session| session.ended().clone()),
            ttl: self.ttl,
            patience: self.state.gate.approval_timeout(),
            cancel: &self.cancel,
            questions: self.is_modern.then(|| Arc::clone(&self.questions)),
            phase,
            message: message.map(Arc::from),
        })?;
        if let Some(session) = &self.session {
            task.tell(&session.mailbox(), None);
        }
        let _ = self.task.set(Arc::clone(&task));
        Some(task)
    }

    /// The call waits for a person. Whether it is a task from now on.
    fn waits(&self, pending: &PendingApproval) -> bool {
        let message = format!(
            "The call waits for the approval of a person (approval {}), and runs when it is given.",
            pending.approval
        );
        if let Some(task) = self.task.get() {
            task.says(&message, self.state.own_tasks.clock());
            return true;
        }
        let Some(task) = self.begin(Phase::Working, Some(&message)) else {
            return false;
        };
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(told) = told {
            let _ = told.send(task);
        }
        true
    }

    /// The line of the call, which is answered as soon as it waits for a person and has become a task.
    pub(in super::super) fn line(
        self: &Arc<Self>,
        exchange: &Exchange<'_>,
        line: Line,
        trace: &TraceContext,
    ) -> Line {
        let origin = self
            .is_modern
            .then(|| client::origin_of_task(exchange, &self.questions, trace, self.is_followed));
        let is_task = self.task.get().is_some();
        let first = origin.clone().filter(|_| is_task).unwrap_or(line.origin);
        let ordinary = line.on_pending;
        let wait = line.wait;
        let beginning = Arc::clone(self);
        Line {
            origin: first,
            wait: None,
            on_pending: Box::new(move |pending| {
                if beginning.waits(&pending) {
                    return Waits { wait: None, origin };
                }
                if wait == Some(Duration::ZERO) {
                    return Waits { wait, origin: None };
                }
                Waits {
                    wait,
                    ..ordinary(pending)
                }
            }),
            ..line
        }
    }

    /// The call has ended before its agent was answered.
    fn answered_at_once(&self, exchange: &Exchange<'_>, answer: Answer) -> Answer {
        let outcome = match outcome(&answer) {
            Some(outcome) if !self.is_modern && outcome.kind == AnswerKind::Result => outcome,
            // Modern clients take any result, and errors are errors in both eras.
            Some(_) | None => return answer,
        };
        if begun_by_upstream(&outcome, false).is_some() {
            return answer;
        }
        // A client that asks for a task reads nothing else.
        let complaint = words::complaint(&outcome);
        let text = complaint.as_deref();
        match self.begin(Phase::Ended(outcome.clone()), text) {
            Some(task) => exchange.result(&words::created(&task, false)),
            None => exchange.error(&ProtocolError::denied(
                text.unwrap_or("this agent has too many tasks; wait for one to end, or cancel one"),
            )),
        }
    }

    /// The call has ended: so has its task, or its upstream has it now.
    fn ended(&self, answer: &Answer) {
        let (Some(task), Some(outcome)) = (self.task.get(), outcome(answer)) else {
            return;
        };
        let theirs = begun_by_upstream(&outcome, self.is_modern);
        match (theirs, self.answered_by.get()) {
            (Some(id), Some(upstream)) if self.is_modern || self.is_for_upstream => {
                self.state.own_tasks.hand_on(task, upstream.clone(), id);
            }
            _ => {
                let complaint = words::complaint(&outcome);
                self.state.own_tasks.end(task, outcome, complaint.map(Arc::from));
            }
        }
    }
}

/// The upstream's id of the task that a result begins.
pub(super) fn begun_by_upstream(outcome: &Outcome, is_modern: bool) -> Option<String> {
    let is_task = || scan::member(&outcome.raw, "resultType") == Some(b"\"task\"");
    let task = match (outcome.kind, is_modern) {
        (AnswerKind::Error, _) => return None,
        (AnswerKind::Result, false) => scan::member(&outcome.raw, "task")?,
        (AnswerKind::Result, true) => Some(&outcome.raw[..]).filter(|_| is_task())?,
    };
    serde_json::from_slice(scan::member(task, "taskId")?).ok()
}

/// What an answer says.
fn outcome(answer: &Answer) -> Option<Outcome> {
    let Answer::Message { bytes, .. } = answer else {
        return None;
    };
    let member = |key, kind| {
        let raw = Bytes::copy_from_slice(scan::member(bytes, key)?);
        Some(Outcome { kind, raw })
    };
    member("result", AnswerKind::Result).or_else(|| member("error", AnswerKind::Error))
}

/// What of a request outlives the exchange in which it came.
struct Outliving {
    state: Arc<AgentState>,
    headers: HeaderMap,
    identity: Identity,
    body: Bytes,
    is_modern: bool,
    session: Option<Arc<Session>>,
    questions: Option<Arc<RoundQuestions>>,
}

impl Outliving {
    fn of(exchange: &Exchange<'_>) -> Self {
        Self {
            state: Arc::clone(exchange.state),
            headers: exchange.headers.clone(),
            identity: exchange.identity.clone(),
            body: exchange.body.clone(),
            is_modern: exchange.is_modern,
            session: exchange.session.cloned(),
            questions: exchange.questions.cloned(),
        }
    }

    /// Makes the call. A session that ends takes its tasks with it.
    async fn run(self, beginning: Arc<Beginning>, open: Option<oneshot::Sender<Opening>>) -> Answer {
        let _in_use = self
            .session
            .as_ref()
            .map(|session| self.state.sessions.keep(session));
        let limits = self.state.limits();
        let document = envelope::parse(&self.body, limits.message_bytes, limits.argument_depth);
        let message = document
            .as_ref()
            .ok()
            .map(|document| envelope::read(document.root()));
        let Some(Ok(Message::Request { id, params, .. })) = message else {
            return Answer::error(&ProtocolError::invalid_request("not a request"), None);
        };
        let exchange = Exchange {
            state: &self.state,
            headers: &self.headers,
            identity: &self.identity,
            body: &self.body,
            id: &id,
            params,
            is_modern: self.is_modern,
            session: self.session.as_ref(),
            cancel: &beginning.cancel,
            questions: self.questions.as_ref(),
            again: None,
            task: Some(&beginning),
        };
        let ended = async {
            match &self.session {
                Some(session) => session.ended().cancelled().await,
                None => std::future::pending().await,
            }
        };
        let running = call::run(&exchange, open);
        tokio::pin!(ended, running);
        let answer = tokio::select! {
            biased;
            answer = &mut running => answer,
            () = &mut ended => {
                beginning.cancel.cancel();
                running.await
            }
        };
        beginning.ended(&answer);
        answer
    }
}
