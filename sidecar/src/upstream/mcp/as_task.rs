//! A call that a legacy upstream runs as a task (2025-11-25, basic/utilities/tasks), for an agent that follows no task of the
//! upstream: the task is begun, and its result waited for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::envelope::Answer;
use super::failure::Failure;
use super::upstream::McpUpstream;
use super::{Era, scan};
use crate::agent::mcp::splice;
use crate::upstream::{AnswerKind, UpstreamRequest};

/// The longest that such a task is waited for.
pub(super) const LONGEST: Duration = Duration::from_secs(3600);
/// How long an upstream has to hear that nobody waits any more.
const GOODBYE: Duration = Duration::from_secs(5);
const RELATED: &str = "io.modelcontextprotocol/related-task";

impl McpUpstream {
    /// Whether a call is made as a task of the upstream, and followed.
    pub(super) fn is_task(&self, request: &UpstreamRequest) -> bool {
        let follows = request.origin.as_ref().is_some_and(|origin| origin.follows_tasks);
        let session = self.sessions.borrow();
        let is_legacy = session
            .as_ref()
            .is_some_and(|session| session.opened.wire.dialect.era == Era::Legacy);
        follows && request.method.is_none() && is_legacy
    }

    /// Makes a call as a task, and waits for its result: what the call alone would have been answered with.
    pub(super) async fn follow_task(
        self: &Arc<Self>,
        request: &UpstreamRequest,
    ) -> Result<(Answer, Era), Failure> {
        let mut begin = request.clone();
        begin.extra = Some(with_task(request.extra.as_deref()));
        let (begun, era) = self.forward(&begin).await?;
        let Some(id) = task_of(&begun) else {
            // It has answered at once.
            return Ok((begun, era));
        };
        let mut followed = Followed {
            upstream: self,
            cancelling: Some(about(request, "tasks/cancel", &id)),
        };
        let mut result = about(request, "tasks/result", &id);
        result.cancel = request.cancel.clone();
        let (answer, era) = self.forward(&result).await?;
        followed.cancelling = None;
        let raw = match answer.kind {
            AnswerKind::Result => unrelated(&answer.raw),
            AnswerKind::Error => None,
        };
        let raw = raw.map_or(answer.raw, Bytes::from);
        Ok((Answer { raw, ..answer }, era))
    }
}

/// A task of an upstream that is waited for; dropped before its end, it is cancelled.
struct Followed<'u> {
    upstream: &'u Arc<McpUpstream>,
    cancelling: Option<UpstreamRequest>,
}

impl Drop for Followed<'_> {
    fn drop(&mut self) {
        let Some(request) = self.cancelling.take() else {
            return;
        };
        let upstream = Arc::clone(self.upstream);
        self.upstream.tasks.spawn(async move {
            let told = tokio::time::timeout(GOODBYE, upstream.forward(&request)).await;
            if !matches!(told, Ok(Ok(_))) {
                tracing::debug!(upstream = %upstream.name(), "a task could not be cancelled");
            }
        });
    }
}

/// A request about the task that a call has become.
fn about(request: &UpstreamRequest, method: &str, id: &[u8]) -> UpstreamRequest {
    UpstreamRequest {
        method: Some(method.into()),
        arguments: None,
        meta: None,
        extra: Some(Bytes::from([b"{\"taskId\":", id, b"}"].concat())),
        audience: None,
        cancel: CancellationToken::new(),
        ..request.clone()
    }
}

/// The further params of a call that is to be a task.
fn with_task(extra: Option<&[u8]>) -> Bytes {
    let task = format!("{{\"ttl\":{}}}", LONGEST.as_millis());
    let extra = extra.unwrap_or(b"{}");
    let extra = splice::with_value(extra, "task", task.as_bytes())
        .or_else(|| splice::with_member(extra, "task", task.as_bytes()));
    extra.map(Bytes::from).unwrap_or_default()
}

/// The raw id of the task that an answer begins.
fn task_of(answer: &Answer) -> Option<Vec<u8>> {
    if answer.kind != AnswerKind::Result {
        return None;
    }
    let id = scan::member(scan::member(&answer.raw, "task")?, "taskId")?;
    id.starts_with(b"\"").then(|| id.to_vec())
}

/// A result that does not say which task it is of, where it did.
fn unrelated(result: &[u8]) -> Option<Vec<u8>> {
    let meta = scan::member(result, "_meta")?;
    scan::member(meta, RELATED)?;
    let mut others = b"{".to_vec();
    for member in scan::members(meta).map_while(Result::ok) {
        if member.is(RELATED) {
            continue;
        }
        if others.len() > 1 {
            others.push(b',');
        }
        others.extend_from_slice(&[b"\"", member.key, b"\":", member.value].concat());
    }
    others.push(b'}');
    splice::with_value(result, "_meta", &others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: impl AsRef<[u8]>) -> String {
        String::from_utf8(bytes.as_ref().to_vec()).unwrap()
    }

    #[test]
    fn a_call_is_asked_for_as_a_task_beside_what_else_it_says() {
        assert_eq!(text(with_task(None)), r#"{"task":{"ttl":3600000}}"#);
        assert_eq!(
            text(with_task(Some(br#"{"x":1.00,"task":{"ttl":1}}"#))),
            r#"{"x":1.00,"task":{"ttl":3600000}}"#
        );
    }

    #[test]
    fn what_a_task_came_to_is_what_the_call_alone_would_have() {
        let result =
            br#"{"content":[1.00],"_meta":{"x":1e2,"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#;
        assert_eq!(
            text(unrelated(result).unwrap()),
            r#"{"content":[1.00],"_meta":{"x":1e2}}"#
        );
        assert_eq!(unrelated(br#"{"content":[]}"#), None);
        let begun = Answer {
            kind: AnswerKind::Result,
            raw: Bytes::from_static(br#"{"task":{"taskId":"a\u0041","status":"working"}}"#),
        };
        assert_eq!(text(task_of(&begun).unwrap()), r#""a\u0041""#);
    }
}
