use super::*;
use crate::yaml::Problem;

fn parse(text: &str) -> Result<Vec<Policy>, Vec<Problem>> {
    let lists: Lists = [("secrets".to_owned(), vec!["*.env".to_owned(), "*.key".to_owned()])]
        .into_iter()
        .collect();
    Policy::parse_all("claude.yaml", text, &Source::Directory, &lists)
}

fn problems(text: &str) -> Vec<String> {
    parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

/// The problem of a policy whose only rule is this.
fn problem_of_rule(rule: &str) -> String {
    let found = problems(&format!("name: p\nagent: a\nrules:\n  - {rule}\n"));
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

fn rule(text: &str) -> Rule {
    parse(&format!("name: p\nagent: a\nrules:\n  - {text}\n"))
        .unwrap()
        .remove(0)
        .rules
        .remove(0)
}

const WHOLE: &str = r#"
name: support-agent
agent: ["support-*", helpdesk]
namespace: "*"
kind: standard
mode: shadow
rate_limit: {max_per_minute: 30, max_total: 1000}
rules:
  - tools: ["*.read_*", "*.list_*"]
    except: ["hr.*"]
    action: allow
  - tools: ["create_refund"]
    action: allow
    condition: {field: "amount", operator: "<", value: 500}
  - risk: [DELETE, FINANCIAL, PERMISSION_CHANGE]
    action: human_approval
    message: "Money and deletions need a person."
  - tools: ["db.query"]
    columns: ["users.ssn", "*.password*"]
    resources: "table://*"
    action: deny
  - access: write
    family: [generic]
    side_effect: [delete, admin]
    capability: email.*
    tags: [pci]
    hosts: ["*.Example.com"]
    paths: ["@secrets", "/etc/*"]
    recipients: ["*@corp.com"]
    user: ["ann"]
    action: deny
    condition:
      all:
        - any:
            - {field: "items[*].price", operator: ">=", value: 1e2}
            - {field: "params.to.address", operator: not_in, value: [a, 1, true]}
        - not: {field: $user, operator: exists}
        - {field: cmd, operator: matches, value: ["^rm\\b", "mkfs"]}
  - tools: ["*"]
    action: deny
"#;

#[test]
fn the_whole_language_is_read_and_survives_being_sent() {
    let policy = parse(WHOLE).unwrap().remove(0);
    assert_eq!(policy.name, "support-agent");
    assert_eq!(policy.mode, Mode::Shadow);
    assert_eq!(policy.rules.len(), 6);
    assert_eq!(
        policy.rules.iter().map(|rule| rule.line).collect::<Vec<_>>(),
        [9, 12, 15, 18, 22, 39]
    );
    assert_eq!(policy.origin, Origin::Directory(Arc::from("claude.yaml"), 0));
    assert_eq!(policy.source_file.as_deref(), Some("claude.yaml"));
    assert_eq!(policy.rate_limit.unwrap().max_total.unwrap().get(), 1000);
    let selectors = &policy.rules[4].selectors;
    assert_eq!(selectors.len(), 9);
    let paths = Selector::Targets(
        TargetKind::Paths,
        ["*.env", "*.key", "/etc/*"]
            .iter()
            .map(|glob| glob.parse().unwrap())
            .collect(),
    );
    assert!(selectors.contains(&paths), "{selectors:?}");
    assert_eq!(policy.rules[4].condition.as_ref().unwrap().tests().len(), 4);
    let sent = policy.to_sent().unwrap();
    assert_eq!(Policy::from_sent(&sent).unwrap(), policy);
}

#[test]
fn every_example_of_the_seed_documents_is_accepted() {
    let seed = r#"
name: support-agent
agent: "support-*"
rate_limit:
  max_per_minute: 30
  max_total: 1000
rules:
  - tools: ["*.read_*", "*.list_*", "*.get_*"]
    action: allow
  - tools: ["create_refund"]
    action: allow
    condition:
      field: "amount"        # the path starts at the tool's arguments
      operator: "<"
      value: 500
  # Conditions read strings too.
  - tools: ["Bash"]
    action: deny
    condition:
      field: "command"
      operator: "contains"
      value: ["mkfs", "> /dev/sd", "/etc/sudoers"]
  - tools: ["*"]
    action: deny
---
name: scout7
agent: "scout7"
rate_limit:
  max_per_minute: 30
rules:
  - tools: ["searxng.*", "fetch.*", "ollama.*", "memory.*"]
    action: allow
  - tools: ["*"]
    action: deny
---
name: temp-agent
agent: "temp"
rules:
  - tools: ["weather.*"]
    action: allow
"#;
    assert_eq!(parse(seed).unwrap().len(), 3);
}

#[test]
fn all_problems_are_reported_at_once_with_their_places() {
    let text = r#"
name: claude
agnet: "claude"
mode: shadwo
rate_limit: {max_per_minute: 0}
rules:
  - tools: ["fs.[ab]"]
    action: alow
  - tools: ["*"]
    action: deny
    conditon: {}
    condition:
      field: "command"
      operator: "contain"
      value: "x"
"#;
    assert_eq!(
        problems(text),
        [
            "claude.yaml:2:1 a policy needs the key \"agent\"",
            "claude.yaml:3:1 unknown key \"agnet\" in a policy; did you mean \"agent\"?",
            "claude.yaml:4:7 mode \"shadwo\" is unknown; did you mean \"shadow\"?",
            "claude.yaml:5:30 max_per_minute must be a whole number from 1, found the number 0",
            "claude.yaml:7:13 the pattern \"fs.[ab]\" has a '['; patterns know only * and ?, list alternatives one by one",
            "claude.yaml:8:13 action \"alow\" is unknown; did you mean \"allow\"?",
            "claude.yaml:11:5 unknown key \"conditon\" in a rule; did you mean \"condition\"?",
            "claude.yaml:14:17 operator \"contain\" is unknown; did you mean \"contains\"?",
        ]
    );
}

#[test]
fn rules_that_cannot_mean_anything_are_refused() {
    for (rule, expected) in [
        ("{action: deny, tools: []}", "tools is empty"),
        ("{action: deny, tools: }", "tools is written but empty"),
        ("{action: deny, condition: }", "condition is written but empty"),
        ("{action: deny, risk: [DELET]}", "did you mean \"DELETE\""),
        ("{action: deny, columns: [a.b]}", "columns needs tools"),
        ("{action: deny, paths: ['@secret']}", "did you mean \"@secrets\"?"),
        ("{action: deny, condition: {all: []}}", "\"all\" is empty"),
        (
            "{action: deny, condition: {all: [{field: a, operator: exists}], field: b}}",
            "must stand alone",
        ),
        (
            "{action: deny, condition: {field: a, operator: '<', value: [1]}}",
            "needs one number",
        ),
        (
            "{action: deny, condition: {field: a, operator: '<', value: '1'}}",
            "needs one number",
        ),
        (
            "{action: deny, condition: {field: a, operator: contains, value: 1}}",
            "needs a string",
        ),
        (
            "{action: deny, condition: {field: a, operator: in, value: x}}",
            "needs a list",
        ),
        (
            "{action: deny, condition: {field: a, operator: '==', value: []}}",
            "empty list",
        ),
        (
            "{action: deny, condition: {field: a, operator: '=='}}",
            "needs a value",
        ),
        (
            "{action: deny, condition: {field: a, operator: '==', value: null}}",
            "use exists or not_exists",
        ),
        (
            "{action: deny, condition: {field: a, operator: '==', value: {b: 1}}}",
            "a mapping",
        ),
        (
            "{action: deny, condition: {field: a, operator: '==', value: .nan}}",
            "cannot compare with .nan",
        ),
        (
            "{action: deny, condition: {field: a, operator: exists, value: true}}",
            "takes no value",
        ),
        (
            "{action: deny, condition: {field: a, operator: matches, value: '('}}",
            "unclosed group",
        ),
        (
            "{action: deny, condition: {field: a, operator: matches, value: 'x{9999}{999}'}}",
            "cannot be used",
        ),
        (
            "{action: deny, condition: {field: 'a..b', operator: exists}}",
            "empty key",
        ),
        (
            "{action: deny, condition: {field: 'a[x]', operator: exists}}",
            "an index is a number",
        ),
        (
            "{action: deny, condition: {field: 'a[0', operator: exists}}",
            "brackets that do not close",
        ),
        (
            "{action: deny, condition: {field: '$agents', operator: exists}}",
            "did you mean \"$agent\"?",
        ),
        (
            "{action: allow, condition: {field: 'a[*]', operator: exists}}",
            "use [every]",
        ),
        (
            "{action: allow, condition: {not: {field: 'a[*].b', operator: exists}}}",
            "use [every]",
        ),
        ("{tools: ['*']}", "a rule needs the key \"action\""),
    ] {
        let found = problem_of_rule(rule);
        assert!(found.contains(expected), "{rule}: {found}");
    }
}

#[test]
fn a_guardrail_cannot_allow_and_rules_must_not_be_empty() {
    let found = problems(
        "name: g\nagent: '*'\nkind: guardrail\nrules: [{action: allow}]\n---\nname: h\nagent: a\nrules: []\n",
    );
    assert_eq!(
        found,
        [
            "claude.yaml:4:18 a guardrail cannot allow; guardrails only tighten: use deny or human_approval",
            "claude.yaml:8:8 rules is empty; write at least one rule",
        ]
    );
}

#[test]
fn a_name_is_used_once() {
    let found = problems(
        "name: a\nagent: a\nrules: [{action: deny}]\n---\nname: a\nagent: b\nrules: [{action: deny}]\n",
    );
    assert_eq!(
        found,
        [
            "claude.yaml:5:1 policy \"a\" is defined twice; the first one is on line 1; names are unique in the installation"
        ]
    );
}

#[test]
fn conditions_are_not_nested_endlessly() {
    let mut condition = "{field: a, operator: exists}".to_owned();
    for _ in 0..20 {
        condition = format!("{{not: {condition}}}");
    }
    assert!(problem_of_rule(&format!("{{action: deny, condition: {condition}}}")).contains("nested deeper"));
}

#[test]
fn a_leading_params_is_the_arguments_themselves() {
    let steps = |field: &str| match field.parse::<Field>().unwrap() {
        Field::Argument(path) => path.steps().to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(steps("params.to.address"), steps("to.address"));
    assert_eq!(steps("params"), [Step::Key("params".into())]);
    assert_eq!(steps("params[0]"), [Step::Key("params".into()), Step::Index(0)]);
    assert_eq!(
        steps("a[0][*].b[every]"),
        [
            Step::Key("a".into()),
            Step::Index(0),
            Step::Some,
            Step::Key("b".into()),
            Step::Every
        ]
    );
}

#[test]
fn numbers_keep_every_digit() {
    let rule = rule("{action: deny, condition: {field: a, operator: '==', value: 9007199254740993}}");
    let Some(Condition::Test(test)) = rule.condition else {
        panic!()
    };
    assert_eq!(test.values, [Scalar::Number("9007199254740993".parse().unwrap())]);
}

#[test]
fn a_policy_from_a_newer_build_says_so() {
    let policy = parse("name: p\nagent: a\nrules: [{action: deny}]")
        .unwrap()
        .remove(0);
    let sent = String::from_utf8(policy.to_sent().unwrap()).unwrap();
    let newer = sent.replace("\"format\":1", "\"format\":2,\"novelty\":true");
    assert_eq!(
        Policy::from_sent(newer.as_bytes()),
        Err(DecodeError::Format { found: 2 })
    );
    let unknown = sent.replace("\"format\":1", "\"format\":1,\"novelty\":true");
    assert!(matches!(
        Policy::from_sent(unknown.as_bytes()),
        Err(DecodeError::Json(_))
    ));
    assert!(matches!(Policy::from_sent(b"{"), Err(DecodeError::Json(_))));
}

#[test]
fn a_sent_policy_that_parsing_would_refuse_is_refused() {
    let policy = parse("name: p\nagent: a\nkind: guardrail\nrules: [{action: deny}]")
        .unwrap()
        .remove(0);
    let sent = String::from_utf8(policy.to_sent().unwrap()).unwrap();
    for broken in [
        sent.replace("\"action\":\"deny\"", "\"action\":\"allow\""),
        sent.replace("\"agents\":[\"a\"]", "\"agents\":[]"),
        sent.replace(
            "\"action\":\"deny\"",
            "\"action\":\"deny\",\"condition\":{\"all\":[]}",
        ),
        sent.replace(
            "\"action\":\"deny\"",
            r#""action":"deny","condition":{"test":{"field":"a","operator":"<","values":[{"string":"x"}]}}"#,
        ),
    ] {
        assert_ne!(broken, sent);
        assert!(
            matches!(
                Policy::from_sent(broken.as_bytes()),
                Err(DecodeError::Invalid { .. })
            ),
            "{broken}"
        );
    }
}
