use super::*;
use crate::document::Lists;

const NOTE: Note<'_> = Note {
    by: "ann",
    date: "2026-11-30",
};

fn ask(text: &str, tool: &str, change: Change, deciding: Option<usize>) -> Result<Edit, EditRefused> {
    let lists: Lists = [("mail".to_owned(), vec!["mail.send".to_owned()])]
        .into_iter()
        .collect();
    set_action(
        text,
        "a.yaml",
        &EditRequest {
            policy: &"a".parse().unwrap(),
            tool: &tool.parse().unwrap(),
            change,
            deciding,
            note: NOTE,
            lists: &lists,
        },
    )
}

fn set(text: &str, tool: &str, action: Action, deciding: Option<usize>) -> String {
    ask(text, tool, Change::Set(action), deciding).unwrap().text
}

fn refusal(text: &str, tool: &str, change: Change) -> String {
    ask(text, tool, change, None).unwrap_err().to_string()
}

const ALLOW: Change = Change::Set(Action::Allow);

#[test]
fn a_new_rule_goes_right_before_the_rule_that_decides_and_above_its_comments() {
    let text = "name: a\nagent: a\nrules:\n- tools: ['x.*'] # x\n  action: allow\n\n# all\n# the rest\n- action: deny\n# end\n";
    assert_eq!(
        set(text, "db.q", Action::HumanApproval, Some(1)),
        "name: a\nagent: a\nrules:\n- tools: ['x.*'] # x\n  action: allow\n\n# set from console, 2026-11-30 by ann\n\
         - tools: [\"db.q\"]\n  action: human_approval\n# all\n# the rest\n- action: deny\n# end\n"
    );
    assert_eq!(
        set(text, "x.y", Action::Deny, Some(0)),
        text.replace(
            "rules:\n",
            "rules:\n# set from console, 2026-11-30 by ann\n- tools: [\"x.y\"]\n  action: deny\n"
        )
    );
}

#[test]
fn a_new_rule_goes_behind_the_last_one_when_the_policy_does_not_decide() {
    let text = "rules:\n   -  tools: x.*\n      action: deny\n      # never\n\n   # end\nagent: a\nname: a\n";
    assert_eq!(
        set(text, "db.q", Action::Allow, None),
        "rules:\n   -  tools: x.*\n      action: deny\n      # never\n   # set from console, 2026-11-30 by ann\n   \
         -  tools: [\"db.q\"]\n      action: allow\n\n   # end\nagent: a\nname: a\n"
    );
}

#[test]
fn a_rule_that_names_the_tool_is_rewritten_in_place() {
    for (now, then) in [
        ("allow", "deny"),
        ("'allow'", "'deny'"),
        ("\"allow\"  # why", "\"deny\"  # why"),
    ] {
        let text = format!(
            "\u{feff}name: a\r\nagent: é\r\nrules:\r\n  - {{action: deny}}\r\n  - action: {now}\r\n    tools: db.q\r\n    message: é"
        );
        let text = text.replace("agent: é", "agent: a # é");
        let edit = ask(&text, "db.q", Change::Set(Action::Deny), Some(0)).unwrap();
        assert_eq!(edit.text, text.replace(now, then));
        assert_eq!((edit.outcome, edit.rule), (Outcome::Rewritten, Some(1)));
    }
    let flow = "name: a\nagent: a\nrules:\n  - {tools: [db.q], action: allow}\n";
    assert_eq!(
        set(flow, "db.q", Action::Deny, Some(0)),
        flow.replace("allow", "deny")
    );
}

#[test]
fn what_is_said_already_is_not_written_again() {
    let text = "name: a\nagent: a\nrules:\n  - tools: [db.q]\n    action: allow\n";
    let edit = ask(text, "db.q", ALLOW, Some(0)).unwrap();
    assert_eq!((edit.text.as_str(), edit.outcome), (text, Outcome::Unchanged));
    let edit = ask(text, "db.other", Change::Inherit, Some(0)).unwrap();
    assert_eq!((edit.text.as_str(), edit.outcome), (text, Outcome::Unchanged));
}

#[test]
fn a_rule_with_more_to_it_is_not_the_rule_of_the_tool() {
    let rules = [
        "tools: [db.q, db.r]",
        "tools: [db.*]",
        "tools: [db.q]\n    risk: [READ]",
        "tools: [db.q]\n    except: [db.x]",
        "tools: [db.q]\n    condition: {field: a, operator: exists}",
        "risk: [READ]",
    ];
    for rule in rules {
        let text = format!("name: a\nagent: a\nrules:\n  - {rule}\n    action: deny\n");
        let edit = ask(&text, "db.q", ALLOW, None).unwrap_or_else(|error| panic!("{rule}: {error}"));
        assert_eq!((edit.outcome, edit.rule), (Outcome::Inserted, Some(1)), "{rule}");
    }
    let listed = "name: a\nagent: a\nrules:\n  - tools: ['@mail']\n    action: deny\n";
    assert_eq!(
        ask(listed, "mail.send", ALLOW, Some(0)).unwrap().outcome,
        Outcome::Inserted
    );
}

#[test]
fn what_was_set_from_here_can_be_changed_and_undone() {
    for text in [
        "name: a\nagent: a\nrules:\n  - action: deny",
        "name: a\nagent: a\nrules:\n  - action: deny\n",
        "name: a\r\nagent: a\r\nrules:\r\n- action: deny\r\n\r\n# end",
        "name: a\r\nagent: a\r\nrules:\r\n- action: deny",
    ] {
        for deciding in [Some(0), None] {
            let once = set(text, "db.q", Action::Allow, deciding);
            let twice = set(&once, "db.q", Action::Deny, None);
            assert_eq!(twice, once.replace("allow", "deny"));
            let back = ask(&twice, "db.q", Change::Inherit, None).unwrap();
            assert_eq!((back.text.as_str(), back.outcome), (text, Outcome::Removed));
        }
    }
}

#[test]
fn the_comment_of_a_rule_says_who_changed_it_last() {
    let text = "name: a\nagent: a\nrules:\n  # set from console, 2020-01-01 by bob\n  - tools: [\"db.q\"]\n    action: allow\n";
    let then = set(text, "db.q", Action::Deny, None);
    assert_eq!(
        then,
        text.replace("2020-01-01 by bob", "2026-11-30 by ann")
            .replace("allow", "deny")
    );
}

#[test]
fn what_somebody_wrote_is_not_removed() {
    let by_hand = "name: a\nagent: a\nrules:\n  - tools: [\"db.q\"]\n    action: allow\n  - action: deny\n";
    assert!(
        refusal(by_hand, "db.q", Change::Inherit)
            .contains("a.yaml:4 the rule for this tool was written by hand")
    );
    let set = set(
        "name: a\nagent: a\nrules:\n  - action: deny\n",
        "db.q",
        Action::Allow,
        Some(0),
    );
    for touched in [
        set.replace("allow\n", "allow\n    message: mine\n"),
        set.replace("allow\n", "allow # mine\n"),
        set.replace("[\"db.q\"]", "['db.q']"),
    ] {
        let said = refusal(&touched, "db.q", Change::Inherit);
        assert!(said.contains("changed by hand"), "{said}\n{touched}");
    }
    let only =
        "name: a\nagent: a\nrules:\n  # set from console, x by y\n  - tools: [\"db.q\"]\n    action: allow\n";
    assert!(refusal(only, "db.q", Change::Inherit).contains("only rule"));
    // What looks like the comment belongs to the message before it.
    let inside = "name: a\nagent: a\nrules:\n- action: deny\n  message: >-\n   x\n   # set from console, x by y\n- tools: [\"db.q\"]\n  action: allow\n";
    assert!(refusal(inside, "db.q", Change::Inherit).contains("by hand"));
}

#[test]
fn a_new_document_holds_one_rule_and_is_gone_when_that_is_undone() {
    let agent = "o'neil \"x\"\u{202e}".parse().unwrap();
    let request = |tool, change| EditRequest {
        policy: Box::leak(Box::new("a".parse().unwrap())),
        tool,
        change,
        deciding: None,
        note: NOTE,
        lists: Box::leak(Box::new(Lists::none())),
    };
    let (tool, other) = ("db.q".parse().unwrap(), "db.r".parse().unwrap());
    let text = new_document(&"a".parse().unwrap(), &agent, &request(&tool, ALLOW)).unwrap();
    assert_eq!(
        text,
        "# made from console, 2026-11-30 by ann\nname: \"a\"\nagent: \"o'neil \\\"x\\\"\\u202E\"\nrules:\n  \
         # set from console, 2026-11-30 by ann\n  - tools: [\"db.q\"]\n    action: allow\n"
    );
    let more = set_action(&text, "a", &request(&other, ALLOW)).unwrap().text;
    let less = set_action(&more, "a", &request(&other, Change::Inherit))
        .unwrap()
        .text;
    assert_eq!(less, text);
    let gone = set_action(&text, "a", &request(&tool, Change::Inherit)).unwrap();
    assert_eq!((gone.text.as_str(), gone.outcome), ("", Outcome::Emptied));
    let kept = text.replace("rules:", "rate_limit: {max_total: 3}\nrules:");
    assert!(set_action(&kept, "a", &request(&tool, Change::Inherit)).is_err());
    assert!(
        new_document(
            &"a".parse().unwrap(),
            &"a*".parse().unwrap(),
            &request(&tool, ALLOW)
        )
        .is_err()
    );
}

#[test]
fn what_cannot_be_edited_safely_is_refused_with_the_reason() {
    let cases = [
        (
            "name: a\nagent: a\nrules: [{action: deny}]\n",
            "a.yaml:3 the rules are written in brackets",
        ),
        (
            "{name: a, agent: a, rules: [{action: deny}]}\n",
            "a.yaml:1 the rules are written in brackets",
        ),
        (
            "name: a\nagent: a\nrules: &r\n  - action: deny\n",
            "a.yaml:3 an anchor, an alias or a tag",
        ),
        (
            "name: a\nagent: a\nrules:\n  - &r {action: deny}\n",
            "a.yaml:4 an anchor, an alias or a tag",
        ),
        ("name: a\nagent: a\nrules:\n  -\taction: deny\n", "dash"),
        (
            "name: a\nagent: a\nrules:\n  -\n    action: deny\n",
            "a.yaml:5 the rule does not start on the line of its dash",
        ),
        ("name: a\nagent: a\n? rules\n: - action: deny\n", "dash"),
        ("name: a\ragent: a\rrules:\r  - action: deny\r", "carriage return"),
        (
            "name: a\nagent: a\nrules:\n  - tools: [db.q]\n    action: &x deny\n",
            "a.yaml:5 an anchor",
        ),
        (
            "name: a\nagent: a\nrules:\n  - tools: [db.q]\n    action: !!str deny\n",
            "a.yaml:5 an anchor",
        ),
        (
            "name: a\nagent: a\nrules:\n  - tools: [db.q]\n    action: >-\n      deny\n",
            "a.yaml:6 the action",
        ),
        (
            "name: a\nagent: a\nrules:\n  - tools: [db.q]\n    action: \"de\\\n      ny\"\n",
            "a.yaml:5 the action",
        ),
        (
            "name: &n deny\nagent: a\nrules:\n  - tools: [db.q]\n    action: *n\n",
            "a.yaml holds no policy",
        ),
        (
            "name: a\nagent: &n deny\nrules:\n  - tools: [db.q]\n    action: *n\n",
            "a.yaml:5 an anchor",
        ),
        (
            "name: a\nagent: a\nrules:\n  - action: perhaps\n",
            "a.yaml is not valid, so it is not edited: a.yaml:4:13",
        ),
        (
            "name: b\nagent: a\nrules:\n  - action: deny\n",
            "holds no policy \"a\"",
        ),
    ];
    for (text, reason) in cases {
        let said = refusal(text, "db.q", ALLOW);
        assert!(said.contains(reason), "{said}\n{text}");
    }
}

#[test]
fn names_that_would_be_patterns_are_refused() {
    let text = "name: a\nagent: a\nrules:\n  - action: deny\n";
    for tool in ["db.*", "db.q?", "db.[q]", "@mail", "db.{x}", "db.\\x"] {
        assert!(
            refusal(text, tool, ALLOW).contains("cannot be named literally"),
            "{tool}"
        );
    }
    let odd = set(
        text,
        "db.resource:file:///a b#c: \"d\" - é\u{200b}",
        Action::Allow,
        Some(0),
    );
    assert!(odd.contains("- tools: [\"db.resource:file:///a b#c: \\\"d\\\" - é\\u200B\"]\n"));
}

#[test]
fn a_name_cannot_bring_lines_into_the_file() {
    let text = "name: a\nagent: a\nrules:\n  - action: deny\n";
    let note = Note {
        by: " eve\r\n  - action: allow\u{2028}\u{85}\u{202e}x\0 ",
        date: "2026-11-30\n- x: y",
    };
    let request = EditRequest {
        policy: &"a".parse().unwrap(),
        tool: &"db.q".parse().unwrap(),
        change: ALLOW,
        deciding: Some(0),
        note,
        lists: &Lists::none(),
    };
    let after = set_action(text, "a.yaml", &request).unwrap().text;
    assert!(
        after.contains("  # set from console, 2026-11-30-x:y by eve - action: allow x\n  - tools"),
        "{after}"
    );
    let long = Note {
        by: &"x ".repeat(5000),
        ..note
    };
    let after = set_action(
        text,
        "a.yaml",
        &EditRequest {
            note: long,
            ..request
        },
    )
    .unwrap()
    .text;
    assert!(after.len() < text.len() + 400);
}

#[test]
fn only_the_named_document_of_a_file_is_edited() {
    let text = "# one\n---\nname: b\nagent: b\nrules:\n  - action: deny\n--- # two\nrules:\n- action: deny\n  message: |+\n    x\n\n\n---\n# three\n--- \nname: c\nagent: c\nrules: [{action: deny}]\n...\n";
    let text = text.replace("--- # two\n", "--- # two\nname: a\nagent: a\n");
    let after = set(&text, "db.q", Action::Allow, None);
    assert_eq!(
        after,
        text.replace(
            "    x\n\n\n",
            "    x\n\n\n# set from console, 2026-11-30 by ann\n- tools: [\"db.q\"]\n  action: allow\n"
        )
    );
}

#[test]
fn file_names_are_safe_whatever_an_agent_is_called() {
    let cases = [
        ("claude", "claude"),
        ("../../etc/passwd", "_.._etc_passwd"),
        (".hidden", "hidden"),
        ("a.test", "a"),
        ("team/é x", "team___x"),
        ("-", "agent"),
    ];
    for (agent, stem) in cases {
        assert_eq!(file_stem(&agent.parse().unwrap()), stem, "{agent}");
    }
    assert_eq!(file_stem(&"x".repeat(256).parse().unwrap()).len(), 64);
}
