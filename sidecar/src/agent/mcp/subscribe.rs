//! What a client wants to be told of: changes of resources, and log messages.

use std::sync::Arc;

use bytes::Bytes;
use tools::id::UpstreamName;

use super::error::ProtocolError;
use super::hub::Listener;
use super::logs::{SET_LEVEL, Wish};
use super::mailbox::Mailbox;
use super::params;
use super::request::{self, Asked};
use super::route::{self, Route};
use super::serve::{Answer, Exchange};
use crate::gate::End;
use crate::upstream::{AnswerKind, LogLevel};

const NOTHING: &[u8] = b"{}";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";

/// The mailbox of the exchange's session.
fn mailbox(exchange: &Exchange<'_>) -> Result<Arc<Mailbox>, ProtocolError> {
    exchange.session.map(|session| session.mailbox()).ok_or_else(|| {
        ProtocolError::invalid_request(
            "there is nowhere to tell of it without a session; send initialize first",
        )
    })
}

/// `resources/subscribe` and `resources/unsubscribe` of a legacy session.
pub(super) async fn resource(exchange: &Exchange<'_>, method: &str) -> Answer {
    let Some(uri) = request::text(exchange.params, "uri") else {
        return exchange.error(&ProtocolError::invalid_params("params.uri must be a string"));
    };
    let mailbox = match mailbox(exchange) {
        Ok(mailbox) => mailbox,
        Err(error) => return exchange.error(&error),
    };
    if method == UNSUBSCRIBE {
        return unsubscribe(exchange, &uri, &mailbox).await;
    }
    let (answer, _) = subscribe(exchange, &uri, &mailbox, None).await;
    answer
}

/// Subscribes a client to a resource, if the gate lets it. Whether it did.
pub(super) async fn subscribe(
    exchange: &Exchange<'_>,
    uri: &str,
    mailbox: &Arc<Mailbox>,
    subscription: Option<Arc<str>>,
) -> (Answer, bool) {
    let hub = &exchange.state.hub;
    if hub.is_full(mailbox) {
        let error = ProtocolError::invalid_params("this client has too many subscriptions; end some first");
        return (exchange.error(&error), false);
    }
    let route = route::resource(exchange.state, uri);
    let mut asked = asked(exchange, SUBSCRIBE, uri, route.as_ref());
    if let Some(route) = &route
        && is_shared(exchange, &route.upstream)
        && hub.is_heard_by_others(route.upstream.as_str(), &route.own, mailbox)
    {
        asked.answer = Some(Bytes::from_static(NOTHING));
    }
    let report = request::decide(exchange, None, &asked).await;
    let is_allowed = is_result(&report.end);
    if let (true, Some(route), Some(subject)) = (is_allowed, &route, &asked.subject) {
        let listener = Listener {
            mailbox: Arc::downgrade(mailbox),
            identity: exchange.identity.clone(),
            subject: Arc::clone(subject),
            subscription,
        };
        hub.subscribe(route.upstream.as_str(), &route.own, uri, listener);
    }
    (request::render(exchange, &report, &asked), is_allowed)
}

async fn unsubscribe(exchange: &Exchange<'_>, uri: &str, mailbox: &Arc<Mailbox>) -> Answer {
    let hub = &exchange.state.hub;
    let route = route::resource(exchange.state, uri);
    let mut asked = asked(exchange, UNSUBSCRIBE, uri, route.as_ref());
    if let Some(route) = &route {
        // The client hears nothing more, whatever the upstream says.
        hub.unsubscribe(route.upstream.as_str(), &route.own, mailbox);
        if is_shared(exchange, &route.upstream)
            && hub.is_heard_by_others(route.upstream.as_str(), &route.own, mailbox)
        {
            asked.answer = Some(Bytes::from_static(NOTHING));
        }
    }
    let report = request::decide(exchange, None, &asked).await;
    request::render(exchange, &report, &asked)
}

fn asked(exchange: &Exchange<'_>, method: &str, uri: &str, route: Option<&Route>) -> Asked {
    let own = route.map_or(uri, |route| route.own.as_str());
    let params = [b"{\"uri\":", params::quoted(own).as_slice(), b"}"].concat();
    let subject = route.and_then(|route| request::method_of(exchange, route, method));
    Asked {
        // Without a session, changes come over the connection that all share.
        is_for_all: exchange.session.is_none(),
        ..Asked::method(method, subject, params)
    }
}

/// Whether other clients hear what this one subscribes to.
fn is_shared(exchange: &Exchange<'_>, upstream: &UpstreamName) -> bool {
    let upstream = exchange.state.gate.upstreams().get(upstream.as_str());
    exchange.session.is_none() || upstream.is_none_or(|upstream| upstream.is_shared())
}

fn is_result(end: &End) -> bool {
    matches!(end, End::Answered(answer) if answer.kind == AnswerKind::Result)
}

/// `logging/setLevel` of a legacy session: for every upstream that logs and that the gate lets it ask.
pub(super) async fn set_level(exchange: &Exchange<'_>) -> Answer {
    let level = request::text(exchange.params, "level").and_then(|name| LogLevel::parse(&name));
    let Some(level) = level else {
        return exchange.error(&ProtocolError::invalid_params(
            "params.level must be one of debug, info, notice, warning, error, critical, alert, emergency",
        ));
    };
    let mailbox = match mailbox(exchange) {
        Ok(mailbox) => mailbox,
        Err(error) => return exchange.error(&error),
    };
    let upstreams = exchange
        .state
        .gate
        .registry()
        .upstreams_with(|offers| offers.logging);
    let mut refused = None;
    let mut is_set = false;
    for upstream in upstreams {
        match set_level_at(exchange, upstream, level, &mailbox).await {
            Ok(()) => is_set = true,
            Err(answer) => refused = Some(answer),
        }
    }
    match refused {
        _ if is_set => exchange.result(NOTHING),
        Some(refused) => refused,
        None => exchange.no_method(SET_LEVEL),
    }
}

async fn set_level_at(
    exchange: &Exchange<'_>,
    upstream: UpstreamName,
    level: LogLevel,
    mailbox: &Arc<Mailbox>,
) -> Result<(), Answer> {
    let hub = &exchange.state.hub;
    let wanted = if is_shared(exchange, &upstream) {
        hub.wanted_level(upstream.as_str(), level, mailbox)
    } else {
        level
    };
    let route = Route {
        upstream,
        own: String::new(),
    };
    let subject = request::method_of(exchange, &route, SET_LEVEL);
    let asked = Asked::method(
        SET_LEVEL,
        subject,
        format!("{{\"level\":\"{}\"}}", wanted.as_str()).into_bytes(),
    );
    let report = request::decide(exchange, None, &asked).await;
    match &asked.subject {
        Some(subject) if is_result(&report.end) => {
            let listener = Listener {
                mailbox: Arc::downgrade(mailbox),
                identity: exchange.identity.clone(),
                subject: Arc::clone(subject),
                subscription: None,
            };
            let wish = Wish {
                level,
                identity: exchange.identity.clone(),
            };
            if let Some(session) = exchange.session {
                session.logs().set(route.upstream.as_str(), wish);
            }
            hub.log_to(route.upstream.as_str(), level, listener);
            Ok(())
        }
        Some(_) | None => Err(request::render(exchange, &report, &asked)),
    }
}
