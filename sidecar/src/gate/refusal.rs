//! Why a call does not run.

use std::fmt;
use std::time::Duration;

use chain::vocabulary::Reason;

/// A call that does not run: the reason from the closed list of records, and words for people and models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// What was refused and why.
    pub message: String,
    /// When asking again can succeed.
    pub retry_after: Option<Duration>,
    /// Whether the caller is answered as if the tool did not exist.
    pub is_hidden: bool,
}

impl Refusal {
    /// A refusal.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            retry_after: None,
            is_hidden: false,
        }
    }

    /// Says when asking again can succeed.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Answers as if the tool did not exist.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// The status of the answer over HTTP.
    pub fn status(&self) -> http::StatusCode {
        use http::StatusCode;
        if self.is_hidden {
            return StatusCode::NOT_FOUND;
        }
        match self.reason {
            Reason::UnknownTool => StatusCode::NOT_FOUND,
            Reason::RateLimited | Reason::LoopDetected => StatusCode::TOO_MANY_REQUESTS,
            Reason::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Reason::DuplicateKeys | Reason::Malformed | Reason::InvalidArguments => StatusCode::BAD_REQUEST,
            Reason::Unauthenticated => StatusCode::UNAUTHORIZED,
            Reason::ApprovalTimeout => StatusCode::REQUEST_TIMEOUT,
            Reason::ApprovalPending => StatusCode::ACCEPTED,
            Reason::Stale
            | Reason::NoLease
            | Reason::AuditUnavailable
            | Reason::ApprovalUnavailable
            | Reason::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
            Reason::UpstreamUnavailable | Reason::UpstreamError => StatusCode::BAD_GATEWAY,
            Reason::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
            Reason::Stopped
            | Reason::NoRule
            | Reason::Policy
            | Reason::InvalidPolicy
            | Reason::Undecided
            | Reason::Guardrail
            | Reason::Pin
            | Reason::Dispatcher
            | Reason::Forbidden
            | Reason::ApprovalDenied
            | Reason::ApprovalCancelled
            | Reason::ApprovalExpired
            | Reason::ApprovalConsumed
            | Reason::ClientCancelled => StatusCode::FORBIDDEN,
            Reason::Crash | Reason::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What the caller can do about it, in words for a model.
    pub fn advice(&self) -> &'static str {
        match self.reason {
            Reason::Stopped => {
                "An operator has stopped this. Do not retry before it is resumed; tell the user."
            }
            Reason::Stale | Reason::NoLease => {
                "The sidecar has no fresh word from its control plane. Retry later; reads come back first."
            }
            Reason::UnknownTool => "List the tools again and use a name from that list.",
            Reason::NoRule
            | Reason::Policy
            | Reason::Guardrail
            | Reason::Pin
            | Reason::Dispatcher
            | Reason::Undecided
            | Reason::Forbidden => {
                "Do not retry the same call. Use another tool or other arguments, or ask the user to have the policy changed."
            }
            Reason::InvalidPolicy => {
                "A policy for this agent cannot be read. Tell the user that it has to be mended."
            }
            Reason::RateLimited => "Wait before the next call.",
            Reason::LoopDetected => {
                "The same call was made too often. Do something else, or wait ten seconds."
            }
            Reason::DuplicateKeys | Reason::TooLarge | Reason::Malformed | Reason::InvalidArguments => {
                "Mend the arguments and call again."
            }
            Reason::Unauthenticated => "Send a credential.",
            Reason::ApprovalPending => {
                "A person is asked. Make exactly the same call again later to get its outcome."
            }
            Reason::ApprovalDenied => {
                "A person has refused this call. Do not retry it; ask the user what to do instead."
            }
            Reason::ApprovalTimeout => "Nobody answered in time. Make the call again to ask once more.",
            Reason::ApprovalCancelled | Reason::ApprovalExpired | Reason::ApprovalConsumed => {
                "The approval no longer holds. Make the call again to ask once more."
            }
            Reason::ApprovalUnavailable => "Nobody can be asked at the moment. Retry later.",
            Reason::AuditUnavailable => {
                "Calls cannot be recorded at the moment, so none are made. Retry later; tell the user."
            }
            Reason::UpstreamUnavailable | Reason::UpstreamError | Reason::UpstreamTimeout => {
                "The tool's server did not answer. Retry later."
            }
            Reason::ClientCancelled | Reason::ShuttingDown | Reason::Crash | Reason::Internal => {
                "Retry later."
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
