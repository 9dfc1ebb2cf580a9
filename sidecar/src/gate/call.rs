//! What an entrance hands to the gate, and what it gets back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tools::id::SessionId;
use tools::json::{JsonError, JsonErrorKind, Node};
use tools::model::Tool;

use super::TraceContext;
use super::continuation::Continuation;
use super::flight::CancelCause;
use super::refusal::Refusal;
use super::verdict::Summary;
use crate::agent::names::Names;
use crate::identity::Identity;
use crate::upstream::{Audience, Origin, UpstreamAnswer, UpstreamError};

/// One call of a tool.
pub struct CallRequest<'d> {
    /// Who calls.
    pub identity: Identity,
    /// The session it belongs to.
    pub session: Option<Session>,
    /// The tool's name as the agent gave it.
    pub tool: &'d str,
    /// What is asked for, where it is no tool.
    pub other: Option<OtherRequest>,
    /// How tools are named towards this agent.
    pub names: &'d Names,
    /// The arguments, or why they are not acceptable.
    pub arguments: Arguments<'d>,
    /// The bytes that `arguments` and `meta` lie in.
    pub body: &'d Bytes,
    /// The request's raw `_meta`.
    pub meta: Option<Node<'d>>,
    /// Further members of the request's params, as a raw object.
    pub extra: Option<Bytes>,
    /// The right to go on with a call that needed input; the gate leaves one here when this call does.
    pub continuation: Option<Box<Continuation>>,
    /// Its trace.
    pub trace: TraceContext,
    /// The caller's `tracestate`.
    pub tracestate: Option<String>,
    /// Cancelled when the caller no longer wants it.
    pub cancel: CancellationToken,
    /// Whom it is forwarded for.
    pub origin: Option<Arc<Origin>>,
    /// Who hears what the upstream says about it before it answers.
    pub audience: Option<Arc<dyn Audience>>,
    /// How long to wait for people.
    pub patience: Patience,
}

/// A request of the protocol that is no tool call, and takes the same gate.
#[derive(Debug, Clone)]
pub struct OtherRequest {
    /// What is governed: a resource, a prompt or a method.
    pub subject: Arc<Tool>,
    /// The method that is forwarded.
    pub method: Arc<str>,
    /// The raw params to forward, with names as the upstream knows them; what `_meta` is among them is left out.
    pub params: Bytes,
    /// The answer, where nothing has to be forwarded once the request is allowed: a raw result.
    pub answer: Option<Bytes>,
}

/// A session, as a call belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whether the client chose the id, so that it means the same conversation to it tomorrow.
    pub is_named: bool,
}

/// The arguments of a call.
#[derive(Debug, Clone, Copy)]
pub enum Arguments<'d> {
    /// None were given: the same as an empty object.
    Absent,
    /// An object.
    Object(Node<'d>),
    /// They cannot be read in exactly one way.
    Unreadable(Unreadable),
}

/// Why arguments are not acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes are refused by the reader.
    #[error("the arguments are not acceptable JSON: {0}")]
    Json(#[from] JsonError),
    /// They are no object.
    #[error("the arguments must be a JSON object")]
    NoObject,
    /// They name a resource by a URI that a server may take for another one.
    #[error("a URI with \".\" or \"..\" among its segments is refused; ask for the URI that it stands for")]
    DotSegments,
    /// They are not looked at: the call was to be a task, and its agent has no room for another.
    #[error("this agent has {limit} tasks that have not ended; wait for one to end, or cancel one")]
    NoRoomForTask {
        /// How many an agent may have.
        limit: usize,
    },
    /// They are larger than allowed.
    #[error("the arguments are larger than limits.argument_bytes ({limit} bytes)")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
}

impl Unreadable {
    /// Whether they are refused for their size or their nesting.
    pub fn is_size(&self) -> bool {
        match self {
            Self::TooLarge { .. } => true,
            Self::Json(error) => {
                matches!(
                    error.kind,
                    JsonErrorKind::TooLarge { .. } | JsonErrorKind::TooDeep { .. }
                )
            }
            Self::NoObject | Self::DotSegments | Self::NoRoomForTask { .. } => false,
        }
    }

    /// Whether they are refused for a key that comes twice.
    pub fn is_duplicate_key(&self) -> bool {
        matches!(
            self,
            Self::Json(JsonError {
                kind: JsonErrorKind::DuplicateKey,
                ..
            })
        )
    }
}

/// How long a call waits while its approval is pending.
pub struct Patience {
    /// At most this long; `None`: until the approval ends.
    pub wait: Option<Duration>,
    /// Told once when the wait begins.
    pub on_pending: Option<Box<OnPending>>,
}

/// Told that a call begins to wait for a person; it says how the call goes on.
pub type OnPending = dyn FnOnce(PendingApproval) -> Waits + Send;

/// How a call goes on that has begun to wait for a person.
#[derive(Debug, Default)]
pub struct Waits {
    /// At most this long, where that is less than its patience.
    pub wait: Option<Duration>,
    /// Whom it is forwarded for from now on, where that has changed.
    pub origin: Option<Arc<Origin>>,
}

impl Patience {
    /// Does not wait.
    pub fn none() -> Self {
        Self {
            wait: Some(Duration::ZERO),
            on_pending: None,
        }
    }
}

/// An approval that is not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingApproval {
    /// Its id.
    pub approval: String,
    /// Id of the call that waits.
    pub call: String,
    /// Trace of that call.
    pub trace_id: String,
    /// What asked for it.
    pub summary: Summary,
}

/// How a call ended.
#[derive(Debug)]
pub struct CallReport {
    /// Id of the call and of its record.
    pub id: String,
    /// Its trace.
    pub trace_id: String,
    /// The agent that called.
    pub agent: String,
    /// The governed name of the tool, or the name as given when there is none.
    pub tool: String,
    /// What was decided, and by what.
    pub summary: Summary,
    /// The approval it ran under, or waits for.
    pub approval: Option<String>,
    /// The upstream that it was for.
    pub upstream: Option<String>,
    /// The right to go on with it, where it needs input.
    pub continuation: Option<Box<Continuation>>,
    /// From its arrival at the gate to its end.
    pub latency: Duration,
    /// Its end.
    pub end: End,
}

/// The ways a call ends.
#[derive(Debug)]
pub enum End {
    /// It was forwarded, and the upstream answered.
    Answered(UpstreamAnswer),
    /// It was forwarded, and there is no answer.
    Failed(UpstreamError),
    /// It was ended: by its caller at any time, by others only after it was forwarded.
    Cancelled(CancelCause),
    /// It did not run. While it waits for a person, and its caller no longer does, the reason is `approval_pending`.
    Refused(Refusal),
}
