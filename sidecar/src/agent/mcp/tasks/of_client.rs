//! Tasks that clients run: an upstream's question that is answered with a task (2025-11-25, basic/utilities/tasks). The task is known
//! to the upstream that asked, and to no other.

use tools::id::UpstreamName;

use super::begun::{self, Tasks};
use crate::upstream::mcp::scan;
use crate::upstream::{AnswerKind, Question, Reply};

/// Whether an upstream may put this question: one about a task, when the task answers it.
pub(in super::super) fn may_ask(begun: &Tasks, question: &Question) -> bool {
    if !super::concerns(&question.method) {
        return true;
    }
    let id = begun::text(&question.params, "taskId");
    upstream(question)
        .zip(id)
        .is_some_and(|(upstream, id)| begun.knows(&id, &upstream))
}

/// Remembers the task that a question was answered with.
pub(in super::super) fn note(begun: &Tasks, question: &Question, reply: &Reply) {
    let asked_for_one = scan::member(&question.params, "task").is_some();
    let is_begun = asked_for_one && reply.kind == AnswerKind::Result && !super::concerns(&question.method);
    let task = scan::member(&reply.raw, "task").filter(|_| is_begun);
    let id = task.and_then(|task| begun::text(task, "taskId"));
    if let Some((upstream, id)) = upstream(question).zip(id) {
        begun.begin(&id, upstream);
    }
}

fn upstream(question: &Question) -> Option<UpstreamName> {
    UpstreamName::try_from(&*question.upstream).ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn question(upstream: &str, method: &str, params: &'static str) -> Question {
        Question {
            upstream: upstream.into(),
            name: None,
            method: method.into(),
            params: Bytes::from_static(params.as_bytes()),
            progress: None,
            is_let_through: true,
        }
    }

    #[test]
    fn a_task_of_a_client_is_known_to_the_upstream_that_it_answers() {
        let begun = Tasks::default();
        let asked = question("one", "sampling/createMessage", r#"{"task":{"ttl":1}}"#);
        let reply = Reply {
            kind: AnswerKind::Result,
            raw: Bytes::from_static(br#"{"task":{"taskId":"t"}}"#),
        };
        note(&begun, &question("two", "sampling/createMessage", "{}"), &reply);
        note(&begun, &asked, &reply);
        let about = |upstream| question(upstream, "tasks/get", r#"{"taskId":"t"}"#);
        assert!(may_ask(&begun, &asked) && may_ask(&begun, &about("one")));
        assert!(!may_ask(&begun, &about("two")));
        assert!(!may_ask(&begun, &question("one", "tasks/result", "{}")));
    }
}
