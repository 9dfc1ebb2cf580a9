//! Requests about tasks.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use tokio::sync::oneshot;
use tools::id::UpstreamName;
use tools::json::Node;

use super::super::call_stream::Opening;
use super::super::error::ProtocolError;
use super::super::mailbox::Mailbox;
use super::super::serve::{Answer, Exchange};
use super::super::{params, request, rounds, splice};
use super::begin::begun_by_upstream;
use super::own::{MAX_OF_AGENT, Outcome, OwnTask, Owner, Phase};
use super::{EXTENSION, begun, declared, handle, speaks, words};
use crate::gate::End;
use crate::upstream::mcp::scan;
use crate::upstream::{AnswerKind, Era, Reply, UpstreamAnswer};

const GET: &str = "tasks/get";
const RESULT: &str = "tasks/result";
const UPDATE: &str = "tasks/update";
const CANCEL: &str = "tasks/cancel";
const LIST: &str = "tasks/list";
const DONE: &[u8] = b"{\"resultType\":\"complete\"}";

type Open = Option<oneshot::Sender<Opening>>;

/// A request about tasks.
pub(in super::super) async fn serve(exchange: &Exchange<'_>, method: &str, open: Open) -> Answer {
    let is_known = match method {
        GET | CANCEL => true,
        UPDATE => exchange.is_modern,
        RESULT | LIST => !exchange.is_modern,
        _ => false,
    };
    if !is_known {
        return exchange.no_method(method);
    }
    if exchange.is_modern && !speaks(exchange) {
        return exchange.error(&missing());
    }
    if method == LIST {
        return begun::list(exchange, open).await;
    }
    let Some(id) = request::text(exchange.params, "taskId") else {
        return exchange.error(&ProtocolError::invalid_params("params.taskId must be a string"));
    };
    let found = exchange.state.own_tasks.find(&id, &Owner::of(exchange));
    match found {
        Some(task) => about(exchange, method, &task, open).await,
        None if exchange.is_modern => match opened(exchange, &id) {
            Some((upstream, theirs)) => pass(exchange, method, &id, (&upstream, &theirs), open).await,
            None => exchange.error(&unknown(&id)),
        },
        None => begun::serve(exchange, method, &id, open).await,
    }
}

/// Whether a legacy upstream refused a call because it makes it as a task only, and its modern client does not take one.
pub(in super::super) fn is_missing(exchange: &Exchange<'_>, answer: &UpstreamAnswer) -> bool {
    let is_refused = exchange.is_modern
        && answer.era == Era::Legacy
        && scan::member(&answer.raw, "code") == Some(b"-32601")
        && !speaks(exchange);
    let name = request::text(exchange.params, "name").filter(|_| is_refused);
    let tool = name.and_then(|name| exchange.state.gate.lookup(&exchange.state.names, &name));
    tool.is_some_and(|tool| declared::is_required(tool.declared.get().as_bytes()))
}

/// The client does not say that it speaks tasks.
pub(in super::super) fn missing() -> ProtocolError {
    let mut error = ProtocolError::invalid_params("Missing required client capability");
    error.status = StatusCode::BAD_REQUEST;
    error.code = -32021;
    error.with_data(json!({"requiredCapabilities": {"extensions": {EXTENSION: {}}}}))
}

/// Nothing here has the task, as far as this caller may know.
pub(super) fn unknown(id: &str) -> ProtocolError {
    ProtocolError::invalid_params(format!(
        "there is no task {id:?} of this agent and session here: it is too old, or was begun at another sidecar or before this \
         one started; make the call again, an approval that was given meanwhile is used"
    ))
}

/// The upstream that runs the task of a modern client, and its own id there.
fn opened(exchange: &Exchange<'_>, id: &str) -> Option<(UpstreamName, String)> {
    let identity = exchange.state.gate.control().identity()?;
    handle::opened(&identity.digest_key, &Owner::of(exchange), id)
}

/// A request about a task of this sidecar.
async fn about(exchange: &Exchange<'_>, method: &str, task: &Arc<OwnTask>, open: Open) -> Answer {
    let now = task.standing();
    if let Phase::HandedOn(upstream, theirs) = now.phase {
        return pass(exchange, method, &task.id, (&upstream, &theirs), open).await;
    }
    match (method, exchange.is_modern) {
        (GET, true) => exchange.result(&words::modern(task)),
        (GET, false) => exchange.result(&words::legacy(task)),
        (RESULT, _) => result(exchange, task, open).await,
        (UPDATE, _) => update(exchange, task),
        (_, true) => {
            exchange.state.own_tasks.cancel(task);
            exchange.result(DONE)
        }
        (_, false) if exchange.state.own_tasks.cancel(task) => exchange.result(&words::legacy(task)),
        (_, false) => exchange.error(&ProtocolError::invalid_params(
            "the task has ended already, and cannot be cancelled",
        )),
    }
}

/// `tasks/result`: waits until there is one.
async fn result(exchange: &Exchange<'_>, task: &Arc<OwnTask>, open: Open) -> Answer {
    if !task.standing().phase.is_over()
        && let Some(open) = open
    {
        let _ = open.send(Opening::of(exchange.session));
    }
    let settled = tokio::select! {
        biased;
        settled = task.settled() => settled,
        () = exchange.cancel.cancelled() => {
            return exchange.error(&ProtocolError::cancelled("the request was cancelled; the task goes on"));
        }
        () = exchange.state.shutdown.cancelled() => {
            return exchange.error(&ProtocolError::internal(
                "this sidecar ends, and its tasks with it; make the call again",
            ));
        }
    };
    match settled.phase {
        Phase::Ended(outcome) | Phase::Cancelled(Some(outcome)) => match outcome.kind {
            AnswerKind::Result => exchange.result(&words::related(&outcome.raw, &task.id)),
            AnswerKind::Error => exchange.error_of_upstream(&outcome.raw),
        },
        Phase::HandedOn(upstream, theirs) => {
            Box::pin(pass(exchange, RESULT, &task.id, (&upstream, &theirs), None)).await
        }
        Phase::Working | Phase::Cancelled(None) => {
            exchange.error(&ProtocolError::internal("the task was lost"))
        }
    }
}

/// `tasks/update`: what the agent says to what its upstream asked.
fn update(exchange: &Exchange<'_>, task: &OwnTask) -> Answer {
    let responses = exchange.params.and_then(|params| params.get("inputResponses"));
    if let Some(questions) = &task.questions {
        for (key, response) in responses.into_iter().flat_map(Node::members) {
            let raw = exchange.body.slice_ref(response.raw());
            let kind = AnswerKind::Result;
            questions.answer(&key, Reply { kind, raw });
        }
    }
    exchange.result(DONE)
}

/// A request about a task that its upstream runs, which knows it by another id. It takes the gate as every request does.
async fn pass(
    exchange: &Exchange<'_>,
    method: &str,
    id: &str,
    (upstream, theirs): (&UpstreamName, &str),
    open: Open,
) -> Answer {
    let params = params::with_texts(exchange.params, &[("taskId", Some(theirs))]);
    let asked = begun::asked(exchange, method, upstream.clone(), params);
    let mut report = request::decide(exchange, open, &asked).await;
    if let End::Answered(answer) = &mut report.end
        && answer.kind == AnswerKind::Result
    {
        if exchange.is_modern
            && let Err(problem) = rounds::let_through(exchange, Some(upstream.as_str()), &answer.raw, |key| {
                exchange.state.own_tasks.is_new(id, key)
            })
        {
            return exchange.error(&ProtocolError::denied(problem));
        }
        answer.raw = renamed(&answer.raw, method, id).into();
    }
    request::render(exchange, &report, &asked)
}

/// What an upstream says about a task, under the id that its client knows.
fn renamed(raw: &[u8], method: &str, id: &str) -> Vec<u8> {
    if method == RESULT {
        return words::related(raw, id);
    }
    splice::with_value(raw, "taskId", &params::quoted(id)).unwrap_or_else(|| raw.to_vec())
}

/// The answer of a modern upstream that began a task, for a client that takes one: under an id of this sidecar, by which its owner
/// alone can ask for it. `None`: it is no task.
pub(in super::super) fn passed_on(
    exchange: &Exchange<'_>,
    upstream_name: Option<&str>,
    answer: &UpstreamAnswer,
) -> Option<Result<Vec<u8>, String>> {
    if exchange.task.is_some_and(|task| task.id().is_some()) {
        // It goes to the task that the call has become.
        return None;
    }
    let outcome = Outcome {
        kind: answer.kind,
        raw: answer.raw.clone(),
    };
    let theirs = begun_by_upstream(&outcome, true)?;
    if !(exchange.is_modern && speaks(exchange)) {
        return Some(Err(
            "The tool answers with a task, which this client does not say that it can follow.".to_owned(),
        ));
    }
    let upstream = upstream_name.and_then(|name| UpstreamName::try_from(name).ok());
    let id = upstream.and_then(|upstream| {
        let identity = exchange.state.gate.control().identity()?;
        handle::sealed(&identity.digest_key, &Owner::of(exchange), &upstream, &theirs)
    });
    Some(match id {
        Some(id) => {
            let is_new = |key: &[u8]| exchange.state.own_tasks.is_new(&id, key);
            rounds::let_through(exchange, upstream_name, &answer.raw, is_new)
                .map(|()| renamed(&answer.raw, GET, &id))
        }
        None => Err("The tool began a task whose id is too long to be followed.".to_owned()),
    })
}

/// The tasks of a filter of `subscriptions/listen` that the client hears of from now on.
///
/// # Errors
/// It asks for tasks, and does not say that it speaks them.
pub(in super::super) fn heard(
    exchange: &Exchange<'_>,
    filter: Option<Node<'_>>,
    mailbox: &Arc<Mailbox>,
    meta: &str,
) -> Result<Vec<String>, ProtocolError> {
    let Some(wanted) = filter.and_then(|filter| filter.get("taskIds")) else {
        return Ok(Vec::new());
    };
    if !speaks(exchange) {
        return Err(missing());
    }
    let owner = Owner::of(exchange);
    let is_heard = |id: &str| {
        let task = exchange.state.own_tasks.find(id, &owner);
        // Upstreams are not listened to for the tasks that they run.
        let own = task.filter(|task| !matches!(task.standing().phase, Phase::HandedOn(..)));
        own.is_some_and(|task| task.tell(mailbox, Some(meta.to_owned())))
    };
    // An agent has no more tasks than that.
    let ids = wanted.elements().filter_map(Node::as_str).take(MAX_OF_AGENT);
    Ok(ids
        .filter(|id| is_heard(id))
        .map(std::borrow::Cow::into_owned)
        .collect())
}
