//! Why a call does not run.

use std::fmt;
use std::time::Duration;

use chain::record::Reason;

/// A call that does not run: the reason from the closed list of records, and words for people and models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// What was refused and why.
    pub message: String,
    /// When asking again can succeed.
    pub retry_after: Option<Duration>,
    /// Whether the caller may know that the tool exists.
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

    /// What the caller can do about it.
    pub fn advice(&self) -> &'static str {
        match self.reason {
            Reason::Stopped => "An operator has stopped this. Do not retry until it is resumed; tell the user.",
            Reason::Stale | Reason::NoLease => {
                "The sidecar has lost touch with its control plane. Retry later; reads come back first."
            }
            Reason::UnknownTool => "List the tools again and use a name from that list.",
            Reason::NoRule | Reason::Policy | Reason::Pin | Reason::Undecided => {
                "Do not retry the same call. Use another tool or other arguments, or ask the user to have the policy changed."
            }
            Reason::InvalidPolicy => "A policy for this agent cannot be read. Tell the user that it has to be mended.",
            Reason::RateLimited => "Wait before the next call.",
            Reason::LoopDetected => "The same call was made too often. Do something else, or wait ten seconds.",
            Reason::DuplicateKeys | Reason::TooLarge | Reason::Malformed => "Mend the arguments and call again.",
            Reason::ApprovalDenied => "A person has refused this call. Do not retry it; ask the user what to do instead.",
            Reason::ApprovalTimeout => "Nobody answered in time. Call again to ask once more.",
            Reason::ApprovalCancelled => "The approval no longer holds. Call again to ask once more.",
            Reason::AuditUnavailable => "Calls cannot be recorded at the moment, so none are made. Retry later; tell the user.",
            _ => "Retry later.",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
