//! One call to an upstream, and its answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tools::fingerprint::Fingerprint;
use tools::program::ProgramCall;

use super::mcp::{Era, scan};
use super::{Audience, LogLevel, Origin};

/// One request to forward: a `tools/call`, or another that was decided about.
///
/// Raw members are JSON text that the gate has already checked to be well formed.
#[derive(Clone, Debug, Default)]
pub struct UpstreamRequest {
    /// The method; `None` is `tools/call`. The params of any other request are `extra`, as they are to be sent.
    pub method: Option<Arc<str>>,
    /// The tool's name as the upstream declared it, without the upstream's prefix; the prompt's name or the resource's URI.
    pub tool: Arc<str>,
    /// The fingerprint of the tool that was decided about. Where an upstream can tell, it calls no other.
    pub fingerprint: Option<Fingerprint>,
    /// Raw arguments; `None` when the client sent none.
    pub arguments: Option<Bytes>,
    /// Raw `_meta` object of the client's request. It is kept byte for byte, except for the members that the sidecar
    /// owns: `progressToken`, `art.flux7/agent`, `art.flux7/user`, `io.modelcontextprotocol/protocolVersion`,
    /// `…/clientInfo`, `…/clientCapabilities` and `…/logLevel` never pass; `traceparent` and `tracestate` give way to those below.
    pub meta: Option<Bytes>,
    /// Raw object with further members of `params`, such as `requestState`; `name`, `arguments` and `_meta` in it are ignored.
    pub extra: Option<Bytes>,
    /// W3C `traceparent` to send; without it the client's own one passes.
    pub traceparent: Option<String>,
    /// W3C `tracestate` to send along with `traceparent`.
    pub tracestate: Option<String>,
    /// The caller's verified identity; sent only to upstreams with `forward_identity`.
    pub identity: Option<ForwardedIdentity>,
    /// Whom it is forwarded for; without it the request goes over the connection that all share, and nobody can be asked.
    pub origin: Option<Arc<Origin>>,
    /// Who hears what the upstream says about the request before it answers.
    pub audience: Option<Arc<dyn Audience>>,
    /// From which level on the upstream is asked for log messages. An MCP upstream sets it itself, by what the audience wants.
    pub log_level: Option<LogLevel>,
    /// Cancels the call: the upstream is told, and the call ends with [`Cancelled`](super::UpstreamError::Cancelled).
    /// Dropping the call's future tells the upstream as well.
    pub cancel: CancellationToken,
    /// Bound of the whole call; `None` is the upstream's own one.
    pub timeout: Option<Duration>,
    /// The argument vector that was decided about, where the upstream is a program.
    pub program: Option<Arc<ProgramCall>>,
}

/// Who calls, as an upstream may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedIdentity {
    /// Agent id.
    pub agent: String,
    /// User, where a verified credential names one.
    pub user: Option<String>,
}

/// What the upstream answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamAnswer {
    /// A result or a JSON-RPC error.
    pub kind: AnswerKind,
    /// The raw JSON of the member `result` or `error`, exactly as it came. It may hold line breaks between tokens.
    pub raw: Bytes,
    /// The era that the upstream speaks: results of legacy upstreams have no `resultType`, nor have those of upstreams that
    /// speak no MCP.
    pub era: Era,
    /// The exit code, where a program was run.
    pub exit_code: Option<i32>,
}

/// Which of the two answers of JSON-RPC it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The member `result`.
    Result,
    /// The member `error`.
    Error,
}

impl UpstreamAnswer {
    /// A result that was made here: a `CallToolResult` without `resultType`.
    #[must_use]
    pub fn result(raw: Bytes) -> Self {
        Self {
            kind: AnswerKind::Result,
            raw,
            era: Era::Legacy,
            exit_code: None,
        }
    }

    /// Whether the tool did not succeed: a JSON-RPC error, or a result with `isError: true`.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.kind {
            AnswerKind::Error => true,
            AnswerKind::Result => scan::member(&self.raw, "isError").is_some_and(|raw| raw == b"true"),
        }
    }
}
