//! What went wrong, as problem details.

use http::{Method, StatusCode, Uri};
use net::problem::Problem;

use crate::store::StoreError;

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::NotFound { .. } => StatusCode::NOT_FOUND,
            StoreError::Precondition { .. } => StatusCode::PRECONDITION_FAILED,
            StoreError::Ambiguous { .. }
            | StoreError::Conflict { .. }
            | StoreError::AlreadyResolved { .. }
            | StoreError::ChangesGone { .. }
            | StoreError::Hole { .. }
            | StoreError::NoOpenEpoch { .. }
            | StoreError::Fork { .. }
            | StoreError::Enrolment(_) => StatusCode::CONFLICT,
            StoreError::Unreachable { .. } | StoreError::Database { .. } => {
                tracing::error!(%error, "a request of an operator failed");
                return Self::unavailable(
                    "the database did not do it; whether anything was changed is to be looked at before trying again",
                );
            }
            StoreError::Migration { .. } | StoreError::Invalid { .. } => {
                tracing::error!(%error, "a request of an operator failed");
                return Self::internal();
            }
        };
        Self::new(status, error.to_string())
    }
}

/// Something that must not fail did.
pub(super) fn internal(error: &dyn std::fmt::Display) -> Problem {
    tracing::error!(%error, "a request of an operator failed");
    Problem::internal()
}

pub(super) async fn no_such_path(uri: Uri) -> Problem {
    Problem::not_found(format!("there is no path {}", uri.path()))
}

pub(super) async fn no_such_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{} does not take {method}", uri.path()),
    )
}
