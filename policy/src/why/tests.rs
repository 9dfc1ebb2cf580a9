use tools::id::{AgentId, Namespace, ToolName};
use tools::json::{Document, Limits};
use tools::targets::Targets;

use super::*;
use crate::testing::{catalogue, policies};

fn why(text: &str, tool: &str, arguments: &str) -> Why {
    let set = PolicySet::compile(policies(text));
    let (namespace, agent) = (Namespace::default(), "a".parse::<AgentId>().unwrap());
    let tool: ToolName = tool.parse().unwrap();
    let known = catalogue().get_or_unknown(&tool);
    let document = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
    set.why(&Call {
        namespace: &namespace,
        agent: &agent,
        user: None,
        session: None,
        tool: &tool,
        classification: known.classification(),
        targets: &Targets::UNKNOWN,
        arguments: Some(document.root()),
        floors: &[],
    })
}

#[test]
fn the_smallest_changes_of_rule_and_argument_flip_the_decision() {
    let text = "name: p\nagent: a\nrules:\n  - {tools: [shop.refund], action: allow, condition: {field: amount, operator: '<', value: 500}}\n  \
                - {tools: ['*'], action: deny}\n";
    let why = why(text, "shop.refund", r#"{"amount":900,"to":"x"}"#);
    assert_eq!((why.action, why.rule.as_deref()), (Action::Deny, Some("p#1")));
    assert_eq!(why.path.len(), 2);
    let first = &why.argument_changes[0];
    assert_eq!(
        (first.field.as_str(), first.value.as_deref(), first.action),
        ("amount", Some("499"), Action::Allow)
    );
    let changes: Vec<_> = why
        .rule_changes
        .iter()
        .map(|one| (one.change.as_str(), one.action))
        .collect();
    assert!(
        changes.contains(&("rule 1 of \"p\" (p.yaml:5): action deny -> allow", Action::Allow)),
        "{changes:?}"
    );
}

#[test]
fn an_undecided_rule_can_be_settled_by_the_missing_argument() {
    let text = "name: p\nagent: a\nrules: [{action: deny, condition: {field: 'to[*].mail', operator: ends_with, value: '@x.com'}}, {action: allow}]";
    let why = why(text, "mail.send_mail", "{}");
    assert_eq!((why.action, why.reason), (Action::Deny, "undecided"));
    let put = why
        .argument_changes
        .iter()
        .find(|one| one.action == Action::Allow)
        .unwrap();
    assert_eq!(put.field, "to[*].mail");
}

#[test]
fn without_a_rule_the_proposal_is_a_new_one() {
    let why = why(
        "name: p\nagent: b\nrules: [{action: deny}]",
        "mail.send_mail",
        "{}",
    );
    assert_eq!(why.reason, "no_rule");
    assert!(
        why.rule_changes[0]
            .change
            .contains("add a policy for agent \"a\"")
    );
}

#[test]
fn a_guardrail_is_never_relaxed_by_a_standard_rule() {
    let text = "name: p\nagent: a\nrules: [{action: allow}]\n---\nname: g\nagent: '*'\nkind: guardrail\nrules: [{tools: [box.*], action: deny}]";
    let why = why(text, "box.run", "{}");
    assert_eq!(why.floors, [("guardrail:g".to_owned(), Action::Deny)]);
    assert!(
        why.rule_changes.iter().all(|one| one.change.contains("\"g\"")),
        "{:?}",
        why.rule_changes
    );
}
