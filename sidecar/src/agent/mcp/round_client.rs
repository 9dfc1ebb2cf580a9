//! A modern agent as an upstream meets it that asks by requests of its own: each question waits for the agent's next round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, oneshot};

use super::error::DENIED;
use super::line::Relay;
use super::params::quoted;
use crate::agent::state::AgentState;
use crate::gate::AskedAgent;
use crate::upstream::{Asks, Client, Notice, Question, Reply};

const NOT_SUPPORTED: i32 = -32601;
const BUSY: i32 = -32603;
const GONE: i32 = -32001;
/// Questions of one call that wait for their answers.
const MAX_OPEN: usize = 32;

/// The questions that one call has for its agent.
#[derive(Debug, Default)]
pub(super) struct RoundQuestions {
    /// Where what is said about the call goes meanwhile.
    pub(super) relay: Arc<Relay>,
    inner: Mutex<Inner>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    last: u64,
    open: BTreeMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// How the agent knows it: by the name that the upstream gave it, where that is no other question's of the call.
    key: Arc<str>,
    method: Arc<str>,
    params: Bytes,
    answer: oneshot::Sender<Reply>,
}

impl Inner {
    fn has(&self, key: &str) -> bool {
        self.open.values().any(|waiting| &*waiting.key == key)
    }
}

/// A key of ours.
fn own_key(id: u64) -> Arc<str> {
    format!("q{id}").into()
}

/// Whether a name could be a key of ours.
fn is_like_ours(name: &str) -> bool {
    name.strip_prefix('q')
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

impl RoundQuestions {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(
        &self,
        name: Option<Arc<str>>,
        method: Arc<str>,
        params: Bytes,
    ) -> Option<(u64, oneshot::Receiver<Reply>)> {
        let mut inner = self.lock();
        if inner.open.len() >= MAX_OPEN {
            return None;
        }
        inner.last += 1;
        let id = inner.last;
        let key = name
            .filter(|name| !is_like_ours(name) && !inner.has(name))
            .unwrap_or_else(|| own_key(id));
        let (answer, waiting) = oneshot::channel();
        let question = Waiting {
            key,
            method,
            params,
            answer,
        };
        inner.open.insert(id, question);
        drop(inner);
        self.asked.notify_one();
        Some((id, waiting))
    }

    fn withdraw(&self, id: u64) {
        self.lock().open.remove(&id);
    }

    /// Waits until there is a question that the agent has not answered.
    pub(super) async fn asked(&self) {
        loop {
            let asked = self.asked.notified();
            if !self.lock().open.is_empty() {
                return;
            }
            asked.await;
        }
    }

    /// Whether one waits.
    pub(super) fn is_any_open(&self) -> bool {
        !self.lock().open.is_empty()
    }

    /// Those that wait, as a raw object of requests by their keys; `None` where none does.
    pub(super) fn as_requests(&self) -> Option<Vec<u8>> {
        let inner = self.lock();
        let mut requests = b"{".to_vec();
        for waiting in inner.open.values() {
            if requests.len() > 1 {
                requests.push(b',');
            }
            requests.extend_from_slice(&quoted(&waiting.key));
            requests.extend_from_slice(b":{\"method\":");
            requests.extend_from_slice(&quoted(&waiting.method));
            if !waiting.params.is_empty() {
                requests.extend_from_slice(b",\"params\":");
                requests.extend_from_slice(&waiting.params);
            }
            requests.push(b'}');
        }
        requests.push(b'}');
        (!inner.open.is_empty()).then_some(requests)
    }

    /// The agent answers; what was not asked is ignored.
    pub(super) fn answer(&self, given: &str, reply: Reply) {
        let waiting = {
            let mut inner = self.lock();
            let found = inner.open.iter().find(|(_, waiting)| &*waiting.key == given);
            let id = found.map(|(id, _)| *id);
            id.and_then(|id| inner.open.remove(&id))
        };
        if let Some(waiting) = waiting {
            let _ = waiting.answer.send(reply);
        }
    }
}

/// A modern agent whose call can be held.
#[derive(Debug, Clone)]
pub(super) struct RoundClient {
    pub(super) state: Weak<AgentState>,
    pub(super) agent: AskedAgent,
    /// What it says that its client can do.
    pub(super) capabilities: Bytes,
    pub(super) questions: Arc<RoundQuestions>,
}

/// A question that waits; dropped before its answer, it is withdrawn.
struct Open<'q> {
    questions: &'q RoundQuestions,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.questions.withdraw(self.id);
    }
}

impl Client for RoundClient {
    fn ask(&self, question: Question) -> BoxFuture<'static, Reply> {
        let client = self.clone();
        Box::pin(async move {
            let Some(state) = client.state.upgrade() else {
                return Reply::error(GONE, "the sidecar is ending");
            };
            let Ok(open) = state.gate.asked_by_upstream(&client.agent, &question) else {
                return Reply::error(DENIED, "Toolgate does not let this through");
            };
            let reply = client.wait(question).await;
            open.end(&reply);
            reply
        })
    }

    fn tell(&self, upstream: &Arc<str>, notice: Notice) {
        // Its revision has no words for it.
        tracing::debug!(%upstream, ?notice, "a notification is not passed on to a modern agent");
    }
}

impl RoundClient {
    async fn wait(&self, question: Question) -> Reply {
        if !Asks::ALL.is_supported(&self.capabilities, &question.method) {
            return Reply::error(NOT_SUPPORTED, "the agent's client does not support this");
        }
        let Some((id, answer)) = self
            .questions
            .begin(question.name, question.method, question.params)
        else {
            return Reply::error(BUSY, "the agent has too many open questions");
        };
        let _open = Open {
            questions: &self.questions,
            id,
        };
        answer
            .await
            .unwrap_or_else(|_| Reply::error(GONE, "the agent did not answer"))
    }
}

#[cfg(test)]
mod tests {
    use crate::upstream::AnswerKind;

    use super::*;

    #[tokio::test]
    async fn a_question_waits_for_its_round_and_others_are_ignored() {
        let questions = RoundQuestions::default();
        let (_, answer) = questions.begin(None, "roots/list".into(), Bytes::new()).unwrap();
        questions.asked().await;
        let requests = questions.as_requests().unwrap();
        assert_eq!(requests, br#"{"q1":{"method":"roots/list"}}"#);
        let reply = Reply {
            kind: AnswerKind::Result,
            raw: Bytes::from_static(b"{}"),
        };
        for wrong in ["q2", "1", "q", ""] {
            questions.answer(wrong, reply.clone());
        }
        assert!(questions.is_any_open());
        questions.answer("q1", reply.clone());
        assert_eq!(answer.await.unwrap(), reply);
        assert!(questions.as_requests().is_none());
    }

    #[test]
    fn a_question_keeps_the_name_that_its_upstream_gave_it() {
        let questions = RoundQuestions::default();
        let names = [Some("user \"name\""), Some("q7"), None, Some("user \"name\"")];
        let open: Vec<_> = names
            .into_iter()
            .map(|name| {
                questions
                    .begin(name.map(Arc::from), "a/b".into(), Bytes::from_static(b"{}"))
                    .unwrap()
            })
            .collect();
        let asked: serde_json::Value = serde_json::from_slice(&questions.as_requests().unwrap()).unwrap();
        let keys: Vec<_> = asked.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["q2", "q3", "q4", "user \"name\""]);
        drop(open);
    }
}
