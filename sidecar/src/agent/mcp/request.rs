//! Requests that are no tool calls: through the same gate, and back in the words of the client's era.

use std::sync::Arc;

use bytes::Bytes;
use chain::vocabulary::Reason;
use serde_json::json;
use tokio::sync::oneshot;
use tools::json::{Document, Kind, Limits, Node};
use tools::model::Tool;
use tools::operation::Operation;

use super::call_stream::Opening;
use super::error::ProtocolError;
use super::params;
use super::route::{self, Route};
use super::serve::{Answer, Exchange};
use super::{call, denial, eras, line, rounds, splice, version};
use crate::agent::names::Names;
use crate::gate::{
    Arguments, CallReport, CallRequest, CancelCause, End, OtherRequest, Patience, TraceContext, Unreadable,
};
use crate::upstream::mcp::rounds::wants_input;
use crate::upstream::{AnswerKind, Era, UpstreamAnswer};

/// What a client asks for, and what of it is forwarded.
pub(super) struct Asked {
    /// How the client names it, for a refusal and its record.
    pub(super) given: String,
    /// What is governed; nothing here has it otherwise.
    pub(super) subject: Option<Arc<Tool>>,
    pub(super) operation: Operation,
    pub(super) method: Arc<str>,
    /// Raw params as they go to the upstream, without `_meta`.
    pub(super) params: Vec<u8>,
    /// Raw arguments, as policies see them.
    pub(super) arguments: Option<Vec<u8>>,
    pub(super) unreadable: Option<Unreadable>,
    /// What is answered here once the request is allowed.
    pub(super) answer: Option<Bytes>,
    /// Whether it goes over the connection that all share, whoever asks.
    pub(super) is_for_all: bool,
}

type Open = Option<oneshot::Sender<Opening>>;

/// `resources/read`
pub(super) async fn read_resource(exchange: &Exchange<'_>, open: Open) -> Answer {
    let Some(uri) = text(exchange.params, "uri") else {
        return exchange.error(&ProtocolError::invalid_params("params.uri must be a string"));
    };
    let route = route::resource(exchange.state, &uri);
    let subject = route
        .as_ref()
        .and_then(|route| route.subject(exchange.state, Operation::Resource));
    let is_declared = subject
        .as_ref()
        .is_some_and(|subject| subject.declared.get() != "null");
    let own = route.map_or_else(|| uri.clone(), |route| route.own);
    let asked = Asked {
        subject,
        operation: Operation::Resource,
        method: "resources/read".into(),
        params: params::with_texts(exchange.params, &[("uri", Some(&own))]),
        arguments: None,
        unreadable: (!is_declared && route::has_dot_segments(&own)).then_some(Unreadable::DotSegments),
        answer: None,
        is_for_all: false,
        given: uri,
    };
    govern(exchange, open, asked).await
}

/// `prompts/get`
pub(super) async fn get_prompt(exchange: &Exchange<'_>, open: Open) -> Answer {
    let Some(name) = text(exchange.params, "name") else {
        return exchange.error(&ProtocolError::invalid_params("params.name must be a string"));
    };
    let given = exchange
        .params
        .and_then(|params| params.get("arguments"))
        .filter(|arguments| !arguments.is_null());
    let route = route::prompt(exchange.state, &name);
    let own = route.as_ref().map_or(name.as_str(), |route| route.own.as_str());
    let asked = Asked {
        params: params::with_texts(exchange.params, &[("name", Some(own)), ("arguments", None)]),
        subject: route
            .as_ref()
            .and_then(|route| route.subject(exchange.state, Operation::Prompt)),
        operation: Operation::Prompt,
        method: "prompts/get".into(),
        arguments: given
            .filter(|given| given.kind() == Kind::Object)
            .map(|given| given.raw().to_vec()),
        unreadable: given
            .is_some_and(|given| given.kind() != Kind::Object)
            .then_some(Unreadable::NoObject),
        answer: None,
        is_for_all: false,
        given: name,
    };
    govern(exchange, open, asked).await
}

/// `completion/complete`: for the upstream of the prompt or template that is completed.
pub(super) async fn complete(exchange: &Exchange<'_>, open: Open) -> Answer {
    let reference = exchange.params.and_then(|params| params.get("ref"));
    let kind = text(reference, "type");
    let (key, route) = match kind.as_deref() {
        Some("ref/prompt") => (
            "name",
            text(reference, "name").map(|name| route::prompt(exchange.state, &name)),
        ),
        Some("ref/resource") => (
            "uri",
            text(reference, "uri").map(|uri| route::resource(exchange.state, &uri)),
        ),
        _ => ("", None),
    };
    let (Some(reference), Some(route)) = (reference, route) else {
        return exchange.error(&ProtocolError::invalid_params(
            "params.ref must be a reference to a prompt, by its name, or to a resource, by its uri",
        ));
    };
    let own = route
        .as_ref()
        .and_then(|route| splice::with_value(reference.raw(), key, &params::quoted(&route.own)));
    let params = params::with_raw(exchange.params, "ref", own.as_deref().unwrap_or(reference.raw()));
    let subject = route.and_then(|route| method_of(exchange, &route, "completion/complete"));
    govern(
        exchange,
        open,
        Asked::method("completion/complete", subject, params),
    )
    .await
}

/// Any other request: it goes to the one upstream that can be meant.
pub(super) async fn other(exchange: &Exchange<'_>, method: &str, open: Open) -> Answer {
    let upstream = route::method(exchange.state, |_| true);
    let Some(upstream) = upstream.filter(|_| !is_ours(method)) else {
        return exchange.no_method(method);
    };
    let route = Route {
        upstream,
        own: String::new(),
    };
    let params = params::with_texts(exchange.params, &[]);
    let subject = method_of(exchange, &route, method);
    govern(exchange, open, Asked::method(method, subject, params)).await
}

/// What is between a client and Toolgate, or goes the other way, is never passed on.
fn is_ours(method: &str) -> bool {
    matches!(
        method,
        "initialize" | "ping" | "server/discover" | "logging/setLevel" | "tools/list" | "prompts/list"
    ) || [
        "notifications/",
        "resources/",
        "subscriptions/",
        "sampling/",
        "roots/",
        "elicitation/",
    ]
    .iter()
    .any(|prefix| method.starts_with(prefix))
}

/// The governed name of a method at the upstream of a route.
pub(super) fn method_of(exchange: &Exchange<'_>, route: &Route, method: &str) -> Option<Arc<Tool>> {
    let at = Route {
        upstream: route.upstream.clone(),
        own: method.to_owned(),
    };
    at.subject(exchange.state, Operation::Method)
}

pub(super) fn text(node: Option<Node<'_>>, key: &str) -> Option<String> {
    node?.get(key)?.as_str().map(std::borrow::Cow::into_owned)
}

impl Asked {
    /// A method, whose params are its arguments.
    pub(super) fn method(method: &str, subject: Option<Arc<Tool>>, params: Vec<u8>) -> Self {
        Self {
            given: method.to_owned(),
            subject,
            operation: Operation::Method,
            method: method.into(),
            arguments: Some(params.clone()),
            params,
            unreadable: None,
            answer: None,
            is_for_all: false,
        }
    }

    /// The name of what nothing here has, as it is recorded.
    fn unknown(&self) -> String {
        format!("{}{}", self.operation.marker(), self.given)
    }
}

/// Asks the gate, and answers with what came of it.
pub(super) async fn govern(exchange: &Exchange<'_>, open: Open, asked: Asked) -> Answer {
    let mut report = decide(exchange, open, &asked).await;
    if let Some(continuation) = report.continuation.take()
        && let End::Answered(upstream) = &report.end
    {
        return rounds::passed_on(exchange, report.upstream.as_deref(), upstream, continuation);
    }
    render(exchange, &report, &asked)
}

/// Asks the gate.
pub(super) async fn decide(exchange: &Exchange<'_>, open: Open, asked: &Asked) -> CallReport {
    let sent = version::meta(exchange.params);
    // What the gate looks at lies in one buffer: the arguments, then the client's `_meta`.
    let body = Bytes::from(params::gathered(asked.arguments.as_deref(), sent.map(Node::raw)));
    let limits = exchange.state.limits();
    let document = Document::parse(
        &body,
        Limits {
            max_bytes: limits.message_bytes.saturating_mul(2),
            max_depth: limits.argument_depth + 2,
        },
    );
    let root = document.as_ref().ok().map(Document::root);
    let meta = root.and_then(|root| root.get("_meta"));
    let arguments = match (&document, asked.unreadable) {
        (_, Some(unreadable)) => Arguments::Unreadable(unreadable),
        (Err(error), None) => Arguments::Unreadable(Unreadable::Json(*error)),
        (Ok(_), None) => call::arguments(root.and_then(|root| root.get("arguments")), limits.argument_bytes),
    };
    let trace = TraceContext::begin(call::trace_member(exchange.headers, meta, "traceparent").as_deref());
    let line = line::line(exchange, open, &trace);
    let again = rounds::taken(exchange);
    let unknown = asked.unknown();
    let names = Names::default();
    let mut request = CallRequest {
        identity: exchange.identity.clone(),
        session: exchange.call_session(),
        tool: asked
            .subject
            .as_ref()
            .map_or(unknown.as_str(), |subject| subject.name.as_str()),
        other: asked.subject.as_ref().map(|subject| OtherRequest {
            subject: Arc::clone(subject),
            method: Arc::clone(&asked.method),
            params: match &again {
                Some(again) => Bytes::from(again.params(&asked.params)),
                None => Bytes::copy_from_slice(&asked.params),
            },
            answer: asked.answer.clone(),
        }),
        names: &names,
        arguments,
        body: &body,
        meta,
        extra: None,
        continuation: None,
        trace,
        tracestate: call::trace_member(exchange.headers, meta, "tracestate"),
        cancel: exchange.cancel.clone(),
        origin: Some(line.origin).filter(|_| !asked.is_for_all),
        audience: Some(line.audience),
        patience: Patience {
            wait: line.wait,
            on_pending: Some(line.on_pending),
        },
    };
    request.continuation = again.map(|again| again.continuation);
    exchange.state.gate.call(request).await
}

/// What came of a request, in the words of the client's era.
pub(super) fn render(exchange: &Exchange<'_>, report: &CallReport, asked: &Asked) -> Answer {
    match &report.end {
        End::Answered(upstream) => answered(exchange, upstream, asked),
        End::Failed(error) => exchange.error(&ProtocolError::internal(format!(
            "The request was allowed and has no answer: {error}"
        ))),
        End::Refused(refusal) if refusal.is_hidden || refusal.reason == Reason::UnknownTool => {
            unknown(exchange, asked)
        }
        End::Refused(refusal) => {
            let decision = denial::decision(report, refusal);
            exchange.error(&ProtocolError::denied(denial::text(refusal)).with_data(decision))
        }
        End::Cancelled(CancelCause::Client) => {
            exchange.error(&ProtocolError::cancelled("the request was cancelled"))
        }
        End::Cancelled(cause @ (CancelCause::Stopped | CancelCause::Denied | CancelCause::ShuttingDown)) => {
            let text = format!("Toolgate ended this request while it ran: {cause}.");
            exchange.error(&ProtocolError::denied(text))
        }
    }
}

fn unknown(exchange: &Exchange<'_>, asked: &Asked) -> Answer {
    match asked.operation {
        Operation::Resource => {
            let data = json!({"uri": asked.given});
            exchange.error(&ProtocolError::unknown_resource(exchange.is_modern).with_data(data))
        }
        Operation::Prompt => exchange.error(&ProtocolError::invalid_params(format!(
            "Unknown prompt: {}",
            asked.given
        ))),
        Operation::Method | Operation::Tool => exchange.no_method(&asked.given),
    }
}

fn answered(exchange: &Exchange<'_>, upstream: &UpstreamAnswer, asked: &Asked) -> Answer {
    let raw = &upstream.raw;
    match (upstream.kind, exchange.is_modern) {
        (AnswerKind::Error, _) => exchange.error_of_upstream(&eras::error(
            raw,
            upstream.era,
            exchange.is_modern,
            &asked.method,
            &asked.params,
        )),
        (AnswerKind::Result, false) if upstream.era == Era::Modern && wants_input(raw) => {
            exchange.error(&ProtocolError::internal(
                "The upstream asks for input in a way that this client's protocol revision has no words for.",
            ))
        }
        (AnswerKind::Result, false) => exchange.result(raw),
        (AnswerKind::Result, true) => {
            exchange.result(&eras::result_for_modern(raw, upstream.era, asked.operation))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_client_and_toolgate_is_not_passed_on() {
        for method in [
            "initialize",
            "notifications/x",
            "roots/list",
            "resources/list",
            "resources/subscribe",
        ] {
            assert!(is_ours(method), "{method}");
        }
        assert!(!is_ours("tasks/get") && !is_ours("x/y"));
    }
}
