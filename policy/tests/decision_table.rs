//! The table of specs/policy.md, row by row.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking"
)]

mod support;

use policy::Action;
use support::{Asked, ask, rules};
use tools::classify::{Risk, RiskSet};
use tools::targets::Extent;

#[track_caller]
fn row(written: &str, asked: &Asked, expected: Action) {
    let decision = asked.decide(&rules(written));
    assert_eq!(
        decision.action, expected,
        "{written} on {}: {decision:?}",
        asked.arguments
    );
}

fn call(arguments: &str) -> Asked {
    ask("x.run", arguments)
}

const DENY: &str = "{action: deny}";
const ALLOW: &str = "{action: allow}";

fn rule(action: &str, condition: &str) -> String {
    format!("{{action: {action}, condition: {condition}}}")
}

fn test(field: &str, operator: &str, value: &str) -> String {
    format!("{{field: '{field}', operator: '{operator}', value: {value}}}")
}

#[test]
fn an_allow_below_an_amount_does_not_hold_without_one_or_for_a_text() {
    let written = format!("{}, {DENY}", rule("allow", &test("amount", "<", "500")));
    row(&written, &call("{}"), Action::Deny);
    row(&written, &call(r#"{"amount": "300"}"#), Action::Deny);
    row(&written, &call(r#"{"amount": 300}"#), Action::Allow);
}

#[test]
fn an_undecided_approval_before_a_deny_is_denied() {
    let written = format!(
        "{}, {DENY}",
        rule("human_approval", &test("env", "==", "staging"))
    );
    row(&written, &call("{}"), Action::Deny);
    row(&written, &call(r#"{"env": "staging"}"#), Action::HumanApproval);
}

#[test]
fn a_negated_operator_is_undecided_for_a_missing_field() {
    let written = format!(
        "{}, {DENY}",
        rule("allow", &test("path", "not_contains", "'.env'"))
    );
    row(&written, &call("{}"), Action::Deny);
    row(&written, &call(r#"{"path": "a"}"#), Action::Allow);
}

#[test]
fn a_deny_of_not_holds_for_a_text_instead_of_a_number() {
    let written = format!(
        "{}, {ALLOW}",
        rule("deny", &format!("{{not: {}}}", test("amount", "<", "500")))
    );
    row(&written, &call(r#"{"amount": "3"}"#), Action::Deny);
    row(&written, &call(r#"{"amount": 3}"#), Action::Allow);
}

#[test]
fn one_true_test_is_enough_for_any() {
    let any = format!(
        "{{any: [{}, {}]}}",
        test("cmd", "contains", "rm"),
        test("force", "==", "true")
    );
    let written = format!("{}, {ALLOW}", rule("deny", &any));
    row(&written, &call(r#"{"cmd": "rm x"}"#), Action::Deny);
    row(&written, &call(r#"{"cmd": "ls", "force": false}"#), Action::Allow);
}

#[test]
fn leaving_the_amount_out_asks_for_approval() {
    let written = format!("{}, {ALLOW}", rule("human_approval", &test("amount", ">", "500")));
    row(&written, &call("{}"), Action::HumanApproval);
    row(&written, &call(r#"{"amount": 500}"#), Action::Allow);
}

#[test]
fn a_false_test_decides_all_although_another_is_undecided() {
    let all = format!(
        "{{all: [{}, {}]}}",
        test("path", "starts_with", "/data"),
        test("mode", "==", "r")
    );
    let written = format!("{}, {{action: human_approval}}", rule("allow", &all));
    row(&written, &call(r#"{"path": "/etc"}"#), Action::HumanApproval);
    row(
        &written,
        &call(r#"{"path": "/data/x", "mode": "r"}"#),
        Action::Allow,
    );
}

#[test]
fn one_recipient_outside_is_enough() {
    let written = format!(
        "{}, {ALLOW}",
        rule("deny", &test("to[*]", "not_ends_with", "'@corp.com'"))
    );
    row(
        &written,
        &call(r#"{"to": ["a@corp.com", "b@else.com"]}"#),
        Action::Deny,
    );
    row(&written, &call(r#"{"to": ["a@corp.com"]}"#), Action::Allow);
}

#[test]
fn every_element_must_be_known_and_there_must_be_one() {
    let written = format!(
        "{}, {DENY}",
        rule("allow", &test("items[every].price", "<", "500"))
    );
    row(
        &written,
        &call(r#"{"items": [{"price": 100}, "x"]}"#),
        Action::Deny,
    );
    row(&written, &call(r#"{"items": []}"#), Action::Deny);
    row(&written, &call(r#"{"items": [{"price": 100}]}"#), Action::Allow);
}

#[test]
fn an_unknown_tool_may_be_one_that_deletes() {
    row(
        &format!("{{risk: [DELETE], action: deny}}, {ALLOW}"),
        &call("{}"),
        Action::Deny,
    );
}

#[test]
fn a_pipe_that_executes_is_no_read() {
    let mut asked = call("{}");
    let mut risks = RiskSet::of(Risk::Read);
    risks.insert(Risk::Execution);
    asked.classification.risks = risks;
    let written = "{risk: [READ], action: allow}, {action: human_approval}";
    row(written, &asked, Action::HumanApproval);
    asked.classification.risks = RiskSet::of(Risk::Read);
    row(written, &asked, Action::Allow);
}

#[test]
fn every_column_must_be_allowed() {
    let mut asked = ask("db.query", "{}");
    let written = format!("{{columns: [users.name], tools: [db.query], action: allow}}, {DENY}");
    let columns = |names: &[&str]| Extent::Known(names.iter().map(|name| (*name).to_owned()).collect());
    asked.targets.columns = columns(&["users.name", "users.ssn"]);
    row(&written, &asked, Action::Deny);
    asked.targets.columns = columns(&["users.name"]);
    row(&written, &asked, Action::Allow);
    asked.targets.columns = Extent::Unknown;
    row(&written, &asked, Action::Deny);
}

#[test]
fn a_tool_without_the_field_is_hit_by_a_deny_on_it() {
    let written = format!(
        "{{tools: ['*'], action: deny, condition: {}}}, {ALLOW}",
        test("command", "contains", "mkfs")
    );
    row(&written, &call(r#"{"path": "/"}"#), Action::Deny);
}
