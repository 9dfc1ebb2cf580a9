//! `tools/call`: through the gate, and back in the words of the client's era.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::json::{JsonError, Kind, Node};

use super::answer;
use super::call_stream::Opening;
use super::denial;
use super::envelope;
use super::error::ProtocolError;
use super::line;
use super::modern;
use super::params;
use super::request;
use super::rounds;
use super::route;
use super::serve::{Answer, Exchange};
use super::splice;
use super::tasks;
use super::version;
use crate::agent::state::{self, AgentState};
use crate::gate::{Arguments, CallReport, CallRequest, CancelCause, End, Patience, TraceContext, Unreadable};
use crate::identity::Identity;
use crate::upstream::mcp::rounds::wants_input;
use crate::upstream::{AnswerKind, Era, UpstreamAnswer};

/// Serves one call. Where `open` is there, the answer may be a stream.
pub(super) async fn call(exchange: &Exchange<'_>, open: Option<oneshot::Sender<Opening>>) -> Answer {
    if tasks::begin::is_wished(exchange) {
        return Box::pin(tasks::begin::call(exchange, open)).await;
    }
    run(exchange, open).await
}

/// Makes the call, and waits for its end.
pub(super) async fn run(exchange: &Exchange<'_>, open: Option<oneshot::Sender<Opening>>) -> Answer {
    let Some(params) = exchange.params else {
        return exchange.error(&ProtocolError::invalid_params("params.name must be a string"));
    };
    let Some(name) = params.get("name").and_then(Node::as_str) else {
        return exchange.error(&ProtocolError::invalid_params("params.name must be a string"));
    };
    let given = params.get("arguments").filter(|arguments| !arguments.is_null());
    if exchange.is_modern
        && let Some(tool) = exchange.state.gate.lookup(&exchange.state.names, &name)
        && let Err(error) = modern::check_params(exchange.headers, &tool.input_schema, given)
    {
        return exchange.error(&error);
    }
    let meta = version::meta(Some(params));
    let trace = TraceContext::begin(trace_member(exchange.headers, meta, "traceparent").as_deref());
    let mut line = line::line(exchange, open, &trace);
    if let Some(task) = exchange.task {
        line = task.line(exchange, line, &trace);
    }
    let again = rounds::taken(exchange);
    let request = CallRequest {
        identity: exchange.identity.clone(),
        session: exchange.call_session(),
        tool: &name,
        other: None,
        names: &exchange.state.names,
        arguments: match exchange.task.and_then(|task| task.refused()) {
            Some(refused) => Arguments::Unreadable(refused),
            None => arguments(given, exchange.state.limits().argument_bytes),
        },
        body: exchange.body,
        meta,
        extra: match &again {
            Some(again) => Some(Bytes::from(again.params(params.raw()))),
            None => extra(exchange, params),
        },
        continuation: again.map(|again| again.continuation),
        trace,
        tracestate: trace_member(exchange.headers, meta, "tracestate"),
        cancel: exchange.cancel.clone(),
        origin: Some(line.origin),
        audience: Some(line.audience),
        patience: Patience {
            wait: line.wait,
            on_pending: Some(line.on_pending),
        },
    };
    let report = exchange.state.gate.call(request).await;
    render(exchange, report, &name)
}

/// Whether the upstream of a request may ask its agent by requests of its own.
pub(super) fn asks_by_requests(exchange: &Exchange<'_>, method: &str) -> bool {
    let text = |key| request::text(exchange.params, key);
    let upstream = match method {
        "tools/call" => text("name")
            .and_then(|name| exchange.state.gate.lookup(&exchange.state.names, &name))
            .and_then(|tool| tool.upstream.clone()),
        "prompts/get" => text("name")
            .and_then(|name| route::prompt(exchange.state, &name))
            .map(|route| route.upstream),
        _ => text("uri")
            .and_then(|uri| route::resource(exchange.state, &uri))
            .map(|route| route.upstream),
    };
    upstream
        .and_then(|name| exchange.state.gate.upstreams().get(name.as_str()))
        .is_some_and(|upstream| upstream.asks_by_requests())
}

/// The client's progress token, as raw JSON.
pub(super) fn progress_token(meta: Option<Node<'_>>) -> Option<Bytes> {
    meta.and_then(|meta| meta.get("progressToken"))
        .filter(|token| matches!(token.kind(), Kind::String | Kind::Number))
        .map(|token| Bytes::copy_from_slice(token.raw()))
}

pub(super) fn arguments(given: Option<Node<'_>>, limit: usize) -> Arguments<'_> {
    match given {
        None => Arguments::Absent,
        Some(node) if node.kind() != Kind::Object => Arguments::Unreadable(Unreadable::NoObject),
        Some(node) if node.raw().len() > limit => Arguments::Unreadable(Unreadable::TooLarge { limit }),
        Some(node) => Arguments::Object(node),
    }
}

/// The params themselves, where they have members that the sidecar does not know. A task of its own is nothing for the upstream.
fn extra(exchange: &Exchange<'_>, params: Node<'_>) -> Option<Bytes> {
    let is_own = exchange
        .task
        .is_some_and(|task| !exchange.is_modern && !task.is_for_upstream);
    if is_own {
        return Some(Bytes::from(params::without(params, "task")));
    }
    params
        .members()
        .any(|(key, _)| !matches!(key.as_ref(), "name" | "arguments" | "_meta"))
        .then(|| exchange.body.slice_ref(params.raw()))
}

/// Trace context is in `_meta`, else in the HTTP header of that name.
pub(super) fn trace_member(headers: &HeaderMap, meta: Option<Node<'_>>, name: &str) -> Option<String> {
    let from_meta = meta
        .and_then(|meta| meta.get(name))
        .and_then(Node::as_str)
        .map(std::borrow::Cow::into_owned);
    from_meta.or_else(|| headers.get(name)?.to_str().ok().map(str::to_owned))
}

/// A message that is refused as a whole. A call among them is refused by the gate, so that there is a record.
pub(super) async fn unreadable(
    state: &Arc<AgentState>,
    headers: &HeaderMap,
    identity: &Identity,
    body: &Bytes,
    error: JsonError,
) -> Answer {
    let remains = envelope::remains(body);
    let id = remains.id.as_ref();
    let (Some(id), Some(tool)) = (id, &remains.tool) else {
        return Answer::error(&ProtocolError::parse(error.to_string()), id);
    };
    let cancel = CancellationToken::new();
    let request = CallRequest {
        identity: identity.clone(),
        session: state::named_session(headers),
        tool,
        other: None,
        names: &state.names,
        arguments: Arguments::Unreadable(Unreadable::Json(error)),
        body,
        meta: None,
        extra: None,
        continuation: None,
        trace: TraceContext::begin(trace_member(headers, None, "traceparent").as_deref()),
        tracestate: None,
        cancel,
        origin: None,
        audience: None,
        patience: Patience::none(),
    };
    let report = state.gate.call(request).await;
    match &report.end {
        End::Refused(refusal) if !envelope::is_no_json(&error) => {
            let is_modern = version::era(headers, None) == version::Era::Modern;
            Answer::message(answer::result_message(
                id,
                &denial::refused(&report, refusal, is_modern),
            ))
        }
        _ => Answer::error(&ProtocolError::parse(error.to_string()), Some(id)),
    }
}

fn render(exchange: &Exchange<'_>, mut report: CallReport, name: &str) -> Answer {
    let continuation = report.continuation.take();
    let report = &report;
    tasks::note(exchange, report);
    if let (Some(task), End::Answered(_)) = (exchange.task, &report.end) {
        task.was_answered_by(report.upstream.as_deref());
    }
    match (&report.end, continuation) {
        (End::Answered(upstream), Some(continuation)) => {
            rounds::passed_on(exchange, report.upstream.as_deref(), upstream, continuation)
        }
        (end, _) => render_whole(exchange, report, end, name),
    }
}

fn render_whole(exchange: &Exchange<'_>, report: &CallReport, end: &End, name: &str) -> Answer {
    match end {
        End::Answered(answer) => match tasks::passed_on(exchange, report.upstream.as_deref(), answer) {
            Some(Ok(task)) => exchange.result(&task),
            Some(Err(problem)) => exchange.result(&denial::failed(&problem, exchange.is_modern)),
            None => answered(exchange, answer),
        },
        End::Failed(error) => {
            let text = format!("The call was allowed and has no answer: {error}");
            exchange.result(&denial::failed(&text, exchange.is_modern))
        }
        End::Refused(refusal)
            if refusal.is_hidden || refusal.reason == chain::vocabulary::Reason::UnknownTool =>
        {
            exchange.error(&ProtocolError::invalid_params(format!("Unknown tool: {name}")))
        }
        End::Refused(refusal) => exchange.result(&denial::refused(report, refusal, exchange.is_modern)),
        End::Cancelled(CancelCause::Client) => {
            exchange.error(&ProtocolError::cancelled("the call was cancelled"))
        }
        End::Cancelled(cause @ (CancelCause::Stopped | CancelCause::Denied | CancelCause::ShuttingDown)) => {
            exchange.result(&denial::ended(report, *cause, exchange.is_modern))
        }
    }
}

fn answered(exchange: &Exchange<'_>, upstream: &UpstreamAnswer) -> Answer {
    match upstream.kind {
        AnswerKind::Error if tasks::is_missing(exchange, upstream) => exchange.error(&tasks::missing()),
        AnswerKind::Error => exchange.error_of_upstream(&upstream.raw),
        AnswerKind::Result if exchange.is_modern && upstream.era == Era::Legacy => {
            let result = splice::with_member(&upstream.raw, "resultType", b"\"complete\"");
            exchange.result(result.as_deref().unwrap_or(&upstream.raw))
        }
        AnswerKind::Result
            if !exchange.is_modern && upstream.era == Era::Modern && wants_input(&upstream.raw) =>
        {
            let text =
                "The tool asks for input in a way that this client's protocol revision has no words for.";
            exchange.result(&denial::failed(text, false))
        }
        AnswerKind::Result => exchange.result(&upstream.raw),
    }
}
