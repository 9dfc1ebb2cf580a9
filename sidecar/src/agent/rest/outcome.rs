//! The answer of `POST /tool/{name}`, in the shape that existing clients read.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chain::vocabulary::Reason;
use http::{HeaderValue, StatusCode, header};
use net::problem::Problem;
use policy::document::Action;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::agent::calls::Known;
use crate::agent::mcp::denial;
use crate::gate::{CallReport, CancelCause, End, PendingApproval, Refusal, Summary};
use crate::upstream::{AnswerKind, UpstreamError};

/// The answer, ready to be sent, or kept for `GET /calls/{id}`.
pub(super) enum Outcome {
    /// A JSON body.
    Json(StatusCode, Bytes),
    /// A problem.
    Problem(Problem),
}

/// `policy` is the action and `policy_rule` the policy's name.
#[derive(Serialize)]
struct Answer<'a> {
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    id: &'a str,
    trace_id: &'a str,
    policy: &'static str,
    policy_rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<&'a str>,
    revision: String,
    latency_ms: u64,
}

impl Outcome {
    /// The answer for a call that has ended.
    pub(super) fn of(report: CallReport) -> Self {
        match &report.end {
            End::Answered(answer) => match answer.kind {
                AnswerKind::Result => {
                    let error = answer
                        .is_failure()
                        .then(|| "the tool answered with an error; see result".to_owned());
                    Self::Json(StatusCode::OK, answered(&report, &answer.raw, error))
                }
                AnswerKind::Error => {
                    let detail = error_message(&answer.raw)
                        .unwrap_or_else(|| "the upstream answered with an error".to_owned());
                    Self::Problem(problem(&report, StatusCode::BAD_GATEWAY, detail))
                }
            },
            End::Failed(error) => Self::Problem(problem(&report, failed_status(error), error.to_string())),
            End::Cancelled(cause) => {
                let status = match cause {
                    CancelCause::Client => StatusCode::REQUEST_TIMEOUT,
                    CancelCause::Stopped | CancelCause::Denied => StatusCode::FORBIDDEN,
                    CancelCause::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
                };
                Self::Problem(problem(&report, status, format!("the call was ended: {cause}")))
            }
            End::Refused(refusal) if refusal.reason == Reason::ApprovalPending => {
                Self::Json(StatusCode::ACCEPTED, waiting(&report))
            }
            End::Refused(refusal) => Self::Problem(refused(&report, refusal)),
        }
    }

    /// As it is kept.
    pub(super) fn known(&self) -> Known {
        match self {
            Self::Json(status, body) => Known {
                status: *status,
                body: body.clone(),
            },
            Self::Problem(problem) => Known {
                status: problem.status(),
                body: Bytes::from(problem.body().to_string()),
            },
        }
    }
}

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        match self {
            Self::Json(status, body) => {
                let headers = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
                (status, headers, body).into_response()
            }
            Self::Problem(problem) => problem.into_response(),
        }
    }
}

fn action_name(summary: &Summary) -> &'static str {
    summary.action.map_or("deny", Action::as_str)
}

fn answered(report: &CallReport, result: &Bytes, error: Option<String>) -> Bytes {
    let raw = serde_json::from_slice::<&RawValue>(result).ok();
    encode(&Answer {
        result: raw,
        error,
        ..blank(report)
    })
}

fn waiting(report: &CallReport) -> Bytes {
    encode(&Answer {
        status: Some("pending"),
        ..blank(report)
    })
}

fn blank(report: &CallReport) -> Answer<'_> {
    let rule = report.summary.rule.as_ref();
    Answer {
        result: None,
        error: None,
        id: &report.id,
        trace_id: &report.trace_id,
        policy: action_name(&report.summary),
        policy_rule: rule.map(|rule| rule.policy.as_str()),
        rule_index: rule.map(|rule| rule.index),
        approval_id: report.approval.as_deref(),
        status: None,
        grant: report.summary.grant.as_deref(),
        revision: report.summary.revision.to_string(),
        latency_ms: u64::try_from(report.latency.as_millis()).unwrap_or(u64::MAX),
    }
}

/// The answer while the approval is pending.
pub(super) fn pending(waiting: &PendingApproval) -> Known {
    let rule = waiting.summary.rule.as_ref();
    let body = encode(&Answer {
        result: None,
        error: None,
        id: &waiting.call,
        trace_id: &waiting.trace_id,
        policy: action_name(&waiting.summary),
        policy_rule: rule.map(|rule| rule.policy.as_str()),
        rule_index: rule.map(|rule| rule.index),
        approval_id: Some(&waiting.approval),
        status: Some("pending"),
        grant: None,
        revision: waiting.summary.revision.to_string(),
        latency_ms: 0,
    });
    Known {
        status: StatusCode::ACCEPTED,
        body,
    }
}

fn encode(answer: &Answer<'_>) -> Bytes {
    serde_json::to_vec(answer).unwrap_or_default().into()
}

/// A problem that says which call it is about.
fn problem(report: &CallReport, status: StatusCode, detail: String) -> Problem {
    let mut problem = Problem::new(status, detail)
        .with("id", &report.id)
        .with("trace_id", &report.trace_id)
        .with("policy", action_name(&report.summary))
        .with(
            "policy_rule",
            report.summary.rule.as_ref().map(|rule| rule.policy.as_str()),
        )
        .with(
            "latency_ms",
            u64::try_from(report.latency.as_millis()).unwrap_or(u64::MAX),
        );
    if let Some(approval) = &report.approval {
        problem = problem.with("approval_id", approval);
    }
    problem
}

/// The problem of a call that did not run.
fn refused(report: &CallReport, refusal: &Refusal) -> Problem {
    if refusal.is_hidden || refusal.reason == Reason::UnknownTool {
        return Problem::not_found(format!("there is no tool {:?} here", report.tool))
            .with("trace_id", &report.trace_id);
    }
    let problem = problem(report, refusal.status(), refusal.message.clone())
        .with("policy", Action::Deny.as_str())
        .with("advice", refusal.advice());
    with_refusal(problem, &report.summary, refusal)
}

/// Adds what every refusal says: its reason, what decided, and when to come back.
pub(super) fn with_refusal(problem: Problem, summary: &Summary, refusal: &Refusal) -> Problem {
    #[derive(Serialize)]
    struct DeniedBy<'a> {
        policy_rule: Option<&'a str>,
        rule_index: Option<usize>,
        floors: Vec<denial::FloorView>,
        revision: String,
    }
    let mut problem = problem.with("reason", refusal.reason.name());
    if summary.action.is_some() {
        let rule = summary.rule.as_ref();
        problem = problem.with(
            "denied_by",
            DeniedBy {
                policy_rule: rule.map(|rule| rule.policy.as_str()),
                rule_index: rule.map(|rule| rule.index),
                floors: denial::floors(summary),
                revision: summary.revision.to_string(),
            },
        );
    }
    if let Some(wait) = refusal.retry_after {
        let seconds = wait.as_millis().div_ceil(1000).max(1);
        problem = problem.with(
            "retry_after_ms",
            u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        );
        if let Ok(seconds) = HeaderValue::try_from(seconds.to_string()) {
            problem = problem.with_header(header::RETRY_AFTER, seconds);
        }
    }
    problem
}

fn failed_status(error: &UpstreamError) -> StatusCode {
    match error {
        UpstreamError::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
        UpstreamError::Unavailable { .. }
        | UpstreamError::Refused { .. }
        | UpstreamError::Lost { .. }
        | UpstreamError::Cancelled { .. }
        | UpstreamError::TooLarge { .. }
        | UpstreamError::Busy { .. }
        | UpstreamError::Status { .. }
        | UpstreamError::Protocol { .. } => StatusCode::BAD_GATEWAY,
    }
}

/// The message of a JSON-RPC error.
fn error_message(raw: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ErrorObject {
        message: String,
    }
    serde_json::from_slice::<ErrorObject>(raw)
        .ok()
        .map(|error| error.message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use policy::decide::RuleRef;
    use serde_json::Value;

    use crate::upstream::{Era, UpstreamAnswer};

    use super::*;

    fn report(end: End) -> CallReport {
        CallReport {
            id: "call".to_owned(),
            trace_id: "trace".to_owned(),
            agent: "a".to_owned(),
            tool: "fs.read".to_owned(),
            summary: Summary {
                action: Some(Action::Allow),
                rule: Some(RuleRef {
                    policy: "support".parse().unwrap(),
                    index: 0,
                }),
                ..Summary::default()
            },
            approval: None,
            upstream: None,
            continuation: None,
            latency: Duration::from_millis(7),
            end,
        }
    }

    fn shown(end: End) -> (u16, Value, String) {
        let known = Outcome::of(report(end)).known();
        let text = String::from_utf8(known.body.to_vec()).unwrap();
        (known.status.as_u16(), serde_json::from_str(&text).unwrap(), text)
    }

    fn answer(kind: AnswerKind, raw: &'static str) -> End {
        End::Answered(UpstreamAnswer {
            kind,
            raw: Bytes::from_static(raw.as_bytes()),
            era: Era::Legacy,
            exit_code: None,
        })
    }

    #[test]
    fn an_answer_names_the_action_as_policy_and_keeps_the_results_bytes() {
        let (status, body, text) = shown(answer(AnswerKind::Result, r#"{"content":[], "n":1.50}"#));
        assert_eq!(status, 200);
        assert_eq!(
            (&body["policy"], &body["policy_rule"]),
            (&"allow".into(), &"support".into())
        );
        assert_eq!(body["latency_ms"], 7);
        assert_eq!(body["trace_id"], "trace");
        assert!(text.contains(r#"{"content":[], "n":1.50}"#), "{text}");
    }

    #[test]
    fn an_upstreams_error_is_a_bad_gateway() {
        let (status, body, _) = shown(answer(AnswerKind::Error, r#"{"code":-32000,"message":"broken"}"#));
        assert_eq!((status, &body["error"]), (502, &"broken".into()));
    }

    #[test]
    fn each_refusal_has_its_status_and_says_what_denied_it() {
        for (reason, expected) in [
            (Reason::Policy, 403),
            (Reason::Stopped, 403),
            (Reason::UnknownTool, 404),
            (Reason::ApprovalTimeout, 408),
            (Reason::RateLimited, 429),
            (Reason::LoopDetected, 429),
            (Reason::NoLease, 503),
            (Reason::AuditUnavailable, 503),
            (Reason::DuplicateKeys, 400),
            (Reason::TooLarge, 413),
        ] {
            let (status, body, _) = shown(End::Refused(Refusal::new(reason, "why")));
            assert_eq!(status, expected, "{reason}");
            assert_eq!(body["error"], body["detail"]);
            if reason != Reason::UnknownTool {
                assert_eq!(body["reason"], reason.name());
                assert_eq!(body["denied_by"]["policy_rule"], "support");
            }
        }
    }

    #[test]
    fn a_hidden_tool_is_answered_like_an_unknown_one() {
        let hidden = shown(End::Refused(Refusal::new(Reason::Policy, "secret rule").hidden()));
        let unknown = shown(End::Refused(Refusal::new(Reason::UnknownTool, "no such tool")));
        assert_eq!(hidden, unknown);
    }

    #[test]
    fn a_call_that_waits_is_accepted() {
        let (status, body, _) = shown(End::Refused(Refusal::new(Reason::ApprovalPending, "")));
        assert_eq!((status, &body["status"]), (202, &"pending".into()));
    }
}
