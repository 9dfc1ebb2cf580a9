//! The section "Three values" of specs/policy.md, clause by clause.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking"
)]

mod support;

use policy::evaluate::Truth::{self, False, True, Undecided};
use support::{Asked, ask, rules};
use tools::classify::{Access, Risk, RiskSet, SideEffect, SideEffectKind, SideEffectSource};
use tools::targets::Extent;

/// What one rule is for a call.
fn truth(written: &str, asked: &Asked) -> Truth {
    let set = rules(written);
    asked.with(|call| set.explain(call))[0].truth
}

#[track_caller]
fn row(rule: &str, arguments: &str, expected: Truth) {
    let asked = ask("x.run", arguments);
    assert_eq!(truth(rule, &asked), expected, "{rule} on {arguments}");
}

fn deny(condition: &str) -> String {
    format!("{{action: deny, condition: {condition}}}")
}

fn test(field: &str, operator: &str, value: &str) -> String {
    format!("{{field: '{field}', operator: '{operator}', value: {value}}}")
}

#[test]
fn a_test_is_undecided_when_its_field_cannot_be_compared() {
    let long = format!(r#"{{"f":"{}"}}"#, "a".repeat((64 << 10) + 1));
    for (operator, value, arguments, expected) in [
        ("<", "5", r#"{"f":4}"#, True),
        ("<", "5", r#"{"f":5}"#, False),
        ("<", "5", "{}", Undecided),
        ("<", "5", r#"{"f":null}"#, Undecided),
        ("<", "5", r#"{"f":"4"}"#, Undecided),
        ("<", "5", r#"{"f":[4]}"#, Undecided),
        ("<", "5", r#"{"f":{"g":4}}"#, Undecided),
        ("==", "true", r#"{"f":"true"}"#, Undecided),
        ("==", "'1'", r#"{"f":1}"#, Undecided),
        ("==", "100", r#"{"f":1e2}"#, True),
        ("==", "9007199254740993", r#"{"f":9007199254740992}"#, False),
        ("contains", "a", r#"{"f":"A"}"#, False),
        ("not_contains", "a", r#"{"f":"A"}"#, True),
        ("not_contains", "a", "{}", Undecided),
        ("not_in", "[a, b]", r#"{"f":"c"}"#, True),
        ("not_in", "[a, b]", r#"{"f":3}"#, Undecided),
        ("matches", "b", &long, Undecided),
        ("not_matches", "b", &long, Undecided),
        ("matches", "['^a', '^b']", r#"{"f":"bc"}"#, True),
    ] {
        row(&deny(&test("f", operator, value)), arguments, expected);
    }
}

#[test]
fn a_sibling_key_of_other_case_leaves_everything_undecided() {
    for arguments in [r#"{"f":4,"F":9}"#, r#"{"F":9}"#] {
        row(&deny(&test("f", "<", "5")), arguments, Undecided);
        row(&deny("{field: f, operator: exists}"), arguments, Undecided);
        row(&deny("{field: f, operator: not_exists}"), arguments, Undecided);
    }
    row(
        &deny(&test("k", "==", "1")),
        "{\"k\":1,\"\u{212a}\":2}",
        Undecided,
    );
    row(
        &deny(&test("f.g", "==", "1")),
        r#"{"f":{"g":1,"G":2}}"#,
        Undecided,
    );
    row(&deny(&test("f", "<", "5")), r#"{"f":4,"fF":9}"#, True);
}

#[test]
fn exists_is_true_for_what_is_present_and_not_null() {
    for (arguments, expected) in [
        ("{}", False),
        (r#"{"f":null}"#, False),
        (r#"{"f":false}"#, True),
        (r#"{"f":{}}"#, True),
    ] {
        row(&deny("{field: f, operator: exists}"), arguments, expected);
        let turned = if expected == True { False } else { True };
        row(&deny("{field: f, operator: not_exists}"), arguments, turned);
    }
}

#[test]
fn joins_follow_the_three_values() {
    let (yes, no, open) = (
        test("a", "==", "1"),
        test("a", "==", "2"),
        test("missing", "==", "1"),
    );
    for (condition, expected) in [
        (format!("{{not: {yes}}}"), False),
        (format!("{{not: {no}}}"), True),
        (format!("{{not: {open}}}"), Undecided),
        (format!("{{all: [{yes}, {open}]}}"), Undecided),
        (format!("{{all: [{no}, {open}]}}"), False),
        (format!("{{all: [{yes}, {yes}]}}"), True),
        (format!("{{any: [{yes}, {open}]}}"), True),
        (format!("{{any: [{no}, {open}]}}"), Undecided),
        (format!("{{any: [{no}, {no}]}}"), False),
        (format!("{{not: {{any: [{no}, {open}]}}}}"), Undecided),
    ] {
        row(&deny(&condition), r#"{"a":1}"#, expected);
    }
    row(
        &format!("{{user: [ann], action: deny, condition: {open}}}"),
        r#"{"a":1}"#,
        False,
    );
}

#[test]
fn elements_are_asked_the_whole_test() {
    for (field, operator, value, arguments, expected) in [
        ("l[*]", "not_ends_with", "x", r#"{"l":["ax","b"]}"#, True),
        ("l[*]", "not_ends_with", "x", r#"{"l":["ax"]}"#, False),
        ("l[*]", "not_ends_with", "x", r#"{"l":["ax",1]}"#, Undecided),
        ("l[*]", "not_ends_with", "x", r#"{"l":[]}"#, False),
        ("l[every]", "<", "5", r#"{"l":[1,2]}"#, True),
        ("l[every]", "<", "5", r#"{"l":[1,"x"]}"#, Undecided),
        ("l[every]", "<", "5", r#"{"l":[9,"x"]}"#, False),
        ("l[every]", "<", "5", r#"{"l":[]}"#, False),
        ("l[every]", "<", "5", r#"{"l":3}"#, Undecided),
        ("l[1].p", "<", "5", r#"{"l":[{},{"p":1}]}"#, True),
        ("l[2].p", "<", "5", r#"{"l":[{},{"p":1}]}"#, Undecided),
    ] {
        row(&deny(&test(field, operator, value)), arguments, expected);
    }
}

#[test]
fn a_selector_on_what_is_not_known_is_undecided_unless_that_is_listed() {
    let unknown = ask("x.run", "{}");
    for (rule, expected) in [
        ("{risk: [DELETE], action: deny}", Undecided),
        ("{risk: [DELETE, UNKNOWN], action: deny}", True),
        ("{access: write, action: deny}", Undecided),
        ("{access: [write, unknown], action: deny}", True),
        ("{side_effect: delete, action: deny}", Undecided),
        ("{side_effect: read, action: deny}", True),
        ("{capability: ['email.*'], action: deny}", Undecided),
        ("{tools: [x.run], resources: ['a*'], action: deny}", Undecided),
        ("{tools: [x.run], columns: ['a*'], action: allow}", Undecided),
        ("{hosts: ['*'], action: allow}", Undecided),
        ("{user: ['*'], action: deny}", False),
    ] {
        assert_eq!(truth(rule, &unknown), expected, "{rule}");
    }
    let mut known = ask("x.run", "{}");
    known.classification.access = Access::Read;
    known.classification.side_effect = SideEffect {
        kind: SideEffectKind::Read,
        source: SideEffectSource::Name,
    };
    assert_eq!(truth("{access: write, action: deny}", &known), False);
    assert_eq!(truth("{side_effect: delete, action: deny}", &known), False);
}

#[test]
fn sets_need_every_member_to_allow_and_any_to_restrict() {
    let mut asked = ask("x.run", "{}");
    let known = |members: &[&str]| Extent::Known(members.iter().map(|one| (*one).to_owned()).collect());
    for (members, allow, deny) in [
        (known(&[]), False, False),
        (known(&["/data/a"]), True, True),
        (known(&["/data/a", "/etc/b"]), False, True),
        (known(&["/data/../etc/b"]), False, False),
        (known(&["/x//../data//a", "/data/./b"]), True, True),
        (Extent::Unknown, Undecided, Undecided),
    ] {
        asked.targets.paths = members.clone();
        for (action, expected) in [("allow", allow), ("deny", deny), ("human_approval", deny)] {
            let rule = format!("{{paths: ['/data/*'], action: {action}}}");
            assert_eq!(truth(&rule, &asked), expected, "{action} {members:?}");
        }
    }
    let mut risks = RiskSet::of(Risk::Read);
    risks.insert(Risk::Unknown);
    asked.classification.risks = risks;
    assert_eq!(truth("{risk: [READ], action: allow}", &asked), Undecided);
    assert_eq!(truth("{risk: [READ], action: deny}", &asked), True);
    risks.insert(Risk::Delete);
    asked.classification.risks = risks;
    assert_eq!(truth("{risk: [READ], action: allow}", &asked), False);
    asked.targets.hosts = known(&["API.Example.com."]);
    assert_eq!(truth("{hosts: ['*.example.COM'], action: deny}", &asked), True);
}
