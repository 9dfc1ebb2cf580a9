//! The tasks that this sidecar runs: calls whose agent was answered before their end, and can ask for it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chain::hash::hex;
use net::clock::Clock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tools::id::{AgentId, UpstreamName, UserId};

use super::super::mailbox::Mailbox;
use super::super::round_client::RoundQuestions;
use super::super::serve::Exchange;
use super::words;
use crate::agent::sse;
use crate::agent::state;
use crate::gate::random_bytes;
use crate::upstream::AnswerKind;

/// Tasks that are kept at once, and one agent's share of them.
const MAX_KEPT: usize = 4096;
/// Tasks of one agent. Those that have ended give way to new ones.
pub(super) const MAX_OF_AGENT: usize = 128;
/// Bytes of outcomes that are kept; the oldest ones give way.
const MAX_BYTES: usize = 32 << 20;
/// How long a task is kept from its beginning where its client names no other time.
const KEPT_FOR: Duration = Duration::from_secs(3600);
/// The longest that a client can ask for.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How long an outcome is there to be fetched after the last moment at which people can answer.
const TO_FETCH: Duration = Duration::from_secs(600);
/// Streams that hear of one task.
const MAX_LISTENERS: usize = 8;
/// Questions of upstreams' tasks that are remembered as recorded.
const MAX_KNOWN: usize = 4096;
/// The longest key of such a question, in bytes; one that is longer is recorded each time.
const MAX_KEY: usize = 256;

/// Whose a task is: of an identity, and of the session that began it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    agent: AgentId,
    user: Option<UserId>,
    session: Option<String>,
}

impl Owner {
    pub(super) fn new(agent: AgentId, user: Option<UserId>, session: Option<String>) -> Self {
        Self { agent, user, session }
    }

    /// Agent, user and session.
    pub(super) fn names(&self) -> (&str, Option<&str>, Option<&str>) {
        let user = self.user.as_ref().map(UserId::as_str);
        (self.agent.as_str(), user, self.session.as_deref())
    }

    pub(super) fn of(exchange: &Exchange<'_>) -> Self {
        let named = || state::named_session(exchange.headers).map(|named| named.id.to_string());
        let session = exchange.session.map(|session| session.id().to_owned());
        let identity = exchange.identity;
        Self::new(
            identity.agent.clone(),
            identity.user.clone(),
            session.or_else(named),
        )
    }
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) kind: AnswerKind,
    /// The raw result or error.
    pub(super) raw: Bytes,
}

impl Outcome {
    /// Of a call that was cancelled, and has no other.
    fn cancelled() -> Self {
        Self {
            kind: AnswerKind::Error,
            raw: Bytes::from_static(br#"{"code":-32800,"message":"the call was cancelled"}"#),
        }
    }
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its call waits for a person, or runs.
    Working,
    /// Its client cancelled it; what its call came to all the same may follow.
    Cancelled(Option<Outcome>),
    /// Its upstream runs it, under an id of its own.
    HandedOn(UpstreamName, String),
    /// Its call has ended.
    Ended(Outcome),
}

impl Phase {
    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Cancelled(Some(_)))
    }

    /// Whether it can give way to a newer task.
    fn gives_way(&self) -> bool {
        self.is_over() || matches!(self, Self::HandedOn(..))
    }

    fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Ended(outcome) | Self::Cancelled(Some(outcome)) => Some(outcome),
            Self::Working | Self::Cancelled(None) | Self::HandedOn(..) => None,
        }
    }
}

/// A task at one moment.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) phase: Phase,
    /// What people and models may read about it.
    pub(super) message: Option<Arc<str>>,
    /// Unix microseconds.
    pub(super) updated: i64,
}

/// A client that hears of a task.
#[derive(Debug)]
struct Listener {
    mailbox: std::sync::Weak<Mailbox>,
    /// The `_meta` of its notifications, raw, where it is modern.
    meta: Option<String>,
}

/// One task.
#[derive(Debug)]
pub(super) struct OwnTask {
    pub(super) id: String,
    owner: Owner,
    /// Unix microseconds.
    pub(super) created: i64,
    pub(super) ttl: Duration,
    until: Duration,
    /// Cancels its call.
    cancel: CancellationToken,
    /// Cancelled when its session ends.
    ended: Option<CancellationToken>,
    /// What its upstream asks its agent, where that is modern.
    pub(super) questions: Option<Arc<RoundQuestions>>,
    standing: watch::Sender<Standing>,
    listeners: Mutex<Vec<Listener>>,
}

impl OwnTask {
    pub(super) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Waits until its call has ended, or is its upstream's.
    pub(super) async fn settled(&self) -> Standing {
        let mut standing = self.standing.subscribe();
        let settled = standing.wait_for(|now| now.phase.gives_way()).await;
        match settled {
            Ok(now) => now.clone(),
            // The sender lives as long as the task.
            Err(_) => self.standing(),
        }
    }

    /// From now on this client is told of changes, unless too many are.
    pub(super) fn tell(&self, mailbox: &Arc<Mailbox>, meta: Option<String>) -> bool {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.mailbox.strong_count() > 0);
        if listeners.len() >= MAX_LISTENERS {
            return false;
        }
        listeners.push(Listener {
            mailbox: Arc::downgrade(mailbox),
            meta,
        });
        true
    }

    fn changed(&self) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for listener in listeners.iter() {
            if let Some(mailbox) = listener.mailbox.upgrade() {
                mailbox.put(sse::event(&words::notification(self, listener.meta.as_deref())));
            }
        }
    }

    fn is_old(&self, now: Duration) -> bool {
        let is_ended = self.ended.as_ref().is_some_and(CancellationToken::is_cancelled);
        is_ended || self.until <= now
    }

    /// Something is to be said about it, while it works.
    pub(super) fn says(&self, message: &str, clock: &Clock) {
        self.standing.send_modify(|standing| {
            standing.message = Some(message.into());
            standing.updated = clock.wall_micros();
        });
        self.changed();
    }
}

/// How a task begins.
pub(super) struct Beginnings<'b> {
    pub(super) owner: &'b Owner,
    /// Cancelled when its session ends.
    pub(super) ended: Option<CancellationToken>,
    /// What its client asked for.
    pub(super) ttl: Option<Duration>,
    /// How long people have to answer.
    pub(super) patience: Duration,
    pub(super) cancel: &'b CancellationToken,
    pub(super) questions: Option<Arc<RoundQuestions>>,
    pub(super) phase: Phase,
    pub(super) message: Option<Arc<str>>,
}

/// All tasks that this sidecar runs. They live in its memory: after its end their ids mean nothing.
#[derive(Debug)]
pub struct OwnTasks {
    kept: Mutex<Kept>,
    /// The questions of tasks that upstreams run, by task and key, that were recorded.
    known: Mutex<HashSet<(String, Vec<u8>)>>,
    clock: Clock,
}

#[derive(Debug, Default)]
struct Kept {
    by_id: HashMap<String, Arc<OwnTask>>,
    bytes: usize,
}

impl OwnTasks {
    /// None yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            kept: Mutex::default(),
            known: Mutex::default(),
            clock,
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether the upstream of a task asks something with this key for the first time, as far as is remembered.
    pub(super) fn is_new(&self, task: &str, key: &[u8]) -> bool {
        if key.len() > MAX_KEY {
            return true;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert((task.to_owned(), key.to_vec()))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a task. `None`: its agent has too many that have not ended, or all agents together.
    pub(super) fn begin(&self, beginnings: Beginnings<'_>) -> Option<Arc<OwnTask>> {
        let now = self.clock.boot_now();
        let least = beginnings.patience.saturating_add(TO_FETCH);
        let ttl = beginnings.ttl.unwrap_or(KEPT_FOR).min(LONGEST).max(least);
        let created = self.clock.wall_micros();
        let task = Arc::new(OwnTask {
            id: hex(&random_bytes::<16>()),
            owner: beginnings.owner.clone(),
            created,
            ttl,
            until: now.saturating_add(ttl),
            cancel: beginnings.cancel.clone(),
            ended: beginnings.ended,
            questions: beginnings.questions,
            standing: watch::Sender::new(Standing {
                phase: beginnings.phase,
                message: beginnings.message,
                updated: created,
            }),
            listeners: Mutex::default(),
        });
        let mut kept = self.lock();
        kept.forget_old(now);
        kept.make_room(&task.owner.agent)
            .then(|| kept.by_id.insert(task.id.clone(), Arc::clone(&task)))?;
        Some(task)
    }

    /// Whether the agent can have another task.
    pub(super) fn has_room(&self, owner: &Owner) -> bool {
        let mut kept = self.lock();
        kept.forget_old(self.clock.boot_now());
        kept.make_room(&owner.agent)
    }

    /// The task of this owner.
    pub(super) fn find(&self, id: &str, owner: &Owner) -> Option<Arc<OwnTask>> {
        let mut kept = self.lock();
        kept.forget_old(self.clock.boot_now());
        kept.by_id.get(id).filter(|task| task.owner == *owner).cloned()
    }

    /// Its call has ended. A task that its client cancelled stays that.
    pub(super) fn end(&self, task: &OwnTask, outcome: Outcome, message: Option<Arc<str>>) {
        let mut kept = self.lock();
        if kept.by_id.contains_key(&task.id) {
            let size = outcome.raw.len();
            while kept.bytes.saturating_add(size) > MAX_BYTES && kept.forget_oldest(|_| true) {}
            kept.bytes += size;
        }
        task.standing.send_modify(|standing| {
            standing.updated = self.clock.wall_micros();
            if matches!(standing.phase, Phase::Cancelled(_)) {
                standing.phase = Phase::Cancelled(Some(outcome));
            } else {
                standing.phase = Phase::Ended(outcome);
                standing.message = message;
            }
        });
        drop(kept);
        task.changed();
    }

    /// Its upstream runs it from now on.
    pub(super) fn hand_on(&self, task: &OwnTask, upstream: UpstreamName, id: String) {
        task.standing.send_modify(|standing| {
            standing.updated = self.clock.wall_micros();
            standing.message = None;
            standing.phase = match &standing.phase {
                Phase::Cancelled(_) => Phase::Cancelled(Some(Outcome::cancelled())),
                _ => Phase::HandedOn(upstream, id),
            };
        });
        task.changed();
    }

    /// Its client no longer wants it. Whether it was under way.
    pub(super) fn cancel(&self, task: &OwnTask) -> bool {
        let was_working = task.standing.send_if_modified(|standing| {
            let is_working = standing.phase == Phase::Working;
            if is_working {
                standing.updated = self.clock.wall_micros();
                standing.phase = Phase::Cancelled(None);
                standing.message = Some("its client cancelled it".into());
            }
            is_working
        });
        if was_working {
            task.cancel.cancel();
            task.changed();
        }
        was_working
    }

    /// Forgets the tasks whose time is over, and ends their calls.
    pub fn sweep(&self) {
        self.lock().forget_old(self.clock.boot_now());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Kept {
    fn forget_old(&mut self, now: Duration) {
        let old = self.by_id.values().filter(|task| task.is_old(now));
        let old: Vec<String> = old.map(|task| task.id.clone()).collect();
        for id in old {
            if let Some(task) = self.forget(&id) {
                task.cancel.cancel();
            }
        }
    }

    fn forget(&mut self, id: &str) -> Option<Arc<OwnTask>> {
        let task = self.by_id.remove(id)?;
        let size = task
            .standing
            .borrow()
            .phase
            .outcome()
            .map_or(0, |outcome| outcome.raw.len());
        self.bytes = self.bytes.saturating_sub(size);
        Some(task)
    }

    /// Forgets the oldest task that has ended, among those that `concerns` names.
    fn forget_oldest(&mut self, concerns: impl Fn(&OwnTask) -> bool) -> bool {
        let ended = self
            .by_id
            .values()
            .filter(|task| concerns(task) && task.standing.borrow().phase.gives_way());
        let oldest = ended.min_by_key(|task| task.created).map(|task| task.id.clone());
        oldest.is_some_and(|id| self.forget(&id).is_some())
    }

    fn make_room(&mut self, agent: &AgentId) -> bool {
        let own = self.by_id.values().filter(|task| task.owner.agent == *agent);
        if own.count() >= MAX_OF_AGENT {
            return self.forget_oldest(|task| task.owner.agent == *agent);
        }
        self.by_id.len() < MAX_KEPT || self.forget_oldest(|_| true)
    }
}
