//! The record of a caller whose credential was refused.

use chain::vocabulary::{Outcome, Reason, RecordKind};
use http::StatusCode;
use tools::id::AgentId;

use super::Gate;
use super::trace::TraceContext;
use super::trail::{Ending, Trail};
use crate::identity::{ANONYMOUS, Identity, IdentityError, Strength};

/// Where a call of REST names its tool.
const TOOL: &str = "/tool/";

impl Gate {
    /// Records that the credential of a request was refused. The record is of no agent, since none is proven; as every refusal
    /// it leaves room in the spool to calls.
    pub fn refused_credential(&self, path: &str, error: &IdentityError) {
        let Ok(agent) = AgentId::try_from(ANONYMOUS) else {
            return;
        };
        let nobody = Identity {
            agent,
            strength: Strength::Anonymous,
            user: None,
        };
        let tool = path.strip_prefix(TOOL).unwrap_or_default();
        let trace = TraceContext::begin(None);
        let mut trail = Trail::begin(
            RecordKind::Call,
            &self.clock,
            &self.namespace(),
            &nobody,
            tool,
            trace,
        );
        trail.came_under(self.control.snapshot().revision);
        trail.record.agent = None;
        if tool.is_empty() {
            trail.record.tool = None;
        }
        let status = error.status();
        self.metrics.credential_refused();
        self.write(
            trail,
            Ending {
                outcome: Outcome::Denied,
                reason: Some(match status {
                    StatusCode::FORBIDDEN => Reason::Forbidden,
                    _ => Reason::Unauthenticated,
                }),
                status: status.as_u16(),
                error: Some(format!("{}: {error}", entrance(path))),
                response_bytes: None,
            },
        );
    }
}

/// The entrance of a path: what follows was chosen by a stranger.
fn entrance(path: &str) -> &str {
    let end = path
        .char_indices()
        .skip(1)
        .find(|(_, character)| *character == '/');
    end.and_then(|(at, _)| path.get(..at)).unwrap_or(path)
}
