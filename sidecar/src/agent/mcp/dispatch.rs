//! Which part serves a request, by its era and its method.

use tokio::sync::oneshot;

use super::call_stream::Opening;
use super::serve::{Answer, Exchange};
use super::{call, legacy, list, modern, request, rounds, stream, subscribe, tasks};
use crate::registry::Listed;

/// Serves a modern request that takes the gate.
pub(super) async fn governed(
    exchange: &Exchange<'_>,
    method: &str,
    open: Option<oneshot::Sender<Opening>>,
) -> Answer {
    match method {
        "tools/call" => call::call(exchange, open).await,
        _ => Box::pin(of_both_eras(exchange, method, open)).await,
    }
}

/// Serves a modern request.
pub(super) async fn modern(
    exchange: &Exchange<'_>,
    method: &str,
    open: Option<oneshot::Sender<Opening>>,
) -> Answer {
    if let Err(error) = modern::check(exchange.headers, method, exchange.params) {
        return exchange.error(&error);
    }
    match method {
        "server/discover" => exchange.result(&modern::discovery(exchange.state.gate.registry())),
        "tools/call" | "prompts/get" | "resources/read" if rounds::concerns(exchange, method) => {
            Box::pin(rounds::serve(exchange, method, open)).await
        }
        "tools/call" => call::call(exchange, open).await,
        "subscriptions/listen" => Box::pin(stream::listen(exchange)).await,
        _ => Box::pin(of_both_eras(exchange, method, open)).await,
    }
}

/// Serves a request of an earlier revision.
pub(super) async fn legacy(
    exchange: Exchange<'_>,
    method: &str,
    open: Option<oneshot::Sender<Opening>>,
) -> Answer {
    if method == "initialize" {
        return legacy::initialize(&exchange);
    }
    if let Err(error) = legacy::check_version(exchange.headers) {
        return exchange.error(&error);
    }
    let session = match legacy::session(exchange.state, exchange.headers, exchange.identity) {
        Ok(session) => session,
        Err(error) => return exchange.error(&error),
    };
    let _in_use = session.as_ref().map(|session| {
        exchange
            .state
            .sessions
            .call(session, exchange.id, exchange.cancel)
    });
    let exchange = Exchange {
        session: session.as_ref(),
        ..exchange
    };
    let registry = exchange.state.gate.registry();
    match method {
        "ping" => exchange.result(b"{}"),
        "resources/subscribe" | "resources/unsubscribe"
            if registry.is_offered(|offers| offers.subscriptions) =>
        {
            Box::pin(subscribe::resource(&exchange, method)).await
        }
        "logging/setLevel" if registry.is_offered(|offers| offers.logging) => {
            Box::pin(subscribe::set_level(&exchange)).await
        }
        "tools/call" => call::call(&exchange, open).await,
        _ => Box::pin(of_both_eras(&exchange, method, open)).await,
    }
}

/// Everything that is asked for in the same words in both eras, but for calls of tools.
async fn of_both_eras(
    exchange: &Exchange<'_>,
    method: &str,
    open: Option<oneshot::Sender<Opening>>,
) -> Answer {
    if tasks::concerns(method) {
        return tasks::serve(exchange, method, open).await;
    }
    let registry = exchange.state.gate.registry();
    let listed = match method {
        "tools/list" => return list::list(exchange, Listed::Tools),
        "resources/list" => Some(Listed::Resources),
        "resources/templates/list" => Some(Listed::Templates),
        "prompts/list" => Some(Listed::Prompts),
        _ => None,
    };
    let is_offered = match method {
        "resources/list" | "resources/templates/list" | "resources/read" => {
            registry.is_offered(|offers| offers.resources)
        }
        "prompts/list" | "prompts/get" => registry.is_offered(|offers| offers.prompts),
        "completion/complete" => registry.is_offered(|offers| offers.completions),
        _ => true,
    };
    match (method, listed) {
        _ if !is_offered => exchange.no_method(method),
        (_, Some(listed)) => list::list(exchange, listed),
        ("resources/read", None) => request::read_resource(exchange, open).await,
        ("prompts/get", None) => request::get_prompt(exchange, open).await,
        ("completion/complete", None) => request::complete(exchange, open).await,
        (_, None) => request::other(exchange, method, open).await,
    }
}
