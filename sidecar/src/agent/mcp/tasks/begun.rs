//! Tasks of legacy sessions (2025-11-25, basic/utilities/tasks): a task belongs to the session that began it, and requests about
//! it go to the upstream that runs it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chain::hash::Hash;
use tokio::sync::oneshot;
use tools::id::UpstreamName;

use super::super::call_stream::Opening;
use super::super::request::{self, Asked};
use super::super::route::{self, Route};
use super::super::serve::{Answer, Exchange};
use super::super::{params, splice};
use super::serve::unknown;
use crate::gate::{CallReport, End};
use crate::upstream::AnswerKind;
use crate::upstream::mcp::scan;

/// Tasks of one session that are remembered; the oldest give way.
const MAX_TASKS: usize = 1000;
const LIST: &str = "tasks/list";

/// The tasks that a session began, and who runs them.
#[derive(Debug, Default)]
pub struct Tasks {
    /// By the hash of the id, which is as long as the upstream likes.
    begun: Mutex<VecDeque<(Hash, UpstreamName)>>,
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Hash, UpstreamName)>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, id: &str, upstream: UpstreamName) {
        let id = Hash::of(&[id.as_bytes()]);
        let mut begun = self.lock();
        if begun.len() >= MAX_TASKS {
            begun.pop_front();
        }
        begun.push_back((id, upstream));
    }

    fn upstream_of(&self, id: &str) -> Option<UpstreamName> {
        let id = Hash::of(&[id.as_bytes()]);
        let begun = self.lock();
        begun
            .iter()
            .rev()
            .find(|(known, _)| *known == id)
            .map(|(_, upstream)| upstream.clone())
    }

    pub(super) fn knows(&self, id: &str, upstream: &UpstreamName) -> bool {
        let id = Hash::of(&[id.as_bytes()]);
        self.lock()
            .iter()
            .any(|(known, by)| *known == id && by == upstream)
    }
}

/// Remembers the task that an answered call began.
pub(in super::super) fn note(exchange: &Exchange<'_>, report: &CallReport) {
    let asked_for_one = exchange.params.is_some_and(|params| params.get("task").is_some());
    let (Some(session), true, End::Answered(answer)) = (exchange.session, asked_for_one, &report.end) else {
        return;
    };
    let id = scan::member(&answer.raw, "task").and_then(|task| text(task, "taskId"));
    let upstream = report
        .upstream
        .as_deref()
        .and_then(|name| UpstreamName::try_from(name).ok());
    if let (Some(id), Some(upstream), AnswerKind::Result) = (id, upstream, answer.kind) {
        session.tasks().begin(&id, upstream);
    }
}

pub(super) fn text(object: &[u8], key: &str) -> Option<String> {
    serde_json::from_slice(scan::member(object, key)?).ok()
}

/// A request about a task of an upstream.
pub(super) async fn serve(
    exchange: &Exchange<'_>,
    method: &str,
    id: &str,
    open: Option<oneshot::Sender<Opening>>,
) -> Answer {
    let upstream = match exchange.session {
        Some(session) => session.tasks().upstream_of(id),
        // Without a session, the upstream alone can tell whose task it is.
        None => route::method(exchange.state, |offers| offers.tasks)
            .or_else(|| route::method(exchange.state, |_| true)),
    };
    let Some(upstream) = upstream else {
        return exchange.error(&unknown(id));
    };
    let asked = asked(
        exchange,
        method,
        upstream,
        params::with_texts(exchange.params, &[]),
    );
    request::govern(exchange, open, asked).await
}

/// A request to the upstream that runs a task.
pub(super) fn asked(exchange: &Exchange<'_>, method: &str, upstream: UpstreamName, params: Vec<u8>) -> Asked {
    let route = Route {
        upstream,
        own: String::new(),
    };
    Asked::method(method, request::method_of(exchange, &route, method), params)
}

/// The tasks of the one upstream that has some: those of this session.
pub(super) async fn list(exchange: &Exchange<'_>, open: Option<oneshot::Sender<Opening>>) -> Answer {
    let with_tasks = route::method(exchange.state, |offers| offers.tasks);
    let upstream = with_tasks.or_else(|| route::method(exchange.state, |_| true));
    let Some(upstream) = upstream else {
        return exchange.no_method(LIST);
    };
    let is_shared = exchange
        .state
        .gate
        .upstreams()
        .get(upstream.as_str())
        .is_some_and(|upstream| upstream.is_shared());
    let params = params::with_texts(exchange.params, &[]);
    let asked = asked(exchange, LIST, upstream.clone(), params);
    let mut report = request::decide(exchange, open, &asked).await;
    if let (true, End::Answered(answer)) = (is_shared, &mut report.end)
        && answer.kind == AnswerKind::Result
    {
        let own = |id: &str| {
            exchange
                .session
                .is_some_and(|session| session.tasks().knows(id, &upstream))
        };
        answer.raw = only(&answer.raw, own).into();
    }
    request::render(exchange, &report, &asked)
}

/// A list of tasks without those of others.
fn only(result: &[u8], is_own: impl Fn(&str) -> bool) -> Vec<u8> {
    let listed = scan::member(result, "tasks").unwrap_or(b"[]");
    let own: Vec<&[u8]> = scan::elements(listed)
        .unwrap_or_default()
        .into_iter()
        .filter(|task| text(task, "taskId").is_some_and(|id| is_own(&id)))
        .collect();
    let tasks = [b"[".as_slice(), &own.join(&b','), b"]"].concat();
    splice::with_value(result, "tasks", &tasks).unwrap_or_else(|| b"{\"tasks\":[]}".to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_shows_the_tasks_of_its_session_alone() {
        let listed = br#"{"tasks":[{"taskId":"a","n":1.00},{"taskId":"b"},{}],"nextCursor":"c"}"#;
        let shown = String::from_utf8(only(listed, |id| id == "a")).unwrap();
        assert_eq!(shown, r#"{"tasks":[{"taskId":"a","n":1.00}],"nextCursor":"c"}"#);
        assert_eq!(only(b"{}", |_| true), b"{\"tasks\":[]}");
    }

    #[test]
    fn a_task_is_known_by_its_upstream_and_the_oldest_give_way() {
        let tasks = Tasks::default();
        let upstream: UpstreamName = "a".parse().unwrap();
        for number in 0..=MAX_TASKS {
            tasks.begin(&number.to_string(), upstream.clone());
        }
        assert_eq!(tasks.upstream_of("0"), None);
        assert_eq!(tasks.upstream_of("1"), Some(upstream.clone()));
        assert!(tasks.knows("2", &upstream) && !tasks.knows("2", &"b".parse().unwrap()));
    }
}
