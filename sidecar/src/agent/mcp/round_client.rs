//! A modern agent as an upstream meets it that asks by requests of its own: each question waits for the agent's next round.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, oneshot};

use super::error::DENIED;
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
    method: Arc<str>,
    params: Bytes,
    answer: oneshot::Sender<Reply>,
}

/// A question as an agent knows it.
fn key(id: u64) -> String {
    format!("q{id}")
}

impl RoundQuestions {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, method: Arc<str>, params: Bytes) -> Option<(u64, oneshot::Receiver<Reply>)> {
        let mut inner = self.lock();
        if inner.open.len() >= MAX_OPEN {
            return None;
        }
        inner.last += 1;
        let id = inner.last;
        let (answer, waiting) = oneshot::channel();
        let question = Waiting {
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

    /// Those that wait: key, method and raw params.
    pub(super) fn open(&self) -> Vec<(String, Arc<str>, Bytes)> {
        let inner = self.lock();
        let shown =
            |(id, waiting): (&u64, &Waiting)| (key(*id), Arc::clone(&waiting.method), waiting.params.clone());
        inner.open.iter().map(shown).collect()
    }

    /// The agent answers; what was not asked is ignored.
    pub(super) fn answer(&self, given: &str, reply: Reply) {
        let id = given.strip_prefix('q').and_then(|id| id.parse().ok());
        let waiting = id.and_then(|id: u64| self.lock().open.remove(&id));
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
        let Some((id, answer)) = self.questions.begin(question.method, question.params) else {
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
        let (_, answer) = questions.begin("roots/list".into(), Bytes::new()).unwrap();
        questions.asked().await;
        let [(key, method, _)] = questions.open().try_into().unwrap();
        assert_eq!((key.as_str(), &*method), ("q1", "roots/list"));
        let reply = Reply {
            kind: AnswerKind::Result,
            raw: Bytes::from_static(b"{}"),
        };
        for wrong in ["q2", "1", "q", ""] {
            questions.answer(wrong, reply.clone());
        }
        assert_eq!(questions.open().len(), 1);
        questions.answer("q1", reply.clone());
        assert_eq!(answer.await.unwrap(), reply);
        assert!(questions.open().is_empty());
    }
}
