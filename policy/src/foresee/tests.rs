use std::sync::Arc;

use tools::classify::{Classification, Risk, RiskSet};
use tools::id::{AgentId, Namespace, ToolName};
use tools::targets::Targets;

use super::*;
use crate::decide::Floor;
use crate::document::{Action, Lists, Policy, Source};
use crate::{PolicySet, foresee};

struct Asked {
    set: PolicySet,
    namespace: Namespace,
    agent: AgentId,
    tool: ToolName,
    classification: Classification,
    floors: Vec<Floor>,
}

fn ask(rules: &str) -> Asked {
    ask_policies(&format!("name: p\nagent: '*'\nrules: [{rules}]"))
}

fn ask_policies(text: &str) -> Asked {
    let policies = Policy::parse_all("p.yaml", text, &Source::Directory, &Lists::none());
    let policies = policies.unwrap_or_else(|problems| panic!("{problems:?}"));
    let tool: ToolName = "x.run".parse().unwrap();
    Asked {
        set: PolicySet::compile(policies.into_iter().map(Arc::new)),
        namespace: Namespace::default(),
        agent: "claude".parse().unwrap(),
        classification: Classification::unknown(tool.clone()),
        tool,
        floors: Vec::new(),
    }
}

impl Asked {
    fn query(&self) -> ToolQuery<'_> {
        ToolQuery {
            namespace: &self.namespace,
            agent: &self.agent,
            user: None,
            session: None,
            tool: &self.tool,
            classification: &self.classification,
            targets: Some(&Targets::UNKNOWN),
            floors: &self.floors,
        }
    }

    fn could_run(&self) -> bool {
        self.set.could_run(&self.query())
    }

    fn view(&self) -> foresee::ToolDecision {
        self.set.tool_decision(&self.query())
    }
}

const SMALL: &str = "condition: {field: amount, operator: '<', value: 5}";

#[test]
fn a_tool_could_run_when_some_arguments_get_it_past_everything() {
    for (rules, expected) in [
        ("{action: allow}", true),
        ("{action: human_approval}", true),
        ("{action: deny}", false),
        ("{tools: [y.*], action: allow}, {action: deny}", false),
        (&format!("{{action: allow, {SMALL}}}, {{action: deny}}"), true),
        (&format!("{{action: deny, {SMALL}}}, {{action: allow}}"), true),
        ("{risk: [READ], action: deny}, {action: allow}", false),
        ("{user: ['*'], action: allow}, {action: deny}", false),
        ("{hosts: [a.com], action: allow}, {action: deny}", false),
        (
            "{action: allow, condition: {field: $agent, operator: '==', value: codex}}, {action: deny}",
            false,
        ),
        (
            "{action: allow, condition: {field: $agent, operator: '==', value: claude}}, {action: deny}",
            true,
        ),
    ] {
        assert_eq!(ask(rules).could_run(), expected, "{rules}");
    }
}

#[test]
fn floors_hide_a_tool_only_when_they_deny() {
    let mut asked = ask("{action: allow}");
    asked.floors = vec![Floor::PIN_CHANGED];
    assert!(asked.could_run());
    assert_eq!(asked.view().action, Action::HumanApproval);
    asked.floors = vec![Floor::PIN_NEW];
    assert!(!asked.could_run());
    let guarded = |rule: &str| {
        let standard = "name: p\nagent: '*'\nrules: [{action: allow}]\n---\n";
        ask_policies(&format!(
            "{standard}name: g\nagent: '*'\nkind: guardrail\nrules: [{rule}]"
        ))
        .could_run()
    };
    assert!(guarded(&format!("{{action: deny, {SMALL}}}")));
    assert!(guarded("{action: human_approval}"));
    assert!(
        !guarded("{risk: [DELETE], action: deny}"),
        "an undecided guardrail counts as true"
    );
}

#[test]
fn calls_that_differ_in_risk_are_thought_of() {
    let mut asked = ask("{risk: [READ], action: allow}, {action: deny}");
    assert!(!asked.could_run(), "UNKNOWN is never READ");
    let mut risks = RiskSet::of(Risk::Read);
    risks.insert(Risk::Execution);
    asked.classification.possible_risks = risks;
    asked.classification.risks = risks;
    assert!(asked.could_run());
    let view = asked.view();
    assert_eq!(
        (view.action, view.conditional[0].field.as_str()),
        (Action::Deny, "$risk")
    );
}

#[test]
fn the_view_lands_on_the_first_static_rule_and_lists_what_can_come_before() {
    let rules = format!(
        "{{tools: [y.*], action: allow}}, {{action: allow, {SMALL}}}, {{user: [ann], action: allow}}, \
         {{action: human_approval}}, {{action: deny}}"
    );
    let view = ask(&rules).view();
    assert_eq!(view.action, Action::HumanApproval);
    assert_eq!(
        view.rule.as_ref().map(|rule| (rule.policy.as_str(), rule.index)),
        Some(("p", 3))
    );
    assert_eq!(view.source_file.as_deref(), Some("p.yaml"));
    let conditional: Vec<_> = view
        .conditional
        .iter()
        .map(|one| {
            (
                one.action,
                one.rule.index,
                one.field.as_str(),
                one.operator.as_str(),
            )
        })
        .collect();
    assert_eq!(conditional, [(Action::Allow, 1, "amount", "<")]);
}

#[test]
fn without_a_static_rule_the_view_is_a_denial() {
    let view = ask(&format!("{{action: allow, {SMALL}}}")).view();
    assert_eq!(
        (view.action, view.rule, view.conditional.len()),
        (Action::Deny, None, 1)
    );
}
