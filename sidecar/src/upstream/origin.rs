//! Whom a request is forwarded for: over whose connection it goes, and who answers what the upstream asks meanwhile.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tools::id::{AgentId, SessionId, UserId};

use super::{AnswerKind, Notice};

/// Whom a request is forwarded for.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Whose the connection is, where it is not shared.
    pub party: Party,
    /// What the agent says that its client can do: a raw JSON object.
    pub capabilities: Bytes,
    /// Who answers what the upstream asks while it serves this request; nobody can when there is none.
    pub client: Option<Arc<dyn Client>>,
    /// Who hears what comes on a connection of its own outside its requests.
    pub owner: Option<Arc<dyn Client>>,
    /// Cancelled when the party is gone. Without it a connection of its own ends when it is not used for a while.
    pub ended: Option<CancellationToken>,
    /// Whether the agent takes `input_required` as an answer.
    pub takes_rounds: bool,
    /// Whether a call that its upstream runs as a task is one, and is followed to its end here.
    pub follows_tasks: bool,
}

impl Origin {
    /// What an agent asks without a session that it began, with nobody who could be asked back.
    #[must_use]
    pub fn without_session(agent: AgentId, user: Option<UserId>, named: Option<SessionId>) -> Self {
        Self {
            party: Party {
                agent,
                user,
                session: named,
            },
            capabilities: Bytes::from_static(b"{}"),
            client: None,
            owner: None,
            ended: None,
            takes_rounds: false,
            follows_tasks: false,
        }
    }
}

/// Who must not see another's state at an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Party {
    /// The agent.
    pub agent: AgentId,
    /// The user it acts for.
    pub user: Option<UserId>,
    /// The agent's session: one that it began by `initialize`, or that it names itself.
    pub session: Option<SessionId>,
}

/// The agent's side of a request, as an upstream meets it that asks something.
pub trait Client: fmt::Debug + Send + Sync {
    /// Asks the agent, and waits for what it says. Dropping the future withdraws the question.
    fn ask(&self, question: Question) -> BoxFuture<'static, Reply>;

    /// Tells the agent.
    fn tell(&self, upstream: &Arc<str>, notice: Notice);
}

/// A request of an upstream.
#[derive(Debug)]
pub struct Question {
    /// The upstream's name.
    pub upstream: Arc<str>,
    /// What the upstream calls the question, where that is a short text.
    pub name: Option<Arc<str>>,
    /// What is asked.
    pub method: Arc<str>,
    /// Raw params; empty where there are none.
    pub params: Bytes,
    /// Where the agent's progress goes, when the upstream asked for it: raw params that carry a token of ours.
    pub progress: Option<mpsc::Sender<Bytes>>,
    /// Whether the configuration lets it through; one that is not is recorded and refused.
    pub is_let_through: bool,
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// A result or a JSON-RPC error.
    pub kind: AnswerKind,
    /// The member `result` or `error`, raw.
    pub raw: Bytes,
}

impl Reply {
    /// An error of ours.
    #[must_use]
    pub fn error(code: i32, message: &str) -> Self {
        let error = serde_json::json!({"code": code, "message": message});
        Self {
            kind: AnswerKind::Error,
            raw: Bytes::from(error.to_string()),
        }
    }
}
