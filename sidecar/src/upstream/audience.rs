//! Who hears what an upstream says about one request before it answers.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::LogLevel;

/// Who hears what an upstream says about one request before it answers, in the order in which it is said. None of it waits: what
/// cannot be taken is dropped.
pub trait Audience: fmt::Debug + Send + Sync {
    /// Whether it asked for progress.
    fn wants_progress(&self) -> bool;

    /// How far the request is: raw params that carry the sidecar's own token;
    /// [`with_progress_token`](super::with_progress_token) puts the client's back.
    fn progressed(&self, params: &Bytes);

    /// From which level on it wants log messages of this upstream; `None`: none at all.
    fn log_level(&self, upstream: &str) -> Option<LogLevel>;

    /// A log message: raw params. It may be of any level.
    fn logged(&self, upstream: &str, params: &Bytes);

    /// The upstream closed its stream of the request and asked to be asked again after this time (2025-11-25, transports: Sending
    /// Messages to the Server). The request goes on.
    fn paused(&self, retry: Duration);
}
