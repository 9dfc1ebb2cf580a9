use super::*;
use crate::testing::{catalogue, policies, programs};

fn recorded(id: &str, tool: &str, params: Option<&str>, action: Action) -> Recorded {
    Recorded {
        id: id.to_owned(),
        agent: "a".parse().unwrap(),
        user: None,
        session: None,
        namespace: Namespace::default(),
        tool: tool.parse().unwrap(),
        params: params.map(str::to_owned),
        argv: None,
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

fn run_as(tool: &str, argv: Option<&[&str]>) -> Recorded {
    Recorded {
        argv: argv.map(|argv| argv.iter().map(|text| (*text).to_owned()).collect()),
        ..recorded("1", tool, Some("{}"), Action::Allow)
    }
}

fn run_again(rules: &str, call: Recorded) -> Replay {
    let set = PolicySet::compile(policies(&format!("name: p\nagent: a\nrules: [{rules}]")));
    replay(&set, &programs(), &[call])
}

#[test]
fn a_programs_call_is_decided_by_everything_that_it_can_mean() {
    let merging = "{tools: [gh.pr.merge], action: deny}, {tools: ['gh.*', jq.run], action: allow}";
    for (tool, argv, rules, expected) in [
        ("gh.pr.merge", &["pr", "merge"][..], merging, Action::Deny),
        ("gh.__dispatch", &["pr", "merge", "7"], merging, Action::Deny),
        ("gh.pr", &["pr", "merge"], merging, Action::Deny),
        (
            "gh.__dispatch",
            &["pr", "--repo", "x", "merge"],
            merging,
            Action::Deny,
        ),
        ("gh.pr.list", &["pr", "list"], merging, Action::Allow),
        // What is not declared has the floor of the program.
        (
            "gh.__dispatch",
            &["issue", "close", "7"],
            merging,
            Action::HumanApproval,
        ),
        (
            "gh.__dispatch",
            &["issue", "close"],
            "{tools: [gh.issue], action: deny}, {action: allow}",
            Action::Deny,
        ),
        ("jq.run", &["merge"], merging, Action::Allow),
    ] {
        let done = run_again(rules, run_as(tool, Some(argv)));
        assert_eq!(done.not_replayed, Vec::new(), "{tool} {argv:?}");
        let to = done.changes.first().map_or(Action::Allow, |group| group.to);
        assert_eq!(to, expected, "{tool} {argv:?}");
    }
}

#[test]
fn a_programs_call_whose_meaning_was_not_kept_is_not_replayed() {
    let allow = "{action: allow}";
    for (argv, reason) in [
        (None, "was not kept"),
        (
            Some(&["pr", "--token", "[redacted, 5 bytes]"][..]),
            "was redacted",
        ),
        (Some(&["pr", "[redacted, 5 bytes]"][..]), "was redacted"),
    ] {
        let done = run_again(allow, run_as("gh.__dispatch", argv));
        assert!(done.not_replayed[0].reason.contains(reason), "{argv:?}: {done:?}");
    }
    // No command can stand there any more.
    let late: &[&str] = &["pr", "list", "7", "8", "--token", "[redacted, 5 bytes]"];
    assert_eq!(run_again(allow, run_as("gh.pr.list", Some(late))).same, 1);
    assert_eq!(run_again(allow, run_as("jq.run", None)).same, 1);
}

#[test]
fn the_command_on_which_a_decision_rests_is_the_one_that_is_explained() {
    let set = PolicySet::compile(policies(
        "name: p\nagent: a\nrules: [{tools: [gh.pr.merge], action: deny}, {action: allow}]",
    ));
    let about = |tool: &str, argv: &[&str]| {
        let call = run_as(tool, Some(argv));
        with_call(&programs(), &call, &set, |call| call.tool.to_string()).unwrap()
    };
    assert_eq!(about("gh.__dispatch", &["pr", "merge"]), "gh.pr.merge");
    assert_eq!(about("gh.pr.list", &["pr", "list"]), "gh.pr.list");

    let is_of_one = |tool: &str, argv: &[&str]| is_of_one_name(&programs(), &run_as(tool, Some(argv)));
    assert!(is_of_one("gh.pr.list", &["pr", "list"]) && is_of_one("jq.run", &["."]));
    assert!(!is_of_one("gh.__dispatch", &["pr", "merge"]));
    assert!(!is_of_one("gh.pr.list", &["pr", "--repo", "list"]));
}
