//! Why an outbound request brought nothing.

use std::time::Duration;

use super::address::AddressClass;

/// Why an outbound request brought nothing. Messages name hosts, never paths, queries or headers: those may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The URL is none that is requested.
    #[error("the URL cannot be requested: {0}")]
    Url(&'static str),
    /// The host is one that this kind of URL must not reach.
    #[error("{host} is {class}, which {why}")]
    Forbidden {
        /// The host, as the URL names it.
        host: String,
        /// What it is.
        class: AddressClass,
        /// Why that is refused.
        why: &'static str,
    },
    /// The host's name has no address.
    #[error("the name {host} cannot be resolved: {problem}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        problem: String,
    },
    /// The server redirects to another origin.
    #[error("{from} redirects to another origin, {to}, which is refused; correct the URL")]
    CrossOrigin {
        /// Who redirects.
        from: String,
        /// Where to.
        to: String,
    },
    /// The server redirects from https to http.
    #[error("{from} redirects to an unencrypted address, which is refused; correct the URL")]
    Downgrade {
        /// Who redirects.
        from: String,
    },
    /// The server redirects again and again, or to nowhere.
    #[error("{host} redirects more than {limit} times, or to nowhere; correct the URL")]
    Redirects {
        /// The host that was asked last.
        host: String,
        /// How often it may.
        limit: usize,
    },
    /// The answer is larger than what is read.
    #[error("the answer of {host} is larger than {limit} bytes")]
    TooLarge {
        /// Who answers.
        host: String,
        /// What is read.
        limit: usize,
    },
    /// There was no whole answer in time.
    #[error("{host} did not answer within {patience:?}")]
    Timeout {
        /// Who was asked.
        host: String,
        /// How long was waited.
        patience: Duration,
    },
    /// The connection cannot be made, or broke.
    #[error("the request to {host} failed: {problem}")]
    Failed {
        /// Who was asked.
        host: String,
        /// What happened, in the words of the innermost cause.
        problem: String,
    },
    /// The client cannot be set up.
    #[error("outbound requests cannot be set up: {0}")]
    Setup(String),
}
