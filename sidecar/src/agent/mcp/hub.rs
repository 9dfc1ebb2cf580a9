//! Who hears what of an upstream's notifications: changes of a resource go to those who subscribed to it, log messages to
//! those who asked for them, and to nobody else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use tools::model::Tool;

use super::answer::notification;
use super::mailbox::Mailbox;
use super::{params, splice};
use crate::agent::sse;
use crate::gate::Gate;
use crate::identity::Identity;
use crate::upstream::mcp::scan;
use crate::upstream::{LogLevel, Notice, Upstream};

/// Subscriptions of one client.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1000;
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A client that hears of something.
#[derive(Debug, Clone)]
pub(super) struct Listener {
    pub(super) mailbox: Weak<Mailbox>,
    pub(super) identity: Identity,
    /// The method that it was allowed to ask by; it hears nothing once that is denied.
    pub(super) subject: Arc<Tool>,
    /// The id of its `subscriptions/listen`, as raw JSON, where it is modern.
    pub(super) subscription: Option<Arc<str>>,
}

#[derive(Debug)]
struct Subscriber {
    listener: Listener,
    /// What the client writes before the upstream's URI.
    prefix: String,
}

#[derive(Debug)]
struct Logger {
    listener: Listener,
    level: LogLevel,
}

#[derive(Debug, Default)]
struct Listeners {
    /// By upstream, then by the upstream's URI.
    subscribers: BTreeMap<String, BTreeMap<String, Vec<Subscriber>>>,
    loggers: BTreeMap<String, Vec<Logger>>,
}

/// Who hears what.
#[derive(Debug, Default)]
pub struct Hub {
    listeners: Mutex<Listeners>,
}

fn is_of(listener: &Listener, mailbox: &Arc<Mailbox>) -> bool {
    std::ptr::eq(listener.mailbox.as_ptr(), Arc::as_ptr(mailbox))
}

impl Hub {
    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody but this client hears of the resource.
    pub(super) fn is_heard_by_others(&self, upstream: &str, uri: &str, mailbox: &Arc<Mailbox>) -> bool {
        let listeners = self.lock();
        let subscribers = listeners.subscribers.get(upstream).and_then(|all| all.get(uri));
        subscribers.into_iter().flatten().any(|subscriber| {
            !is_of(&subscriber.listener, mailbox) && subscriber.listener.mailbox.strong_count() > 0
        })
    }

    /// Whether the client has as many subscriptions as it may have.
    pub(super) fn is_full(&self, mailbox: &Arc<Mailbox>) -> bool {
        let listeners = self.lock();
        let all = listeners
            .subscribers
            .values()
            .flat_map(BTreeMap::values)
            .flatten();
        all.filter(|subscriber| is_of(&subscriber.listener, mailbox))
            .count()
            >= MAX_SUBSCRIPTIONS
    }

    /// From now on the client hears of the resource, by the URI that it gave.
    pub(super) fn subscribe(&self, upstream: &str, uri: &str, given: &str, listener: Listener) {
        let prefix = given.strip_suffix(uri).unwrap_or_default().to_owned();
        let mut listeners = self.lock();
        let subscribers = listeners
            .subscribers
            .entry(upstream.to_owned())
            .or_default()
            .entry(uri.to_owned())
            .or_default();
        subscribers.retain(|known| !Weak::ptr_eq(&known.listener.mailbox, &listener.mailbox));
        subscribers.push(Subscriber { listener, prefix });
    }

    /// From now on the client hears nothing of the resource.
    pub(super) fn unsubscribe(&self, upstream: &str, uri: &str, mailbox: &Arc<Mailbox>) {
        let mut listeners = self.lock();
        let subscribers = listeners
            .subscribers
            .get_mut(upstream)
            .and_then(|all| all.get_mut(uri));
        if let Some(subscribers) = subscribers {
            subscribers.retain(|known| !is_of(&known.listener, mailbox));
        }
    }

    /// The level from which an upstream's log messages are wanted, when this client wants those from `level` on.
    pub(super) fn wanted_level(&self, upstream: &str, level: LogLevel, mailbox: &Arc<Mailbox>) -> LogLevel {
        let listeners = self.lock();
        let loggers = listeners.loggers.get(upstream).into_iter().flatten();
        let others = loggers
            .filter(|logger| !is_of(&logger.listener, mailbox) && logger.listener.mailbox.strong_count() > 0);
        others
            .map(|logger| logger.level)
            .min()
            .unwrap_or(level)
            .min(level)
    }

    /// From now on the client hears an upstream's log messages from this level on.
    pub(super) fn log_to(&self, upstream: &str, level: LogLevel, listener: Listener) {
        let mut listeners = self.lock();
        let loggers = listeners.loggers.entry(upstream.to_owned()).or_default();
        loggers.retain(|known| !Weak::ptr_eq(&known.listener.mailbox, &listener.mailbox));
        loggers.push(Logger { listener, level });
    }

    /// Forgets the clients that are gone. What nobody hears of any more: upstream and URI.
    pub fn sweep(&self) -> Vec<(String, String)> {
        let mut unheard = Vec::new();
        let mut listeners = self.lock();
        for loggers in listeners.loggers.values_mut() {
            loggers.retain(|logger| logger.listener.mailbox.strong_count() > 0);
        }
        for (upstream, resources) in &mut listeners.subscribers {
            resources.retain(|uri, subscribers| {
                let before = subscribers.len();
                subscribers.retain(|subscriber| subscriber.listener.mailbox.strong_count() > 0);
                if subscribers.is_empty() && before > 0 {
                    unheard.push((upstream.clone(), uri.clone()));
                }
                !subscribers.is_empty()
            });
        }
        unheard
    }

    /// Brings one notification of an upstream to those who may hear it; what came for one client alone, to `only` that one.
    pub(super) fn tell(&self, gate: &Gate, upstream: &str, notice: &Notice, only: Option<&Arc<Mailbox>>) {
        let told = match notice {
            Notice::ResourceUpdated(params) => self.of_update(upstream, params),
            Notice::Log(params) => self.of_log(upstream, params),
            Notice::Other { .. } => Vec::new(),
        };
        let concerned = told
            .into_iter()
            .filter(|(listener, _)| only.is_none_or(|only| is_of(listener, only)));
        for (listener, message) in concerned {
            if let Some(mailbox) = listener.mailbox.upgrade()
                && gate.may_ask(&listener.identity, &listener.subject)
            {
                mailbox.put(message);
            }
        }
    }

    fn of_update(&self, upstream: &str, raw: &Bytes) -> Vec<(Listener, Bytes)> {
        let uri = scan::member(raw, "uri").and_then(|raw| serde_json::from_slice::<String>(raw).ok());
        let Some(uri) = uri else {
            return Vec::new();
        };
        let listeners = self.lock();
        let Some(resources) = listeners.subscribers.get(upstream) else {
            return Vec::new();
        };
        let concerned = resources
            .iter()
            .filter(|(subscribed, _)| is_within(&uri, subscribed));
        concerned
            .flat_map(|(_, subscribers)| subscribers)
            .map(|subscriber| {
                let shown = format!("{}{uri}", subscriber.prefix);
                let params = for_client(raw, &shown, subscriber.listener.subscription.as_deref());
                let message = notification("notifications/resources/updated", Some(&params));
                (subscriber.listener.clone(), sse::event(&message))
            })
            .collect()
    }

    fn of_log(&self, upstream: &str, raw: &Bytes) -> Vec<(Listener, Bytes)> {
        let listeners = self.lock();
        let loggers = listeners.loggers.get(upstream).into_iter().flatten();
        let event = sse::event(&notification("notifications/message", Some(raw)));
        loggers
            .filter(|logger| logger.level.lets_through(raw))
            .map(|logger| (logger.listener.clone(), event.clone()))
            .collect()
    }
}

/// Whether a change of `uri` is one of `subscribed`: the same, or a part of it.
fn is_within(uri: &str, subscribed: &str) -> bool {
    uri.strip_prefix(subscribed)
        .is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with(['/', '#', '?']))
}

/// The params of an update as a client reads them: the URI is the client's, and so is the subscription.
fn for_client(raw: &[u8], shown: &str, subscription: Option<&str>) -> Vec<u8> {
    let params = splice::with_value(raw, "uri", &params::quoted(shown)).unwrap_or_else(|| raw.to_vec());
    let is_ours =
        scan::member(&params, "_meta").is_some_and(|meta| scan::member(meta, SUBSCRIPTION_ID).is_some());
    let meta = match (subscription, is_ours) {
        (Some(id), _) => format!("{{\"{SUBSCRIPTION_ID}\":{id}}}"),
        (None, true) => "{}".to_owned(),
        (None, false) => return params,
    };
    splice::with_value(&params, "_meta", meta.as_bytes())
        .or_else(|| splice::with_member(&params, "_meta", meta.as_bytes()))
        .unwrap_or(params)
}

/// Brings what an upstream tells from now on to those who hear it, for as long as the upstream is there.
pub(crate) fn follow(
    state: Arc<crate::agent::state::AgentState>,
    upstream: &Upstream,
) -> impl Future<Output = ()> + Send + use<> {
    use tokio::sync::broadcast::error::RecvError;
    let mut notices = upstream.notices();
    let name = upstream.name().to_string();
    async move {
        loop {
            match notices.recv().await {
                Ok(notice) => state.hub.tell(&state.gate, &name, &notice, None),
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(
                        upstream = name,
                        missed,
                        "it notifies faster than can be passed on"
                    );
                }
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// Forgets the clients that are gone, and ends the subscriptions that were theirs alone.
pub(crate) fn sweep(state: &crate::agent::state::AgentState) {
    for (upstream, uri) in state.hub.sweep() {
        if let Some(upstream) = state.gate.upstreams().get(&upstream) {
            upstream.forget(&uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use tools::operation::Operation;

    use crate::identity::Strength;

    use super::*;

    fn listener(mailbox: &Arc<Mailbox>, subscription: Option<&str>) -> Listener {
        let subject = Tool::request(
            &"notes".parse().unwrap(),
            Operation::Method,
            "resources/subscribe",
            None,
        );
        Listener {
            mailbox: Arc::downgrade(mailbox),
            identity: Identity {
                agent: "a".parse().unwrap(),
                strength: Strength::Asserted,
                user: None,
            },
            subject: Arc::new(subject.unwrap()),
            subscription: subscription.map(Arc::from),
        }
    }

    fn told(told: &[(Listener, Bytes)]) -> Vec<String> {
        told.iter()
            .map(|(_, event)| String::from_utf8(event.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn an_update_goes_to_those_who_subscribed_under_the_uri_that_they_gave() {
        let hub = Hub::default();
        let (one, two, other) = (Arc::default(), Arc::default(), Arc::default());
        hub.subscribe("notes", "a://b", "notes.a://b", listener(&one, None));
        hub.subscribe("notes", "a://b", "a://b", listener(&two, Some("\"s\"")));
        hub.subscribe("notes", "a://bc", "a://bc", listener(&other, None));
        let params = Bytes::from_static(br#"{"uri":"a://b", "x":1.0}"#);
        let told = told(&hub.of_update("notes", &params));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains(r#""params":{"uri":"notes.a://b", "x":1.0}"#),
            "{told:?}"
        );
        assert!(
            told[1].contains(r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"uri":"a://b""#),
            "{told:?}"
        );
        assert!(hub.of_update("other", &params).is_empty());
        assert!(hub.is_heard_by_others("notes", "a://b", &one));
        hub.unsubscribe("notes", "a://b", &two);
        assert!(!hub.is_heard_by_others("notes", "a://b", &one));
    }

    #[test]
    fn a_part_of_a_resource_is_told_to_who_subscribed_to_the_whole() {
        assert!(
            is_within("a://b/c", "a://b") && is_within("a://b/c", "a://b/") && is_within("a://b#c", "a://b")
        );
        assert!(!is_within("a://bc", "a://b") && !is_within("a://", "a://b"));
    }

    #[test]
    fn what_nobody_hears_of_any_more_is_named_once() {
        let hub = Hub::default();
        let one: Arc<Mailbox> = Arc::default();
        hub.subscribe("notes", "a://b", "a://b", listener(&one, None));
        assert!(hub.sweep().is_empty());
        drop(one);
        assert_eq!(hub.sweep(), [("notes".to_owned(), "a://b".to_owned())]);
        assert!(hub.sweep().is_empty());
    }

    #[test]
    fn log_messages_go_by_their_level() {
        let hub = Hub::default();
        let (one, two) = (Arc::default(), Arc::default());
        hub.log_to("notes", LogLevel::Warning, listener(&one, None));
        hub.log_to("notes", LogLevel::Debug, listener(&two, None));
        let count = |text: &'static str| hub.of_log("notes", &Bytes::from_static(text.as_bytes())).len();
        assert_eq!(count(r#"{"level":"info","data":1.00}"#), 1);
        assert_eq!(count(r#"{"level":"error","data":1}"#), 2);
        let wanted = |mailbox| hub.wanted_level("notes", LogLevel::Critical, mailbox);
        assert_eq!((wanted(&one), wanted(&two)), (LogLevel::Debug, LogLevel::Warning));
    }
}
