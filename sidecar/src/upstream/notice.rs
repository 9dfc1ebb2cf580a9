//! What an upstream says that answers no request.

use std::sync::Arc;

use bytes::Bytes;

/// A notification that agents may want to hear of, with its raw `params`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// `notifications/resources/updated`
    ResourceUpdated(Bytes),
    /// `notifications/message`
    Log(Bytes),
    /// Any other: it is for the one agent whose request or session it belongs to.
    Other {
        /// The method.
        method: Arc<str>,
        /// Its params; empty where there are none.
        params: Bytes,
    },
}

impl Notice {
    /// The notification of this method, where agents may want to hear of it.
    pub(super) fn of(method: &str, params: &Bytes) -> Option<Self> {
        match method {
            "notifications/resources/updated" => Some(Self::ResourceUpdated(params.clone())),
            "notifications/message" => Some(Self::Log(params.clone())),
            // What is between an upstream and the sidecar.
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/progress"
            | "notifications/cancelled"
            | "notifications/initialized"
            | "notifications/subscriptions/acknowledged" => None,
            other => Some(Self::Other {
                method: other.into(),
                params: params.clone(),
            }),
        }
    }
}

/// Notifications that wait for a slow reader; it misses more.
pub(super) const ROOM: usize = 256;
