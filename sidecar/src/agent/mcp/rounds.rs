//! Rounds of a modern agent's request (2026-07-28, basic/patterns/mrtr): what an upstream asks meanwhile is the answer
//! `input_required`, and the agent's next request of the same words goes on.
//!
//! A modern upstream begins again with each round, so what is kept between two is its own `requestState` and the right to go on.
//! A legacy upstream goes on waiting for its answer, so what is kept is the call itself. Either is known by a key that cannot be
//! guessed, belongs to its agent, and is used once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use chain::hash::hex;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tools::id::{AgentId, UserId};
use tools::json::Node;

use super::call_stream::Opening;
use super::error::ProtocolError;
use super::line::OwnStream;
use super::round_client::RoundQuestions;
use super::serve::{self, Answer, Exchange};
use super::{call, denial, dispatch, splice};
use crate::gate::{AskedAgent, Continuation, random_bytes};
use crate::identity::Identity;
use crate::upstream::mcp::rounds::MAX_QUESTIONS;
use crate::upstream::mcp::scan;
use crate::upstream::{AnswerKind, Question, Reply, UpstreamAnswer};

/// Rounds that are kept at once, and one agent's share of them.
const MAX_KEPT: usize = 4096;
const SHARE: usize = 4;
/// Bytes of upstreams' states that are kept.
const MAX_STATE: usize = 256 << 10;
/// How long an agent has for its next round.
const KEPT_FOR: Duration = Duration::from_secs(660);
/// Questions that follow one another this closely are put in one round.
const GATHER: Duration = Duration::from_millis(20);
const STATE: &str = "requestState";
const RESPONSES: &str = "inputResponses";
const LOST: &str = "requestState is not known here: it is used up, too old, of another agent, or was given by another \
                    sidecar; make the request again without it";

/// What is kept between two rounds.
#[derive(Debug, Default)]
pub struct Rounds {
    kept: Mutex<HashMap<String, Kept>>,
}

#[derive(Debug)]
struct Kept {
    agent: AgentId,
    user: Option<UserId>,
    until: Instant,
    round: Round,
}

#[derive(Debug)]
enum Round {
    /// A modern upstream goes on by the state that it gave.
    Again(Again),
    /// A legacy upstream waits.
    Held(Box<Held>),
}

/// What the next round of a modern upstream needs.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) continuation: Box<Continuation>,
    /// The upstream's own state, as raw JSON.
    state: Option<Vec<u8>>,
}

/// A call that waits for its agent.
#[derive(Debug)]
struct Held {
    questions: Arc<RoundQuestions>,
    /// What was asked for: method, name and arguments.
    asked: Vec<u8>,
    answer: oneshot::Receiver<Answer>,
    cancel: CancellationToken,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Rounds {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a round, and gives the key of it. An agent with its share of them loses the oldest.
    fn keep(&self, identity: &Identity, round: Round) -> String {
        let key = hex(&random_bytes::<32>());
        let kept = Kept {
            agent: identity.agent.clone(),
            user: identity.user.clone(),
            until: Instant::now() + KEPT_FOR,
            round,
        };
        let mut all = self.lock();
        let is_same_agent = |other: &Kept| other.agent == identity.agent;
        let own = all.values().filter(|other| is_same_agent(other)).count();
        if own >= MAX_KEPT / SHARE || all.len() >= MAX_KEPT {
            let is_own_fault = own >= MAX_KEPT / SHARE;
            let oldest = all
                .iter()
                .filter(|(_, other)| !is_own_fault || is_same_agent(other))
                .min_by_key(|(_, other)| other.until)
                .map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                all.remove(&oldest);
            }
        }
        all.insert(key.clone(), kept);
        key
    }

    /// Takes a round that belongs to this identity; afterwards its key means nothing.
    fn take(&self, key: &str, identity: &Identity) -> Option<Round> {
        let mut all = self.lock();
        let kept = all.get(key)?;
        if kept.agent != identity.agent || kept.user != identity.user || kept.until <= Instant::now() {
            return None;
        }
        all.remove(key).map(|kept| kept.round)
    }

    /// Forgets what nobody went on with.
    pub fn sweep(&self) {
        let now = Instant::now();
        self.lock().retain(|_, kept| kept.until > now);
    }
}

/// Whether a request is one of several rounds, or may become that: it goes on, or its upstream may ask by requests of its own.
pub(super) fn concerns(exchange: &Exchange<'_>, method: &str) -> bool {
    let has = |key| exchange.params.and_then(|params| params.get(key)).is_some();
    has(STATE) || (exchange.can_be_asked() && call::asks_by_requests(exchange, method))
}

/// Serves a request that goes on, or whose upstream may ask.
pub(super) async fn serve(
    exchange: &Exchange<'_>,
    method: &str,
    open: Option<oneshot::Sender<Opening>>,
) -> Answer {
    let state = exchange.params.and_then(|params| params.get(STATE));
    let Some(state) = state else {
        let stream = OwnStream::of(exchange, open);
        let held = begin(exchange, method, stream);
        return attend(exchange, held).await;
    };
    let round = state
        .as_str()
        .and_then(|key| exchange.state.rounds.take(&key, exchange.identity));
    match round {
        Some(Round::Again(again)) => {
            let exchange = exchange.going_on(again);
            dispatch::governed(&exchange, method, open).await
        }
        Some(Round::Held(held)) if held.asked == asked(exchange, method) => {
            let stream = OwnStream::of(exchange, open);
            held.questions.relay.attach(Some(stream));
            let responses = exchange.params.and_then(|params| params.get(RESPONSES));
            for (key, response) in responses.into_iter().flat_map(Node::members) {
                let raw = exchange.body.slice_ref(response.raw());
                let kind = AnswerKind::Result;
                held.questions.answer(&key, Reply { kind, raw });
            }
            attend(exchange, held).await
        }
        Some(Round::Held(_)) | None => exchange.error(&ProtocolError::invalid_params(LOST)),
    }
}

/// What is asked for, in words that do not depend on how it is written.
fn asked(exchange: &Exchange<'_>, method: &str) -> Vec<u8> {
    let mut out = method.as_bytes().to_vec();
    for key in ["name", "uri", "arguments"] {
        out.push(0);
        if let Some(value) = exchange.params.and_then(|params| params.get(key)) {
            out.extend_from_slice(&tools::json::canonical(value));
        }
    }
    out
}

/// Begins a call that can be held: it runs apart from the exchange that asked for it, and is heard of on `stream` at first.
fn begin(exchange: &Exchange<'_>, method: &str, stream: Arc<OwnStream>) -> Box<Held> {
    let questions: Arc<RoundQuestions> = Arc::default();
    questions.relay.attach(Some(stream));
    let (answer, answered) = oneshot::channel();
    let cancel = CancellationToken::new();
    let work = serve::held(
        Arc::clone(exchange.state),
        exchange.headers.clone(),
        exchange.identity.clone(),
        exchange.body.clone(),
        cancel.clone(),
        Arc::clone(&questions),
    );
    exchange.state.tasks.go_on(async move {
        let _ = answer.send(work.await);
    });
    Box::new(Held {
        questions,
        asked: asked(exchange, method),
        answer: answered,
        cancel,
    })
}

/// Waits for what a held call comes to: its answer, or the next questions.
async fn attend(exchange: &Exchange<'_>, mut held: Box<Held>) -> Answer {
    let mut is_cancelled = false;
    loop {
        tokio::select! {
            biased;
            answer = &mut held.answer => {
                return answer.map_or_else(
                    |_| exchange.error(&ProtocolError::internal("the call was lost")),
                    |answer| with_id(answer, exchange),
                );
            }
            () = held.questions.asked() => {
                tokio::time::sleep(GATHER).await;
                held.questions.relay.attach(None);
                return hold(exchange, held);
            }
            () = exchange.cancel.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                held.cancel.cancel();
            }
        }
    }
}

/// The same answer to the request that asked last.
fn with_id(answer: Answer, exchange: &Exchange<'_>) -> Answer {
    match answer {
        Answer::Message {
            status,
            bytes,
            session,
        } => Answer::Message {
            status,
            bytes: splice::with_value(&bytes, "id", exchange.id.raw()).unwrap_or(bytes),
            session,
        },
        other => other,
    }
}

/// Keeps the call, and tells the agent what is asked.
fn hold(exchange: &Exchange<'_>, held: Box<Held>) -> Answer {
    let requests = held.questions.as_requests().unwrap_or_else(|| b"{}".to_vec());
    let key = exchange.state.rounds.keep(exchange.identity, Round::Held(held));
    let result = [
        b"{\"resultType\":\"input_required\",\"inputRequests\":",
        requests.as_slice(),
        b",\"requestState\":\"",
        key.as_bytes(),
        b"\"}",
    ]
    .concat();
    exchange.result(&result)
}

/// The answer of a modern upstream that asks for input: with a state of ours, by which the agent goes on.
pub(super) fn passed_on(
    exchange: &Exchange<'_>,
    upstream_name: Option<&str>,
    answer: &UpstreamAnswer,
    continuation: Box<Continuation>,
) -> Answer {
    if let Err(problem) = let_through(exchange, upstream_name, &answer.raw, |_| true) {
        return exchange.result(&denial::failed(&problem, true));
    }
    let state = scan::member(&answer.raw, STATE).map(<[u8]>::to_vec);
    if state.as_ref().is_some_and(|state| state.len() > MAX_STATE) {
        let text = format!("The upstream's requestState is larger than {MAX_STATE} bytes.");
        return exchange.result(&denial::failed(&text, true));
    }
    let round = Round::Again(Again { continuation, state });
    let key = format!("\"{}\"", exchange.state.rounds.keep(exchange.identity, round));
    let result = splice::with_value(&answer.raw, STATE, key.as_bytes())
        .or_else(|| splice::with_member(&answer.raw, STATE, key.as_bytes()))
        .unwrap_or_else(|| answer.raw.to_vec());
    exchange.result(&result)
}

/// Records what is asked, where its key is new, and lets it through or not.
pub(super) fn let_through(
    exchange: &Exchange<'_>,
    upstream: Option<&str>,
    result: &[u8],
    is_new: impl Fn(&[u8]) -> bool,
) -> Result<(), String> {
    let Some(upstream) = upstream.and_then(|name| exchange.state.gate.upstreams().get(name)) else {
        return Ok(());
    };
    let agent = AskedAgent {
        identity: exchange.identity.clone(),
        session: exchange.call_session(),
        traceparent: None,
    };
    let requests = scan::member(result, "inputRequests").unwrap_or(b"{}");
    let requests: Vec<_> = scan::members(requests)
        .take(MAX_QUESTIONS + 1)
        .collect::<Result<_, _>>()
        .map_err(|_| "The upstream's inputRequests are no object.".to_owned())?;
    if requests.len() > MAX_QUESTIONS {
        return Err(format!(
            "The tool asks for more than {MAX_QUESTIONS} inputs at once."
        ));
    }
    for request in requests {
        let method: String = scan::member(request.value, "method")
            .and_then(|raw| serde_json::from_slice(raw).ok())
            .unwrap_or_default();
        let question = Question {
            upstream: Arc::clone(upstream.name()),
            name: None,
            is_let_through: upstream.asks().lets_through(&method),
            method: method.as_str().into(),
            params: Bytes::copy_from_slice(scan::member(request.value, "params").unwrap_or_default()),
            progress: None,
        };
        if question.is_let_through && !is_new(request.key) {
            continue;
        }
        match exchange.state.gate.asked_by_upstream(&agent, &question) {
            // What the agent says comes with its next request.
            Ok(open) => open.end(&Reply {
                kind: AnswerKind::Result,
                raw: Bytes::new(),
            }),
            Err(_) => {
                return Err(format!(
                    "The tool asks for {method}, which Toolgate does not let through."
                ));
            }
        }
    }
    Ok(())
}

impl Again {
    /// The further params of the next round, with the upstream's own state.
    pub(super) fn params(&self, raw: &[u8]) -> Vec<u8> {
        let mut out = b"{".to_vec();
        for member in scan::members(raw).map_while(Result::ok) {
            let value = match (member.passes_for(STATE), &self.state) {
                (true, None) => continue,
                (true, Some(state)) if member.is(STATE) => state.as_slice(),
                (true, Some(_)) => continue,
                (false, _) => member.value,
            };
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(&[b"\"", member.key, b"\":", value].concat());
        }
        out.push(b'}');
        out
    }
}

/// What was kept with a state goes to its request.
pub(super) fn taken(exchange: &Exchange<'_>) -> Option<Again> {
    let again = exchange.again.as_ref()?;
    again.lock().unwrap_or_else(PoisonError::into_inner).take()
}
