use tools::classify::{Access, Classification, SideEffect, SideEffectKind, SideEffectSource};
use tools::id::{AgentId, Namespace, ToolName, UserId};
use tools::json::{Document, Limits};
use tools::targets::{Extent, Targets};

use super::*;
use crate::decide::Call;
use crate::document::{Lists, Policy, Rule, Source};

#[test]
fn three_values_join_as_the_table_says() {
    use Truth::{False, True, Undecided};
    for (one, other, and, or) in [
        (True, True, True, True),
        (True, Undecided, Undecided, True),
        (True, False, False, True),
        (Undecided, Undecided, Undecided, Undecided),
        (Undecided, False, False, Undecided),
        (False, False, False, False),
    ] {
        assert_eq!(
            (one.and(other), other.and(one)),
            (and, and),
            "{one:?} and {other:?}"
        );
        assert_eq!((one.or(other), other.or(one)), (or, or), "{one:?} or {other:?}");
        assert_eq!(Truth::all([one, other]), and);
        assert_eq!(Truth::any([one, other]), or);
    }
    assert_eq!([!True, !Undecided, !False], [False, Undecided, True]);
}

fn rule(text: &str) -> Rule {
    let text = format!("name: p\nagent: '*'\nrules: [{text}]");
    let parsed = Policy::parse_all("t.yaml", &text, &Source::Inline, &Lists::none());
    parsed
        .unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
        .remove(0)
        .rules
        .remove(0)
}

struct Case {
    classification: Classification,
    targets: Targets,
    user: Option<UserId>,
}

impl Case {
    fn new() -> Self {
        let classification = Classification::unknown("x.y".parse().unwrap());
        Self {
            classification,
            targets: Targets::UNKNOWN,
            user: None,
        }
    }

    fn truth(&self, rule: &Rule, arguments: &str) -> Truth {
        let namespace = Namespace::default();
        let agent: AgentId = "claude".parse().unwrap();
        let tool: ToolName = "x.y".parse().unwrap();
        let document = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
        let call = Call {
            namespace: &namespace,
            agent: &agent,
            user: self.user.as_ref(),
            session: None,
            tool: &tool,
            classification: &self.classification,
            targets: &self.targets,
            arguments: Some(document.root()),
            floors: &[],
        };
        rule_truth(rule, &call)
    }
}

#[track_caller]
fn test(field: &str, operator: &str, value: &str, arguments: &str, expected: Truth) {
    let value = if value.is_empty() {
        String::new()
    } else {
        format!(", value: {value}")
    };
    let text = format!("{{action: deny, condition: {{field: '{field}', operator: '{operator}'{value}}}}}");
    assert_eq!(
        Case::new().truth(&rule(&text), arguments),
        expected,
        "{field} {operator} {value} on {arguments}"
    );
}

#[test]
fn operators_compare_values_of_their_own_type_only() {
    use Truth::{False, True, Undecided};
    for (operator, value, argument, expected) in [
        ("<", "5", "4.999999999999999999", True),
        ("<", "5", "5", False),
        ("<=", "5", "5.0", True),
        (">", "5", "\"6\"", Undecided),
        (">=", "100", "1e2", True),
        ("==", "100", "1e2", True),
        ("==", "9007199254740993", "9007199254740992", False),
        ("==", "'1'", "1", Undecided),
        ("==", "'true'", "true", Undecided),
        ("==", "true", "true", True),
        ("!=", "true", "true", False),
        ("!=", "a", "null", Undecided),
        ("==", "[a, b]", "\"b\"", True),
        ("==", "[a, 1]", "\"b\"", Undecided),
        ("!=", "[a, b]", "\"b\"", False),
        ("!=", "[a, b]", "\"c\"", True),
        ("in", "[a, b]", "\"A\"", False),
        ("not_in", "[1, 2]", "3", True),
        ("contains", "[x, bc]", "\"abcd\"", True),
        ("not_contains", "[x, bc]", "\"abcd\"", False),
        ("starts_with", "ab", "\"\\u0061bc\"", True),
        ("not_starts_with", "ab", "\"xab\"", True),
        ("ends_with", "cd", "\"abcd\"", True),
        ("not_ends_with", "[cd, ef]", "\"abef\"", False),
        ("contains", "a", "[\"a\"]", Undecided),
        ("matches", "'^a.c$'", "\"abc\"", True),
        ("not_matches", "'^a.c$'", "\"abc\"", False),
        ("matches", "'a'", "7", Undecided),
        ("exists", "", "false", True),
        ("exists", "", "null", False),
        ("not_exists", "", "null", True),
        ("exists", "", "{}", True),
    ] {
        test("a", operator, value, &format!("{{\"a\": {argument}}}"), expected);
    }
}

#[test]
fn a_text_over_the_input_limit_is_not_searched() {
    let long = format!("{{\"a\": \"{}\"}}", "b".repeat(crate::document::MAX_INPUT + 1));
    test("a", "matches", "b", &long, Truth::Undecided);
    test("a", "not_matches", "b", &long, Truth::Undecided);
    test("a", "contains", "b", &long, Truth::True);
}

#[test]
fn paths_walk_objects_and_arrays() {
    use Truth::{False, True, Undecided};
    for (field, arguments, expected) in [
        ("a.b", r#"{"a": {"b": 1}}"#, True),
        ("params.a.b", r#"{"a": {"b": 1}}"#, True),
        ("a.b", r#"{"a": "b"}"#, Undecided),
        ("a[1]", r#"{"a": [0, 1]}"#, True),
        ("a[2]", r#"{"a": [0, 1]}"#, Undecided),
        ("a[0]", r#"{"a": {"0": 1}}"#, Undecided),
        ("a[*]", r#"{"a": [0, 1]}"#, True),
        ("a[*]", r#"{"a": [0, "x"]}"#, Undecided),
        ("a[*]", r#"{"a": []}"#, False),
        ("a[*]", r#"{"a": 1}"#, Undecided),
        ("a[every]", r#"{"a": [1, 1.0]}"#, True),
        ("a[every]", r#"{"a": [1, 0, "x"]}"#, False),
        ("a[every]", r#"{"a": [1, "x"]}"#, Undecided),
        ("a[every]", r#"{"a": []}"#, False),
        ("a[*].b[every]", r#"{"a": [{"b": [0]}, {"b": [1, 1]}]}"#, True),
    ] {
        test(field, "==", "1", arguments, expected);
    }
}

#[test]
fn a_sibling_key_of_other_case_leaves_every_test_undecided() {
    for arguments in [
        r#"{"key": 1, "KEY": 2}"#,
        r#"{"KEY": 1}"#,
        "{\"key\": 1, \"\u{212a}ey\": 2}",
        r#"{"key": 1, "\u212aey": 2}"#,
    ] {
        for (operator, value) in [("==", "1"), ("!=", "1"), ("exists", ""), ("not_exists", "")] {
            test("key", operator, value, arguments, Truth::Undecided);
        }
    }
    test("a.key", "exists", "", r#"{"a": {"Key": 1}}"#, Truth::Undecided);
    test("key", "exists", "", r#"{"other": 1, "Other": 2}"#, Truth::False);
}

#[test]
fn the_caller_can_be_tested() {
    test("$agent", "starts_with", "cl", "{}", Truth::True);
    test("$user", "==", "ann", "{}", Truth::Undecided);
    test("$user", "exists", "", r#"{"$user": 1}"#, Truth::False);
    test("$session", "not_exists", "", "{}", Truth::True);
}

#[test]
fn an_absent_user_is_a_fact() {
    let selected = rule("{action: deny, user: ['*']}");
    assert_eq!(Case::new().truth(&selected, "{}"), Truth::False);
    let ann = Case {
        user: Some("ann".parse().unwrap()),
        ..Case::new()
    };
    assert_eq!(ann.truth(&selected, "{}"), Truth::True);
}

#[test]
fn selectors_on_unknown_values_are_undecided_unless_those_are_listed() {
    use Truth::{False, True, Undecided};
    let unknown = Case::new();
    for (selector, expected) in [
        ("risk: [READ]", Undecided),
        ("risk: [READ, UNKNOWN]", True),
        ("access: read", Undecided),
        ("access: [unknown]", True),
        ("side_effect: delete", Undecided),
        ("side_effect: read", True),
        ("capability: '*'", Undecided),
        ("family: generic", False),
        ("tags: [pci]", False),
        ("hosts: ['*']", Undecided),
        ("paths: ['*']", Undecided),
        ("recipients: ['*']", Undecided),
        ("tools: ['*'], resources: ['*']", Undecided),
        ("tools: ['*'], columns: ['*']", Undecided),
    ] {
        for action in ["allow", "human_approval", "deny"] {
            let text = format!("{{action: {action}, {selector}}}");
            assert_eq!(unknown.truth(&rule(&text), "{}"), expected, "{text}");
        }
    }
    let mut known = Case::new();
    known.classification.access = Access::Write;
    known.classification.side_effect = SideEffect {
        kind: SideEffectKind::Write,
        source: SideEffectSource::Name,
    };
    assert_eq!(known.truth(&rule("{action: deny, access: read}"), "{}"), False);
    assert_eq!(
        known.truth(&rule("{action: deny, side_effect: [delete]}"), "{}"),
        False
    );
}

#[test]
fn sets_need_every_member_to_allow_and_any_to_restrict() {
    let mut case = Case::new();
    let known = |members: &[&str]| Extent::Known(members.iter().map(|member| (*member).to_owned()).collect());
    let check = |case: &Case, selector: &str, allow: bool, deny: bool| {
        assert_eq!(
            case.truth(&rule(&format!("{{action: allow, {selector}}}")), "{}"),
            allow.into(),
            "{selector}"
        );
        assert_eq!(
            case.truth(&rule(&format!("{{action: deny, {selector}}}")), "{}"),
            deny.into(),
            "{selector}"
        );
    };
    case.targets.paths = known(&["/data/a", "/data/../etc/passwd"]);
    check(&case, "paths: ['/data/*']", false, true);
    check(&case, "paths: ['/data/*', '/etc/*']", true, true);
    case.targets.paths = known(&[]);
    check(&case, "paths: ['*']", false, false);
    case.targets.hosts = known(&["API.Example.com."]);
    check(&case, "hosts: ['*.EXAMPLE.com']", true, true);
    case.targets.columns = known(&["users.*"]);
    check(&case, "tools: ['*'], columns: ['users.ssn']", false, true);
    check(&case, "tools: ['*'], columns: ['users.*']", true, true);
    check(&case, "tools: ['*'], columns: ['orders.*']", false, false);
}
