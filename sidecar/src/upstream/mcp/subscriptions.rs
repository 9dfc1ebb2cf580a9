//! The resources of an upstream that agents want to hear of: asked for once, whoever and how many want to, and again in each
//! session with the upstream.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::timeout;

use super::envelope::Answer;
use super::session::Session;
use super::upstream::McpUpstream;
use super::{Era, message, scan};
use crate::upstream::{AnswerKind, UpstreamRequest};

const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// What a request changes about the subscriptions: the URI, and whether it is one from now on.
fn change(request: &UpstreamRequest) -> Option<(String, bool)> {
    let is_wanted = match request.method.as_deref()? {
        SUBSCRIBE => true,
        UNSUBSCRIBE => false,
        _ => return None,
    };
    let uri = scan::member(request.extra.as_deref()?, "uri")?;
    Some((serde_json::from_slice(uri).ok()?, is_wanted))
}

impl McpUpstream {
    /// A modern upstream has no requests to subscribe: what is wanted is part of the stream that listens.
    pub(super) fn subscribed_without_request(
        &self,
        session: &Session,
        request: &UpstreamRequest,
    ) -> Option<Answer> {
        let is_change = matches!(request.method.as_deref(), Some(SUBSCRIBE | UNSUBSCRIBE));
        if !is_change || session.opened.wire.dialect.era == Era::Legacy {
            return None;
        }
        if !session.opened.offers.subscriptions {
            let error = r#"{"code":-32601,"message":"the upstream does not say when its resources change"}"#;
            return Some(Answer {
                kind: AnswerKind::Error,
                raw: Bytes::from_static(error.as_bytes()),
            });
        }
        self.note_subscription(request);
        Some(Answer {
            kind: AnswerKind::Result,
            raw: Bytes::from_static(b"{}"),
        })
    }

    /// Remembers what an answered request changed.
    pub(super) fn note_subscription(&self, request: &UpstreamRequest) {
        if let Some((uri, is_wanted)) = change(request) {
            self.note(uri, is_wanted);
        }
    }

    fn note(&self, uri: String, is_wanted: bool) -> bool {
        self.subscribed.send_if_modified(|subscribed| {
            if subscribed.contains(&uri) == is_wanted {
                return false;
            }
            let subscribed = Arc::make_mut(subscribed);
            if is_wanted {
                subscribed.insert(uri);
            } else {
                subscribed.remove(&uri);
            }
            true
        })
    }

    /// Subscribes again in a new session of a legacy upstream.
    pub(super) async fn subscribe_again(&self, session: &Session) {
        let subscribed = Arc::clone(&self.subscribed.borrow());
        for uri in subscribed.iter() {
            self.tell(session, SUBSCRIBE, uri).await;
        }
    }

    /// Nobody wants to hear of the resource any more.
    pub(in crate::upstream) fn forget(self: &Arc<Self>, uri: &str) {
        if !self.note(uri.to_owned(), false) {
            return;
        }
        let Some(session) = self.sessions.borrow().clone() else {
            return;
        };
        let (upstream, uri) = (Arc::clone(self), uri.to_owned());
        self.tasks
            .spawn(async move { upstream.tell(&session, UNSUBSCRIBE, &uri).await });
    }

    async fn tell(&self, session: &Session, method: &str, uri: &str) {
        let wire = &session.opened.wire;
        if wire.dialect.era == Era::Modern {
            return;
        }
        let members = format!("\"uri\":{}", serde_json::Value::from(uri));
        let params = message::params(&wire.dialect, members.as_bytes());
        let asking = session.link.request(wire, method, &params);
        let bound = self.spec.limits.handshake_timeout;
        match timeout(bound, asking).await {
            Ok(Ok(reply)) if reply.answer.kind == AnswerKind::Result => {}
            outcome => {
                let failure = match outcome {
                    Ok(Err(failure)) => failure.to_string(),
                    Ok(Ok(_)) | Err(_) => "it does not take it".to_owned(),
                };
                tracing::warn!(upstream = %self.name(), method, "a subscription was not renewed or ended: {failure}");
            }
        }
    }
}
