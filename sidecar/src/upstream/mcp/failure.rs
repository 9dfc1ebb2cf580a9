//! Why an exchange with an upstream did not end in an answer.

use std::sync::Arc;
use std::time::Duration;

use crate::upstream::UpstreamError;
use crate::upstream::error::{ANSWER, REQUEST};

/// Why an exchange with an upstream did not end in an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// Nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The connection ended before the answer.
    #[error("{0}")]
    Lost(String),
    /// The upstream no longer knows our session.
    #[error("it no longer knows our session")]
    SessionExpired,
    #[error("{0} calls are in flight already")]
    Busy(usize),
    #[error("the request is larger than {0} bytes")]
    RequestTooLarge(usize),
    #[error("its answer is larger than {0} bytes")]
    AnswerTooLarge(usize),
    #[error("it answered with HTTP status {0}{hint}", hint = status_hint(*.0))]
    Status(u16),
    #[error("{0}")]
    Protocol(String),
    #[error("it gave no answer within {0:?}")]
    Timeout(Duration),
}

impl Failure {
    /// The same, told to the caller of `upstream`.
    pub(super) fn of(self, upstream: &Arc<str>) -> UpstreamError {
        let upstream = Arc::clone(upstream);
        match self {
            Self::Unreachable(detail) => UpstreamError::Unavailable { upstream, detail },
            Self::Lost(detail) => UpstreamError::Lost { upstream, detail },
            Self::SessionExpired => UpstreamError::Unavailable {
                upstream,
                detail: "it no longer knows our session".to_owned(),
            },
            Self::Busy(limit) => UpstreamError::Busy { upstream, limit },
            Self::RequestTooLarge(limit) => UpstreamError::TooLarge {
                upstream,
                what: REQUEST,
                limit,
            },
            Self::AnswerTooLarge(limit) => UpstreamError::TooLarge {
                upstream,
                what: ANSWER,
                limit,
            },
            Self::Status(status) => UpstreamError::Status {
                upstream,
                status,
                hint: status_hint(status),
            },
            Self::Protocol(detail) => UpstreamError::Protocol { upstream, detail },
            Self::Timeout(after) => UpstreamError::Timeout { upstream, after },
        }
    }
}

fn status_hint(status: u16) -> &'static str {
    match status {
        401 | 403 => "; check the credentials in its headers",
        404 | 405 => "; check its url",
        429 => "; it limits the rate of requests",
        _ => "",
    }
}
