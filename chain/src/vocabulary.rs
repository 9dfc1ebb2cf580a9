//! The closed lists that a record's header uses.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! closed_list {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The value as records write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The value that records write so.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

closed_list!(
    /// What a record is about.
    RecordKind {
        /// A call of a tool.
        Call = "call",
        /// A question before a call (`POST /decide`): nothing was run.
        Decision = "decision",
        /// A governance act; its `tool` names it (`mesh.policy_edit`).
        Act = "act",
    }
);

closed_list!(
    /// How sure it is who the agent was.
    IdentityStrength {
        /// A JWT, a service-account token, mTLS.
        Verified = "verified",
        /// Fixed at launch.
        Bound = "bound",
        /// Claimed in plain text.
        Asserted = "asserted",
        /// No credential.
        Anonymous = "anonymous",
    }
);

closed_list!(
    /// What was decided, from mild to strict.
    Action {
        /// The call may run.
        Allow = "allow",
        /// A person is asked.
        HumanApproval = "human_approval",
        /// The call does not run.
        Deny = "deny",
    }
);

closed_list!(
    /// How the recorded thing ended.
    Outcome {
        /// The call ran, or the act was done.
        Ok = "ok",
        /// The call ran and answered with an error, or could not be run to its end.
        Error = "error",
        /// The call was not run.
        Denied = "denied",
        /// The upstream did not answer in time.
        Timeout = "timeout",
        /// The agent, or a stop, ended the call.
        Cancelled = "cancelled",
        /// A crash cut the call off; whether it ran is not known.
        Interrupted = "interrupted",
        /// Only a decision was asked for.
        Decided = "decided",
    }
);

closed_list!(
    /// Why a call was refused, or how it failed.
    Reason {
        /// An emergency stop holds.
        Stopped = "stopped",
        /// The view of the fleet is too old for this call.
        Stale = "stale",
        /// There is no snapshot or lease.
        NoLease = "no_lease",
        /// No such tool, or a hidden one.
        UnknownTool = "unknown_tool",
        /// No rule allows it.
        NoRule = "no_rule",
        /// A rule denies it.
        Policy = "policy",
        /// A policy of the agent cannot be read.
        InvalidPolicy = "invalid_policy",
        /// A condition could not be decided.
        Undecided = "undecided",
        /// A guardrail denies it.
        Guardrail = "guardrail",
        /// The tool's pin is new or changed.
        Pin = "pin",
        /// A CLI dispatcher's floor denies it.
        Dispatcher = "dispatcher",
        /// A window or a total is used up.
        RateLimited = "rate_limited",
        /// The same call came too often.
        LoopDetected = "loop_detected",
        /// An object of the message has a key twice.
        DuplicateKeys = "duplicate_keys",
        /// The message or its arguments are too large or nested too deep.
        TooLarge = "too_large",
        /// The message cannot be read.
        Malformed = "malformed",
        /// The arguments do not fit the tool's schema.
        InvalidArguments = "invalid_arguments",
        /// The caller is not authenticated.
        Unauthenticated = "unauthenticated",
        /// The caller may not act as this agent.
        Forbidden = "forbidden",
        /// A person is asked, and the caller was told to come back.
        ApprovalPending = "approval_pending",
        /// A person denied it.
        ApprovalDenied = "approval_denied",
        /// Nobody answered in time.
        ApprovalTimeout = "approval_timeout",
        /// The question was withdrawn.
        ApprovalCancelled = "approval_cancelled",
        /// The approval was not used in time.
        ApprovalExpired = "approval_expired",
        /// The approval was already used.
        ApprovalConsumed = "approval_consumed",
        /// Approvals cannot be asked for.
        ApprovalUnavailable = "approval_unavailable",
        /// The record cannot be kept.
        AuditUnavailable = "audit_unavailable",
        /// The upstream cannot be reached.
        UpstreamUnavailable = "upstream_unavailable",
        /// The upstream answered with an error.
        UpstreamError = "upstream_error",
        /// The upstream did not answer in time.
        UpstreamTimeout = "upstream_timeout",
        /// The agent withdrew the call or went away.
        ClientCancelled = "client_cancelled",
        /// This process is ending.
        ShuttingDown = "shutting_down",
        /// A crash cut it off.
        Crash = "crash",
        /// Something inside failed.
        Internal = "internal",
    }
);
