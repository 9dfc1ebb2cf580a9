//! What every entrance shares.

use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderMap;
use net::problem::Problem;
use tokio_util::sync::CancellationToken;
use tools::id::SessionId;

use super::attended::Tasks;
use super::caller::ProtectedResource;
use super::calls::Calls;
use super::mcp::hub::Hub;
use super::mcp::rounds::Rounds;
use super::mcp::sessions::Sessions;
use super::mcp::tasks::OwnTasks;
use super::names::Names;
use crate::gate::{Gate, Session};
use crate::identity::Identities;
use crate::metrics::Metrics;

/// The header by which a client names its own session.
pub const SESSION_HEADER: &str = "x-session-id";

/// Bounds of what is read from agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole message.
    pub message_bytes: usize,
    /// Bytes of a call's arguments.
    pub argument_bytes: usize,
    /// Nesting of a call's arguments.
    pub argument_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            argument_bytes: 4 << 20,
            argument_depth: 64,
        }
    }
}

/// Whether a request carries a valid operator credential. Only where both planes share a port is there such a check.
pub type OperatorCheck =
    Arc<dyn Fn(&HeaderMap) -> Pin<Box<dyn Future<Output = Result<(), Problem>> + Send>> + Send + Sync>;

/// What every entrance shares.
pub struct AgentState {
    /// The decision.
    pub gate: Arc<Gate>,
    /// How callers are identified.
    pub identities: Identities,
    /// Where agents get tokens.
    pub resource: ProtectedResource,
    /// Tells operators, where they may ask here too.
    pub operators: Option<OperatorCheck>,
    /// Legacy MCP sessions.
    pub sessions: Sessions,
    /// What is kept between the rounds of modern agents' requests.
    pub rounds: Rounds,
    /// Who hears what of upstreams' notifications.
    pub hub: Hub,
    /// Calls that were answered before they ended.
    pub calls: Calls,
    /// Tasks that this sidecar runs.
    pub own_tasks: OwnTasks,
    /// Where abandoned work goes on.
    pub tasks: Tasks,
    /// Bounds; a reload changes them.
    pub limits: ArcSwap<Limits>,
    /// How tools are named towards agents.
    pub names: Names,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the sidecar ends.
    pub shutdown: CancellationToken,
}

impl AgentState {
    /// Bounds as they are now.
    pub fn limits(&self) -> Limits {
        **self.limits.load()
    }

    /// Lets operators pass who may ask in the name of agents.
    ///
    /// # Errors
    /// 403 for an operator who may not, 401 for everybody else.
    pub async fn check_operator(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match &self.operators {
            Some(check) => check(headers).await,
            None => Err(Problem::unauthenticated("no operator is known here")),
        }
    }
}

/// The session that the client names for itself.
pub fn named_session(headers: &HeaderMap) -> Option<Session> {
    let id = headers.get(SESSION_HEADER)?.to_str().ok()?;
    Some(Session {
        id: SessionId::try_from(id).ok()?,
        is_named: true,
    })
}
