//! Agents as upstreams meet them: whom a request is forwarded for, and how a question of an upstream reaches the client of a
//! legacy session.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::error::DENIED;
use super::line::OwnStream;
use super::params::quoted;
use super::round_client::{RoundClient, RoundQuestions};
use super::serve::Exchange;
use super::session::Session;
use super::splice;
use super::tasks::{self, begin::Beginning};
use super::version;
use super::version::META_CAPABILITIES;
use crate::agent::sse;
use crate::agent::state::{self, AgentState};
use crate::gate::{self, AskedAgent, TraceContext};
use crate::identity::Identity;
use crate::upstream::mcp::scan;
use crate::upstream::{Asks, Client, Notice, Origin, Party, Question, Reply};

const NOT_SUPPORTED: i32 = -32601;
const GONE: i32 = -32001;
const BUSY: i32 = -32603;
const INVALID: i32 = -32602;

/// Whom a call is forwarded for whose client may be asked on the call's own stream.
pub(super) fn asked_origin(
    exchange: &Exchange<'_>,
    session: &Arc<Session>,
    stream: &Arc<OwnStream>,
    trace: &TraceContext,
) -> Arc<Origin> {
    let client = SessionClient {
        state: Arc::downgrade(exchange.state),
        session: Arc::downgrade(session),
        identity: exchange.identity.clone(),
        stream: Some(Arc::clone(stream)),
        task: exchange.task.cloned(),
        traceparent: Some(trace.traceparent()),
    };
    let standing = origin(exchange);
    Arc::new(Origin {
        client: Some(Arc::new(client)),
        ..Origin::clone(&standing)
    })
}

/// Whom a call is forwarded for that is held while its agent is asked.
pub(super) fn held_origin(
    exchange: &Exchange<'_>,
    questions: &Arc<RoundQuestions>,
    trace: &TraceContext,
) -> Arc<Origin> {
    let standing = origin(exchange);
    let client = RoundClient {
        state: Arc::downgrade(exchange.state),
        agent: AskedAgent {
            identity: exchange.identity.clone(),
            session: exchange.call_session(),
            traceparent: Some(trace.traceparent()),
        },
        capabilities: standing.capabilities.clone(),
        questions: Arc::clone(questions),
    };
    Arc::new(Origin {
        client: Some(Arc::new(client)),
        ..Origin::clone(&standing)
    })
}

/// Whom a call of a modern agent is forwarded for that has become a task: what its upstream asks is asked of the task.
pub(super) fn origin_of_task(
    exchange: &Exchange<'_>,
    questions: &Arc<RoundQuestions>,
    trace: &TraceContext,
    follows_tasks: bool,
) -> Arc<Origin> {
    let held = held_origin(exchange, questions, trace);
    Arc::new(Origin {
        takes_rounds: false,
        follows_tasks,
        ..Origin::clone(&held)
    })
}

/// Whom the requests of an exchange are forwarded for, without anybody who could be asked on their streams.
pub(super) fn origin(exchange: &Exchange<'_>) -> Arc<Origin> {
    if let Some(session) = exchange.session
        && let Some(origin) = session.origin()
    {
        return Arc::clone(origin);
    }
    let capabilities = version::meta(exchange.params)
        .filter(|_| exchange.is_modern)
        .and_then(|meta| meta.get(META_CAPABILITIES))
        .map(|node| exchange.body.slice_ref(node.raw()));
    let named = state::named_session(exchange.headers).map(|session| session.id);
    let identity = exchange.identity;
    Arc::new(Origin {
        capabilities: capabilities.unwrap_or(Bytes::from_static(b"{}")),
        takes_rounds: exchange.is_modern,
        ..Origin::without_session(identity.agent.clone(), identity.user.clone(), named)
    })
}

/// Whom the requests of a session are forwarded for.
pub(super) fn origin_of_session(
    state: &Arc<AgentState>,
    session: &Arc<Session>,
    identity: &Identity,
) -> Origin {
    let owner = SessionClient {
        state: Arc::downgrade(state),
        session: Arc::downgrade(session),
        identity: identity.clone(),
        stream: None,
        task: None,
        traceparent: None,
    };
    Origin {
        party: Party {
            agent: identity.agent.clone(),
            user: identity.user.clone(),
            session: session.id().parse().ok(),
        },
        capabilities: session.capabilities().clone(),
        client: None,
        owner: Some(Arc::new(owner)),
        ended: Some(session.ended().clone()),
        takes_rounds: false,
        follows_tasks: false,
    }
}

/// The client of a legacy session.
#[derive(Debug, Clone)]
struct SessionClient {
    state: Weak<AgentState>,
    session: Weak<Session>,
    identity: Identity,
    /// The stream of the call that it is asked about; without it, it is asked on the stream of its session.
    stream: Option<Arc<OwnStream>>,
    /// The task that the call is, where it is one.
    task: Option<Arc<Beginning>>,
    traceparent: Option<String>,
}

impl SessionClient {
    fn say(&self, session: &Session, message: &[u8]) {
        let event = sse::event(message);
        match self.stream.as_ref().and_then(|stream| stream.opened()) {
            Some(stream) => stream.mailbox.ask(event),
            None => session.mailbox().ask(event),
        }
    }

    async fn answer(&self, session: &Arc<Session>, question: &Question) -> Reply {
        if !Asks::ALL.is_supported(session.capabilities(), &question.method) {
            return Reply::error(NOT_SUPPORTED, "the agent's client does not support this");
        }
        if !tasks::of_client::may_ask(session.client_tasks(), question) {
            return Reply::error(INVALID, "the agent has answered you with no such task");
        }
        let Some((id, answer)) = session.questions().begin(question.progress.clone()) else {
            return Reply::error(BUSY, "the agent has too many open questions");
        };
        let mut params = with_token(&question.params, id).unwrap_or_else(|| question.params.clone());
        if let Some(task) = self.task.as_ref().and_then(|task| task.id()) {
            params = tasks::of_task(&params, task);
        }
        self.say(session, &message(Some(id), &question.method, &params));
        let asked = Open {
            client: self,
            session,
            id,
        };
        let reply = tokio::select! {
            reply = answer => reply.ok(),
            () = session.ended().cancelled() => None,
        };
        drop(asked);
        if let Some(reply) = &reply {
            tasks::of_client::note(session.client_tasks(), question, reply);
        }
        reply.unwrap_or_else(|| Reply::error(GONE, "the agent's session has ended"))
    }
}

/// A question that the client was asked; dropped before its answer, it is withdrawn.
struct Open<'q> {
    client: &'q SessionClient,
    session: &'q Session,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.session.questions().withdraw(self.id) {
            let params = format!(r#"{{"requestId":{},"reason":"it is no longer needed"}}"#, self.id);
            let withdrawn = message(None, "notifications/cancelled", params.as_bytes());
            self.client.say(self.session, &withdrawn);
        }
    }
}

impl Client for SessionClient {
    fn ask(&self, question: Question) -> BoxFuture<'static, Reply> {
        let client = self.clone();
        Box::pin(async move {
            let (Some(state), Some(session)) = (client.state.upgrade(), client.session.upgrade()) else {
                return Reply::error(GONE, "the agent's session has ended");
            };
            let agent = AskedAgent {
                identity: client.identity.clone(),
                session: recorded(&session),
                traceparent: client.traceparent.clone(),
            };
            let Ok(open) = state.gate.asked_by_upstream(&agent, &question) else {
                return Reply::error(DENIED, "Toolgate does not let this through");
            };
            let reply = client.answer(&session, &question).await;
            open.end(&reply);
            reply
        })
    }

    fn tell(&self, upstream: &Arc<str>, notice: Notice) {
        let (Some(state), Some(session)) = (self.state.upgrade(), self.session.upgrade()) else {
            return;
        };
        match notice {
            Notice::ResourceUpdated(_) | Notice::Log(_) => {
                let mailbox = session.mailbox();
                state.hub.tell(&state.gate, upstream, &notice, Some(&mailbox));
            }
            Notice::Other { method, params } => self.say(&session, &message(None, &method, &params)),
        }
    }
}

fn recorded(session: &Session) -> Option<gate::Session> {
    let id = session.id().parse().ok()?;
    Some(gate::Session { id, is_named: false })
}

/// A request with an id, or a notification. `params` are raw; none are empty.
fn message(id: Option<u64>, method: &str, params: &[u8]) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\"".to_vec();
    if let Some(id) = id {
        out.extend_from_slice(format!(",\"id\":{id}").as_bytes());
    }
    out.extend_from_slice(b",\"method\":");
    out.extend_from_slice(&quoted(method));
    if !params.is_empty() {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out
}

/// The params with the question's id as their progress token, where they have one.
fn with_token(params: &Bytes, id: u64) -> Option<Bytes> {
    let meta = scan::member(params, "_meta")?;
    let token = id.to_string();
    let meta = splice::with_value(meta, "progressToken", token.as_bytes())?;
    splice::with_value(params, "_meta", &meta).map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_keeps_its_params_but_for_the_token() {
        let params = Bytes::from_static(br#"{"a":1.00,"_meta":{"progressToken":"u","x":1e2}, "b":[]}"#);
        let shown = with_token(&params, 7).unwrap();
        assert_eq!(
            shown,
            &br#"{"a":1.00,"_meta":{"progressToken":7,"x":1e2}, "b":[]}"#[..]
        );
        assert_eq!(with_token(&Bytes::from_static(br#"{"_meta":{}}"#), 7), None);
        assert_eq!(with_token(&Bytes::new(), 7), None);
        let text = String::from_utf8(message(Some(7), "roots/list", b"")).unwrap();
        assert_eq!(text, r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#);
        let text = String::from_utf8(message(None, "n\"x", b"{}")).unwrap();
        assert_eq!(text, r#"{"jsonrpc":"2.0","method":"n\"x","params":{}}"#);
    }
}
