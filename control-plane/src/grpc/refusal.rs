//! Refusals as gRPC statuses, with their code from the closed list in the status details.

use prost::Message as _;
use proto::v1::Refusal;
use tonic::{Code, Status};

/// The closed list of `Refusal.code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    StaleEpoch,
    Revoked,
    OutOfScope,
    SlowReceiver,
    GenerationChanged,
    VersionUnsupported,
    Stopped,
    TooManyPending,
    DeniedByPolicy,
    AlreadyClaimed,
    Expired,
    NotFound,
    Draining,
}

impl Refused {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::StaleEpoch => "stale_epoch",
            Self::Revoked => "revoked",
            Self::OutOfScope => "out_of_scope",
            Self::SlowReceiver => "slow_receiver",
            Self::GenerationChanged => "generation_changed",
            Self::VersionUnsupported => "version_unsupported",
            Self::Stopped => "stopped",
            Self::TooManyPending => "too_many_pending",
            Self::DeniedByPolicy => "denied_by_policy",
            Self::AlreadyClaimed => "already_claimed",
            Self::Expired => "expired",
            Self::NotFound => "not_found",
            Self::Draining => "draining",
        }
    }

    fn grpc(self) -> Code {
        match self {
            Self::StaleEpoch | Self::GenerationChanged => Code::Aborted,
            Self::Revoked | Self::OutOfScope => Code::PermissionDenied,
            Self::SlowReceiver | Self::TooManyPending => Code::ResourceExhausted,
            Self::VersionUnsupported => Code::FailedPrecondition,
            Self::Stopped | Self::DeniedByPolicy | Self::AlreadyClaimed | Self::Expired => {
                Code::FailedPrecondition
            }
            Self::NotFound => Code::NotFound,
            Self::Draining => Code::Unavailable,
        }
    }

    /// The message form, for answers that carry refusals in their body.
    pub(crate) fn body(self, message: impl Into<String>) -> Refusal {
        Refusal {
            code: self.code().to_owned(),
            message: message.into(),
        }
    }

    /// The status form.
    pub(crate) fn status(self, message: impl Into<String>) -> Status {
        let body = self.body(message);
        let details = body.encode_to_vec().into();
        Status::with_details(self.grpc(), body.message, details)
    }
}
