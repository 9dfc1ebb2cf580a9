//! Refusals towards MCP clients: tool results that a model can read and act on, with the decision beside them.

use chain::vocabulary::Reason;
use policy::document::Action;
use serde::Serialize;

use crate::gate::{CallReport, CancelCause, Refusal, Summary};

/// The `_meta` key of the decision.
const DECISION: &str = "dev.toolgate/decision";

/// A decision as clients and operators read it.
#[derive(Debug, Serialize)]
pub struct DecisionView<'r> {
    action: &'static str,
    reason: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    floors: Vec<FloorView>,
    revision: String,
    tool: &'r str,
    agent: &'r str,
    call_id: &'r str,
    trace_id: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// A floor, as clients and operators read it.
#[derive(Debug, Serialize)]
pub struct FloorView {
    name: String,
    action: &'static str,
}

/// The floors of a decision.
pub fn floors(summary: &Summary) -> Vec<FloorView> {
    let view = |floor: &policy::decide::FloorHit| FloorView {
        name: floor.source.to_string(),
        action: floor.action.as_str(),
    };
    summary.floors.iter().map(view).collect()
}

impl<'r> DecisionView<'r> {
    /// The decision of a call that did not run.
    pub fn of(report: &'r CallReport, refusal: &'r Refusal) -> Self {
        let waits =
            report.summary.action == Some(Action::HumanApproval) && refusal.reason == Reason::ApprovalPending;
        let rule = report.summary.rule.as_ref();
        Self {
            action: if waits {
                Action::HumanApproval.as_str()
            } else {
                Action::Deny.as_str()
            },
            reason: refusal.reason.name(),
            rule: rule.map(|rule| rule.policy.as_str()),
            rule_index: rule.map(|rule| rule.index),
            floors: floors(&report.summary),
            revision: report.summary.revision.to_string(),
            tool: &report.tool,
            agent: &report.agent,
            call_id: &report.id,
            trace_id: &report.trace_id,
            approval_id: report.approval.as_deref(),
            retry_after_ms: refusal
                .retry_after
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// The text for the model.
pub fn text(refusal: &Refusal) -> String {
    format!(
        "Toolgate did not run this call: {}. {}",
        refusal.message.trim_end_matches('.'),
        refusal.advice()
    )
}

/// The structured decision, for the data of a protocol error.
pub fn decision(report: &CallReport, refusal: &Refusal) -> serde_json::Value {
    serde_json::json!({ DECISION: DecisionView::of(report, refusal) })
}

/// A `CallToolResult` that says why the call did not run.
pub fn refused(report: &CallReport, refusal: &Refusal, is_modern: bool) -> Vec<u8> {
    let decision = serde_json::to_value(DecisionView::of(report, refusal)).ok();
    error_result(&text(refusal), decision, is_modern)
}

/// A `CallToolResult` that says why the call was ended while it ran.
pub fn ended(report: &CallReport, cause: CancelCause, is_modern: bool) -> Vec<u8> {
    let text = format!("Toolgate ended this call while it ran: {cause}. It may have taken effect.");
    let reason = match cause {
        CancelCause::Client => Reason::ClientCancelled,
        CancelCause::Stopped => Reason::Stopped,
        CancelCause::Denied => Reason::Policy,
        CancelCause::ShuttingDown => Reason::ShuttingDown,
    };
    let refusal = Refusal::new(reason, text.clone());
    let decision = serde_json::to_value(DecisionView::of(report, &refusal)).ok();
    error_result(&text, decision, is_modern)
}

/// A `CallToolResult` that says what went wrong with a call that was allowed.
pub fn failed(text: &str, is_modern: bool) -> Vec<u8> {
    error_result(text, None, is_modern)
}

fn error_result(text: &str, decision: Option<serde_json::Value>, is_modern: bool) -> Vec<u8> {
    #[derive(Serialize)]
    struct Content<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    #[derive(Serialize)]
    struct Outcome<'a> {
        #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
        result_type: Option<&'static str>,
        content: [Content<'a>; 1],
        #[serde(rename = "isError")]
        is_error: bool,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<serde_json::Value>,
    }
    let outcome = Outcome {
        result_type: is_modern.then_some("complete"),
        content: [Content { r#type: "text", text }],
        is_error: true,
        meta: decision.map(|decision| serde_json::json!({ DECISION: decision })),
    };
    serde_json::to_vec(&outcome).unwrap_or_else(|_| br#"{"content":[],"isError":true}"#.to_vec())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use policy::decide::RuleRef;
    use serde_json::{Value, json};

    use crate::gate::End;

    use super::*;

    fn report(action: Action, approval: Option<&str>) -> CallReport {
        CallReport {
            id: "call".to_owned(),
            trace_id: "trace".to_owned(),
            agent: "a".to_owned(),
            tool: "fs.delete".to_owned(),
            summary: Summary {
                action: Some(action),
                rule: Some(RuleRef {
                    policy: "support".parse().unwrap(),
                    index: 2,
                }),
                ..Summary::default()
            },
            approval: approval.map(str::to_owned),
            upstream: None,
            continuation: None,
            latency: Duration::ZERO,
            end: End::Refused(Refusal::new(Reason::Policy, "")),
        }
    }

    fn shown(report: &CallReport, refusal: &Refusal, is_modern: bool) -> Value {
        serde_json::from_slice(&refused(report, refusal, is_modern)).unwrap()
    }

    #[test]
    fn a_denial_is_a_tool_result_that_says_why_and_what_to_do() {
        let refusal = Refusal::new(Reason::Policy, "fs.delete is denied: policy \"support\", rule 2");
        let result = shown(&report(Action::Deny, None), &refusal, false);
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["type"], "text");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("policy \"support\", rule 2") && text.contains("Do not retry"),
            "{text}"
        );
        let decision = &result["_meta"]["dev.toolgate/decision"];
        assert_eq!(decision["action"], "deny");
        assert_eq!(decision["reason"], "policy");
        assert_eq!(
            (&decision["rule"], &decision["rule_index"]),
            (&json!("support"), &json!(2))
        );
        assert_eq!(result.get("resultType"), None);
        assert_eq!(
            shown(&report(Action::Deny, None), &refusal, true)["resultType"],
            "complete"
        );
    }

    #[test]
    fn a_pending_approval_is_named() {
        let refusal = Refusal::new(
            Reason::ApprovalPending,
            "fs.delete needs the approval of a person",
        );
        let result = shown(&report(Action::HumanApproval, Some("ab12")), &refusal, false);
        let decision = &result["_meta"]["dev.toolgate/decision"];
        assert_eq!(decision["action"], "human_approval");
        assert_eq!(decision["approval_id"], "ab12");
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .contains("again later")
        );
    }

    #[test]
    fn a_limit_says_when_to_come_back() {
        let refusal = Refusal::new(Reason::RateLimited, "limit").retry_after(Duration::from_millis(1500));
        let result = shown(&report(Action::Deny, None), &refusal, false);
        assert_eq!(result["_meta"]["dev.toolgate/decision"]["retry_after_ms"], 1500);
    }
}
