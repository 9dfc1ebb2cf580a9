//! A connection to an upstream, whichever transport it uses.

use std::convert::Infallible;
use std::sync::Arc;

use http::HeaderValue;
use tokio::sync::Notify;

use super::duplex::DuplexLink;
use super::envelope::Answer;
use super::failure::Failure;
use super::http::HttpLink;
use super::session::{Session, Wire};
use crate::upstream::UpstreamRequest;

/// A connection to an upstream, whichever transport it uses.
#[derive(Clone, Debug)]
pub(super) enum Link {
    Duplex(Arc<DuplexLink>),
    Http(Arc<HttpLink>),
}

/// The answer to a request of our own.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) answer: Answer,
    /// `Mcp-Session-Id` of the response.
    pub(super) session_id: Option<HeaderValue>,
}

impl Link {
    /// Sends a request of our own with raw `params`, without a bound of time.
    pub(super) async fn request(&self, wire: &Wire, method: &str, params: &[u8]) -> Result<Reply, Failure> {
        match self {
            Self::Duplex(link) => link.request(method, params).await,
            Self::Http(link) => link.request(wire, method, params).await,
        }
    }

    /// Sends a notification.
    pub(super) async fn notify(&self, wire: &Wire, message: Vec<u8>) -> Result<(), Failure> {
        match self {
            Self::Duplex(link) => link.send(message).await,
            Self::Http(link) => link.notify(wire, message).await,
        }
    }

    /// Forwards a call. Dropping the future tells the upstream to cancel it.
    pub(super) async fn call(
        session: &Session,
        request: &UpstreamRequest,
        forwards_identity: bool,
    ) -> Result<Answer, Failure> {
        match &session.link {
            Self::Duplex(link) => {
                link.call(&session.opened.wire.dialect, request, forwards_identity)
                    .await
            }
            Self::Http(link) => link.call(session, request, forwards_identity).await,
        }
    }

    /// Wakes when the upstream says that one of its lists changed, or when they may have.
    pub(super) fn changed(&self) -> &Notify {
        match self {
            Self::Duplex(link) => &link.changed,
            Self::Http(link) => &link.changed,
        }
    }

    /// Waits until the connection has ended, and says why.
    pub(super) async fn ended(&self) -> String {
        match self {
            Self::Duplex(link) => link.ended().await,
            Self::Http(link) => link.ended().await,
        }
    }

    /// The number of a session that the upstream no longer knows, as it becomes known.
    pub(super) async fn expired(&self) -> u64 {
        match self {
            Self::Duplex(_) => std::future::pending().await,
            Self::Http(link) => link.expired().await,
        }
    }

    /// Listens for changes for as long as it is polled.
    pub(super) async fn listen(session: &Session) -> Infallible {
        if !session.opened.has_news() {
            return std::future::pending().await;
        }
        match &session.link {
            Self::Duplex(link) => link.listen(session).await,
            Self::Http(link) => link.listen(session).await,
        }
    }

    /// Waits until what the upstream says outside requests is heard, where it is legacy and has news.
    pub(super) async fn listens(&self) {
        match self {
            Self::Duplex(_) => {}
            Self::Http(link) => link.listens().await,
        }
    }

    /// Ends the connection without waiting for its end.
    pub(super) fn give_up(&self) {
        match self {
            Self::Duplex(link) => link.give_up(),
            Self::Http(link) => link.give_up(),
        }
    }

    /// Ends the connection, and waits until it is gone.
    pub(super) async fn close(&self, wire: Option<&Wire>) {
        match self {
            Self::Duplex(link) => link.close().await,
            Self::Http(link) => link.close(wire).await,
        }
    }
}
