use super::*;
use crate::PolicySet;
use crate::testing::{catalogue, policies};

const POLICIES: &str = "name: support\nagent: 'support-*'\nrules:\n  \
    - {tools: [create_refund], action: allow, condition: {field: amount, operator: '<', value: 500}}\n  \
    - {tools: ['mail.*'], access: read, action: allow}\n  \
    - {tools: [files.*], paths: [/data/*], action: allow}\n  \
    - {tools: ['mail.*'], user: ['ann'], action: human_approval}\n  \
    - {tools: ['*'], action: deny}\n";

fn run(text: &str) -> Vec<Outcome> {
    let suite = Suite::parse("s.test.yaml", text).unwrap_or_else(|problems| panic!("{problems:?}"));
    suite.run(&PolicySet::compile(policies(POLICIES)), &catalogue())
}

#[test]
fn lists_and_matrices_are_spread_out_and_compared() {
    let outcomes = run("
defaults: {agent: [support-1, support-2]}
tests:
  - tool: create_refund
    params: [{amount: 300}, {amount: 1e2}]
    action: allow
    rule: support#0
  - {tool: create_refund, params: {amount: '300'}, action: deny}
  - {tool: mail.send_mail, user: ann, rule: support}
  - {tool: files.delete_file, paths: [/data/../etc], action: deny}
  - {tool: files.delete_file, paths: [/data/x], action: allow}
  - {tool: mail.list_mails, floors: pin:new, action: deny}
  - matrix:
      support-9: {mail.list_mails: allow, mail.send_mail: deny}
");
    assert_eq!(outcomes.len(), 4 + 2 * 5 + 2);
    let failed: Vec<_> = outcomes.iter().filter(|one| !one.passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_failed_case_says_what_was_decided_instead() {
    let outcomes = run("- {agent: support-1, tool: box.run, action: allow, rule: support#0}");
    assert!(!outcomes[0].passed);
    assert_eq!(outcomes[0].expected, "allow by support#0");
    assert_eq!(
        (outcomes[0].action, outcomes[0].rule.as_deref()),
        (Some(Action::Deny), Some("support#4"))
    );
}

#[test]
fn every_problem_of_a_test_file_is_told_with_its_place() {
    let problems = Suite::parse(
        "s.test.yaml",
        "tests:\n  - {agent: a, tool: x, acton: allow}\n  - {agent: a, tool: x}\n  - {tool: x, action: alow}\n  - matrix: {a: {x: allow}}\n    tool: y\n",
    )
    .unwrap_err();
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(lines[0].contains("unknown key \"acton\""), "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| line.contains(":3:") && line.contains("asserts nothing")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("did you mean \"allow\"")),
        "{lines:?}"
    );
    assert!(
        lines.iter().any(|line| line.contains("matrix stands in place")),
        "{lines:?}"
    );
}

#[test]
fn lists_cannot_make_endlessly_many_cases() {
    let agents: Vec<String> = (0..200).map(|number| format!("a{number}")).collect();
    let list = agents.join(", ");
    let text = format!("- {{agent: [{list}], tool: [{list}], action: deny}}");
    assert!(
        Suite::parse("s.test.yaml", &text).unwrap_err()[0]
            .message
            .contains("more than")
    );
}

#[test]
fn tests_written_from_records_hold() {
    let observed = |params: &str, action| Observed {
        agent: "support-1".to_owned(),
        user: Some("ann: \"x\"".to_owned()),
        namespace: "default".to_owned(),
        tool: "create_refund".to_owned(),
        params: params.to_owned(),
        risks: vec!["UNKNOWN".to_owned()],
        floors: vec![Floor::PIN_CHANGED],
        targets: vec![("paths".to_owned(), vec!["/a".to_owned()])],
        action,
        policy: Some("support".to_owned()),
        record: "r1".to_owned(),
    };
    let text = write(&[
        observed(
            r#"{"amount":12.50,"note":"a: [b] #c\n\u0001","deep":{"l":[1,null,true]}}"#,
            Action::HumanApproval,
        ),
        observed(
            r#"{"amount":12.50,"note":"a: [b] #c\n\u0001","deep":{"l":[1,null,true]}}"#,
            Action::HumanApproval,
        ),
        observed("{}", Action::Deny),
    ]);
    let outcomes = run(&text);
    assert_eq!(outcomes.len(), 2, "{text}");
    assert!(outcomes.iter().all(|one| one.passed), "{text}\n{outcomes:#?}");
    assert!(run(&write(&[])).is_empty());
}
