//! What an upstream says that answers no request.

use bytes::Bytes;

/// A notification that agents may want to hear of, with its raw `params`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// `notifications/resources/updated`
    ResourceUpdated(Bytes),
    /// `notifications/message`
    Log(Bytes),
}

impl Notice {
    /// The notification of this method, where agents may want to hear of it.
    pub(super) fn of(method: &str, params: &Bytes) -> Option<Self> {
        match method {
            "notifications/resources/updated" => Some(Self::ResourceUpdated(params.clone())),
            "notifications/message" => Some(Self::Log(params.clone())),
            _ => None,
        }
    }
}

/// Notifications that wait for a slow reader; it misses more.
pub(super) const ROOM: usize = 256;
