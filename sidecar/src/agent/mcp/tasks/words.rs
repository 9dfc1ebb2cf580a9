//! Tasks in the words of both eras: 2025-11-25 (basic/utilities/tasks), and the extension `io.modelcontextprotocol/tasks` of 2026-07-28.

use std::time::Duration;

use net::clock::rfc3339;
use serde_json::{Map, Value, json};

use super::super::{answer, splice};
use super::own::{Outcome, OwnTask, Phase, Standing};
use crate::upstream::AnswerKind;
use crate::upstream::mcp::scan;

/// The extension of the modern era.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// The `_meta` key that names the task of a message of the legacy era.
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";
/// How often a client is asked to look.
const POLL: Duration = Duration::from_secs(2);
/// Characters of an outcome that are told as the status of its task.
const MAX_MESSAGE: usize = 500;

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The status of a task. For legacy clients a tool that failed is a task that failed; for modern ones it has completed, and only
/// what has no result has failed.
fn status(phase: &Phase, is_asked: bool, is_modern: bool) -> &'static str {
    match phase {
        Phase::Cancelled(_) => "cancelled",
        Phase::Working | Phase::HandedOn(..) if is_modern && is_asked => "input_required",
        Phase::Working | Phase::HandedOn(..) => "working",
        Phase::Ended(outcome) if outcome.kind == AnswerKind::Error => "failed",
        Phase::Ended(outcome) if !is_modern && is_tool_error(&outcome.raw) => "failed",
        Phase::Ended(_) => "completed",
    }
}

fn is_tool_error(result: &[u8]) -> bool {
    scan::member(result, "isError") == Some(b"true")
}

/// The members of a task at one moment, but for what its call came to.
fn members(task: &OwnTask, now: &Standing, is_modern: bool) -> Map<String, Value> {
    let is_asked = task
        .questions
        .as_ref()
        .is_some_and(|questions| questions.is_any_open());
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    put("taskId", json!(task.id));
    put("status", json!(status(&now.phase, is_asked, is_modern)));
    if let Some(message) = &now.message {
        put("statusMessage", json!(message));
    }
    put("createdAt", json!(rfc3339(task.created)));
    put("lastUpdatedAt", json!(rfc3339(now.updated)));
    let (ttl, poll) = if is_modern {
        ("ttlMs", "pollIntervalMs")
    } else {
        ("ttl", "pollInterval")
    };
    put(ttl, json!(millis(task.ttl)));
    put(poll, json!(millis(POLL)));
    members
}

/// The task as `tasks/get` and `tasks/cancel` answer a legacy client.
pub(super) fn legacy(task: &OwnTask) -> Vec<u8> {
    Value::Object(members(task, &task.standing(), false))
        .to_string()
        .into_bytes()
}

/// The answer that a task has begun: as it began, whatever has come of it since.
pub(super) fn created(task: &OwnTask, is_modern: bool) -> Vec<u8> {
    let mut now = task.standing();
    if !matches!(now.phase, Phase::HandedOn(..)) {
        now.phase = Phase::Working;
    }
    let mut members = members(task, &now, is_modern);
    if is_modern {
        members.insert("status".to_owned(), json!("working"));
        members.insert("resultType".to_owned(), json!("task"));
        return Value::Object(members).to_string().into_bytes();
    }
    // What a host may give to its model at once (2025-11-25, tasks: Creating Tasks).
    let meta = now
        .message
        .map(|message| json!({"io.modelcontextprotocol/model-immediate-response": message}));
    let created = match meta {
        Some(meta) => json!({"task": members, "_meta": meta}),
        None => json!({"task": members}),
    };
    created.to_string().into_bytes()
}

/// The task as `tasks/get` answers a modern client: with what is asked, or what its call came to.
pub(super) fn modern(task: &OwnTask) -> Vec<u8> {
    let state = detailed(task);
    splice::with_member(&state, "resultType", b"\"complete\"").unwrap_or(state)
}

fn detailed(task: &OwnTask) -> Vec<u8> {
    let now = task.standing();
    let state = Value::Object(members(task, &now, true)).to_string().into_bytes();
    let (key, value) = match &now.phase {
        Phase::Ended(Outcome { kind, raw }) => match kind {
            AnswerKind::Result => ("result", raw.to_vec()),
            AnswerKind::Error => ("error", raw.to_vec()),
        },
        Phase::Working => match task
            .questions
            .as_ref()
            .and_then(|questions| questions.as_requests())
        {
            Some(asked) => ("inputRequests", asked),
            None => return state,
        },
        Phase::Cancelled(_) | Phase::HandedOn(..) => return state,
    };
    splice::with_member(&state, key, &value).unwrap_or(state)
}

/// A notification of the task's state; `meta` is that of a modern client's subscription.
pub(super) fn notification(task: &OwnTask, meta: Option<&str>) -> Vec<u8> {
    match meta {
        None => answer::notification("notifications/tasks/status", Some(&legacy(task))),
        Some(meta) => {
            let state = detailed(task);
            let params = splice::with_member(&state, "_meta", meta.as_bytes()).unwrap_or(state);
            answer::notification("notifications/tasks", Some(&params))
        }
    }
}

/// A result that says which task it is of.
pub(super) fn related(result: &[u8], id: &str) -> Vec<u8> {
    let related = json!({"taskId": id}).to_string();
    let meta = scan::member(result, "_meta").unwrap_or(b"{}");
    let meta = splice::with_value(meta, RELATED, related.as_bytes())
        .or_else(|| splice::with_member(meta, RELATED, related.as_bytes()))
        .unwrap_or_else(|| meta.to_vec());
    splice::with_value(result, "_meta", &meta)
        .or_else(|| splice::with_member(result, "_meta", &meta))
        .unwrap_or_else(|| result.to_vec())
}

/// What is said about an outcome that is none to be glad of: the error's message, or the first text of the result.
pub(super) fn complaint(outcome: &Outcome) -> Option<String> {
    let text = match outcome.kind {
        AnswerKind::Error => scan::member(&outcome.raw, "message"),
        AnswerKind::Result if is_tool_error(&outcome.raw) => scan::member(&outcome.raw, "content")
            .and_then(|content| scan::elements(content).ok())
            .and_then(|content| content.into_iter().find_map(|block| scan::member(block, "text"))),
        AnswerKind::Result => None,
    }?;
    let text: String = serde_json::from_slice(text).ok()?;
    Some(text.chars().take(MAX_MESSAGE).collect())
}
