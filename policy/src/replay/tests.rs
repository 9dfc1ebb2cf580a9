use super::*;
use crate::testing::{catalogue, policies};

fn recorded(id: &str, tool: &str, params: Option<&str>, action: Action) -> Recorded {
    Recorded {
        id: id.to_owned(),
        agent: "a".parse().unwrap(),
        user: None,
        session: None,
        namespace: Namespace::default(),
        tool: tool.parse().unwrap(),
        params: params.map(str::to_owned),
        action,
        risks: RiskSet::EMPTY,
        capability: None,
        side_effect: None,
        targets: Targets::UNKNOWN,
        floors: Vec::new(),
    }
}

fn again(rules: &str, calls: &[Recorded]) -> Replay {
    let set = PolicySet::compile(policies(&format!("name: p\nagent: a\nrules: [{rules}]")));
    replay(&set, &catalogue(), calls)
}

#[test]
fn outcomes_that_change_are_counted_by_agent_and_tool() {
    let calls = [
        recorded("1", "mail.send_mail", Some("{}"), Action::Allow),
        recorded("2", "mail.send_mail", Some("{}"), Action::Allow),
        recorded("3", "mail.list_mails", Some("{}"), Action::Allow),
    ];
    let done = again(
        "{tools: [mail.list_mails], action: allow}, {action: human_approval}",
        &calls,
    );
    assert_eq!((done.replayed, done.same, done.changes.len()), (3, 1, 1));
    let group = &done.changes[0];
    assert_eq!(
        (group.from, group.to, group.count),
        (Action::Allow, Action::HumanApproval, 2)
    );
    assert_eq!(group.records, ["1", "2"]);
}

#[test]
fn calls_that_rest_on_what_was_redacted_are_not_replayed() {
    let test = |field: &str| {
        format!(
            "{{action: deny, condition: {{field: '{field}', operator: contains, value: x}}}}, {{action: allow}}"
        )
    };
    let masked = Some(r#"{"to":"ann","body":{"key":"[redacted, 5 bytes]"},"l":["a","[redacted, 2 bytes]"]}"#);
    for (field, params, expected) in [
        ("to", masked, true),
        ("body.key", masked, false),
        ("l[*]", masked, false),
        ("l[0]", masked, true),
        ("to", None, false),
    ] {
        let done = again(
            &test(field),
            &[recorded("1", "mail.send_mail", params, Action::Allow)],
        );
        assert_eq!(
            done.not_replayed.is_empty(),
            expected,
            "{field} {:?}",
            done.not_replayed
        );
    }
    let done = again(
        "{action: allow}",
        &[recorded("1", "mail.send_mail", None, Action::Allow)],
    );
    assert_eq!(done.same, 1, "without conditions the arguments are not needed");
}
