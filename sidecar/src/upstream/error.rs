//! Why a call got no answer from its upstream.

use std::sync::Arc;
use std::time::Duration;

/// Why a call got no answer from its upstream.
///
/// Messages name the upstream and what to do; they never hold header values, arguments or results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// There is no connection; nothing was sent.
    #[error("upstream {upstream:?} is not connected ({detail}); it is retried, see GET /mcp-servers")]
    Unavailable {
        /// The upstream's name.
        upstream: Arc<str>,
        /// The last error of connecting.
        detail: String,
    },
    /// The call cannot be sent; nothing was.
    #[error("upstream {upstream:?} cannot be sent this call: {detail}")]
    Refused {
        /// The upstream's name.
        upstream: Arc<str>,
        /// Why not.
        detail: String,
    },
    /// The connection ended before the answer came; the tool may have run.
    #[error("upstream {upstream:?} went away during the call ({detail}); the call may have taken effect")]
    Lost {
        /// The upstream's name.
        upstream: Arc<str>,
        /// What ended the connection.
        detail: String,
    },
    /// The call was cancelled by its caller or by a stop; the upstream was told.
    #[error("the call to upstream {upstream:?} was cancelled")]
    Cancelled {
        /// The upstream's name.
        upstream: Arc<str>,
    },
    /// No answer within the bound; the upstream was told to cancel.
    #[error("upstream {upstream:?} gave no answer within {after:?}")]
    Timeout {
        /// The upstream's name.
        upstream: Arc<str>,
        /// The bound.
        after: Duration,
    },
    /// The request or the answer is beyond the bound of one message.
    #[error(
        "{what} of upstream {upstream:?} is larger than the {limit} bytes that limits.message_bytes leaves for it"
    )]
    TooLarge {
        /// The upstream's name.
        upstream: Arc<str>,
        /// `the request` or `the answer`.
        what: &'static str,
        /// The bound in bytes.
        limit: usize,
    },
    /// Too many calls are in flight; nothing was sent.
    #[error("upstream {upstream:?} already has {limit} calls in flight; try again later")]
    Busy {
        /// The upstream's name.
        upstream: Arc<str>,
        /// The bound.
        limit: usize,
    },
    /// The upstream answered with an HTTP status that carries no JSON-RPC answer.
    #[error("upstream {upstream:?} answered with HTTP status {status}{hint}")]
    Status {
        /// The upstream's name.
        upstream: Arc<str>,
        /// HTTP status code.
        status: u16,
        /// What to do about it, or empty.
        hint: &'static str,
    },
    /// The answer is not a JSON-RPC answer.
    #[error("upstream {upstream:?} sent an answer that is not valid JSON-RPC: {detail}")]
    Protocol {
        /// The upstream's name.
        upstream: Arc<str>,
        /// What is wrong with it.
        detail: String,
    },
}

impl UpstreamError {
    /// Whether the upstream may have seen the call, so that it may have taken effect.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Refused { .. } | Self::Busy { .. } => false,
            Self::TooLarge { what, .. } => *what != REQUEST,
            Self::Lost { .. }
            | Self::Cancelled { .. }
            | Self::Timeout { .. }
            | Self::Status { .. }
            | Self::Protocol { .. } => true,
        }
    }
}

/// `what` of [`UpstreamError::TooLarge`] for what was not sent.
pub(super) const REQUEST: &str = "the request";
/// `what` of [`UpstreamError::TooLarge`] for what came back.
pub(super) const ANSWER: &str = "the answer";
