//! `tools/call`: through the gate, and back in the words of the client's era.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tools::json::{JsonError, Kind, Node};

use super::answer;
use super::denial;
use super::envelope;
use super::error::ProtocolError;
use super::modern;
use super::serve::{Answer, Exchange};
use super::splice;
use super::stream::Opening;
use super::version;
use crate::agent::state::{self, AgentState};
use crate::gate::{Arguments, CallReport, CallRequest, CancelCause, End, Patience, TraceContext, Unreadable};
use crate::identity::Identity;
use crate::upstream::mcp::scan;
use crate::upstream::{AnswerKind, Era, UpstreamAnswer};

/// Progress notifications that wait for a slow client; more are dropped.
const PROGRESS_ROOM: usize = 64;
/// What a client that cancelled is told, if it still listens.
const CANCELLED_CODE: i32 = -32800;

/// Serves one call. Where `open` is there, the answer may be a stream.
pub(super) async fn call(exchange: &Exchange<'_>, open: Option<oneshot::Sender<Opening>>) -> Answer {
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
    let (progress, open) = open_stream(open, progress_token(meta));
    let request = CallRequest {
        identity: exchange.identity.clone(),
        session: exchange.call_session(),
        tool: &name,
        other: None,
        names: &exchange.state.names,
        arguments: arguments(given, exchange.state.limits.argument_bytes),
        body: exchange.body,
        meta,
        extra: extra(exchange.body, params),
        trace: TraceContext::begin(trace_member(exchange.headers, meta, "traceparent").as_deref()),
        tracestate: trace_member(exchange.headers, meta, "tracestate"),
        cancel: exchange.cancel.clone(),
        progress,
        patience: Patience {
            wait: Some(exchange.state.gate.approval_wait()),
            on_pending: open.map(|open| -> Box<dyn FnOnce(_) + Send> {
                Box::new(move |_| {
                    let _ = open.send(Opening { progress: None });
                })
            }),
        },
    };
    let report = exchange.state.gate.call(request).await;
    render(exchange, &report, &name)
}

/// The client's progress token, as raw JSON.
pub(super) fn progress_token(meta: Option<Node<'_>>) -> Option<Bytes> {
    meta.and_then(|meta| meta.get("progressToken"))
        .filter(|token| matches!(token.kind(), Kind::String | Kind::Number))
        .map(|token| Bytes::copy_from_slice(token.raw()))
}

/// A client that asked for progress gets a stream at once; others when the call waits for a person.
pub(super) fn open_stream(
    open: Option<oneshot::Sender<Opening>>,
    token: Option<Bytes>,
) -> (Option<mpsc::Sender<Bytes>>, Option<oneshot::Sender<Opening>>) {
    match (open, token) {
        (Some(open), Some(token)) => {
            let (sender, receiver) = mpsc::channel(PROGRESS_ROOM);
            let opening = Opening {
                progress: Some((receiver, token)),
            };
            let is_open = open.send(opening).is_ok();
            (is_open.then_some(sender), None)
        }
        (open, _) => (None, open),
    }
}

pub(super) fn arguments(given: Option<Node<'_>>, limit: usize) -> Arguments<'_> {
    match given {
        None => Arguments::Absent,
        Some(node) if node.kind() != Kind::Object => Arguments::Unreadable(Unreadable::NoObject),
        Some(node) if node.raw().len() > limit => Arguments::Unreadable(Unreadable::TooLarge { limit }),
        Some(node) => Arguments::Object(node),
    }
}

/// The params themselves, where they have members that the sidecar does not know.
fn extra(body: &Bytes, params: Node<'_>) -> Option<Bytes> {
    params
        .members()
        .any(|(key, _)| !matches!(key.as_ref(), "name" | "arguments" | "_meta"))
        .then(|| body.slice_ref(params.raw()))
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
        trace: TraceContext::begin(trace_member(headers, None, "traceparent").as_deref()),
        tracestate: None,
        cancel,
        progress: None,
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

fn render(exchange: &Exchange<'_>, report: &CallReport, name: &str) -> Answer {
    match &report.end {
        End::Answered(upstream) => answered(exchange, upstream),
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
            let mut error = ProtocolError::invalid_params("the call was cancelled");
            error.code = CANCELLED_CODE;
            exchange.error(&error)
        }
        End::Cancelled(cause @ (CancelCause::Stopped | CancelCause::Denied | CancelCause::ShuttingDown)) => {
            exchange.result(&denial::ended(report, *cause, exchange.is_modern))
        }
    }
}

fn answered(exchange: &Exchange<'_>, upstream: &UpstreamAnswer) -> Answer {
    match upstream.kind {
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

pub(super) fn wants_input(result: &[u8]) -> bool {
    scan::member(result, "resultType").is_some_and(|value| value != b"\"complete\"")
}
