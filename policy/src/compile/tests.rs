use super::*;
use crate::decide::{Call, Decision, Reason};
use crate::document::{Action, Lists, Policy, Source};
use std::sync::Arc;
use tools::classify::Classification;
use tools::targets::Targets;

fn policies(text: &str, source: &Source) -> Vec<Arc<Policy>> {
    let parsed = Policy::parse_all("f.yaml", text, source, &Lists::none());
    parsed
        .unwrap_or_else(|problems| panic!("{problems:?}"))
        .into_iter()
        .map(Arc::new)
        .collect()
}

fn set(text: &str) -> PolicySet {
    PolicySet::compile(policies(text, &Source::Inline))
}

fn decide(set: &PolicySet, agent: &str, tool: &str) -> Decision {
    decide_in(set, "default", agent, tool)
}

fn decide_in(set: &PolicySet, namespace: &str, agent: &str, tool: &str) -> Decision {
    set.decide(&Call {
        namespace: &namespace.parse().unwrap(),
        agent: &agent.parse().unwrap(),
        user: None,
        session: None,
        tool: &tool.parse().unwrap(),
        classification: &Classification::unknown(tool.parse().unwrap()),
        targets: &Targets::UNKNOWN,
        arguments: None,
        floors: &[],
    })
}

fn one(name: &str, agent: &str, action: &str) -> String {
    format!("name: {name}\nagent: {agent}\nrules: [{{action: {action}, message: from {name}}}]\n---\n")
}

fn decider(decision: &Decision) -> &str {
    decision.rule.as_ref().map_or("", |rule| rule.policy.as_str())
}

#[test]
fn the_most_specific_agent_pattern_decides_whatever_the_load_order() {
    let text = one("all", "'*'", "deny")
        + &one("wild", "'cl*e'", "deny")
        + &one("prefix", "'claud*'", "deny")
        + &one("listed", "['x', 'claude']", "allow");
    let set = set(&text);
    assert_eq!(decider(&decide(&set, "claude", "x.y")), "listed");
    assert_eq!(decider(&decide(&set, "claudia", "x.y")), "prefix");
    assert_eq!(decider(&decide(&set, "cle", "x.y")), "wild");
    let other = decide(&set, "other", "x.y");
    assert_eq!(
        (decider(&other), other.message.as_deref()),
        ("all", Some("from all"))
    );
}

#[test]
fn equally_specific_policies_follow_the_load_order() {
    let mut all = policies(
        &(one("z", "a", "deny") + &one("y", "a", "allow")),
        &Source::Inline,
    );
    assert_eq!(
        decider(&decide(&PolicySet::compile(all.clone()), "a", "x.y")),
        "z"
    );
    all.remove(0);
    all.remove(0);
    all.extend(policies(&one("c", "a", "deny"), &Source::Directory));
    all.extend(policies(&one("b", "a", "deny"), &Source::Api));
    all.extend(policies(&one("a", "a", "deny"), &Source::Api));
    assert_eq!(
        decider(&decide(&PolicySet::compile(all.clone()), "a", "x.y")),
        "c"
    );
    all.remove(0);
    assert_eq!(decider(&decide(&PolicySet::compile(all), "a", "x.y")), "a");
}

#[test]
fn a_policy_applies_in_its_namespaces_only() {
    let set = set("name: p\nagent: '*'\nnamespace: prod-*\nrules: [{action: allow}]");
    assert_eq!(decide_in(&set, "prod-1", "a", "x.y").action, Action::Allow);
    assert_eq!(decide_in(&set, "dev", "a", "x.y").reason, Reason::NoRule);
}

#[test]
fn nothing_matching_is_a_denial() {
    let decision = decide(&PolicySet::default(), "a", "x.y");
    assert_eq!(
        (decision.action, decision.reason, decision.rule),
        (Action::Deny, Reason::NoRule, None)
    );
}

#[test]
fn guardrails_tighten_and_are_named() {
    let guardrail = "name: g\nagent: '*'\nkind: guardrail\nrules: [{tools: [x.*], action: human_approval, message: careful}]";
    let set = set(&(one("p", "a", "allow") + guardrail));
    let decision = decide(&set, "a", "x.y");
    assert_eq!(
        (decision.action, decision.reason),
        (Action::HumanApproval, Reason::Guardrail)
    );
    assert_eq!(
        (decider(&decision), decision.message.as_deref()),
        ("g", Some("careful"))
    );
    assert_eq!(decision.floors[0].source.to_string(), "guardrail:g");
    assert_eq!(decide(&set, "a", "z.y").action, Action::Allow);
}

#[test]
fn an_unreadable_policy_denies_whom_it_covers() {
    let invalid = Arc::new(InvalidPolicy {
        name: "broken".parse().unwrap(),
        agents: vec!["claude*".parse().unwrap()],
        namespaces: Vec::new(),
    });
    let set = PolicySet::compile_with_invalid(
        policies(&one("p", "'*'", "allow"), &Source::Inline),
        vec![invalid],
    );
    let decision = decide(&set, "claude-1", "x.y");
    assert_eq!(
        (decision.action, decision.reason),
        (Action::Deny, Reason::InvalidPolicy)
    );
    assert_eq!(decision.floors[0].source.to_string(), "invalid_policy:broken");
    assert_eq!(decide(&set, "codex", "x.y").action, Action::Allow);
}

#[test]
fn shadow_policies_report_what_they_would_change_and_change_nothing() {
    let shadow = |kind: &str, action: &str| {
        format!("name: s\nagent: a\nkind: {kind}\nmode: shadow\nrules: [{{tools: [x.*], action: {action}}}]")
    };
    let set_with = |shadow: &str| set(&(one("p", "a*", "allow") + shadow));
    let decision = decide(&set_with(&shadow("standard", "deny")), "a", "x.y");
    assert_eq!(decision.action, Action::Allow);
    let outcome = decision.shadow.unwrap();
    assert_eq!(
        (outcome.action, outcome.rule.unwrap().policy.as_str()),
        (Action::Deny, "s")
    );
    assert_eq!(
        decide(&set_with(&shadow("standard", "allow")), "a", "x.y").shadow,
        None
    );
    assert_eq!(
        decide(&set_with(&shadow("standard", "deny")), "a", "z.y").shadow,
        None
    );
    let decision = decide(&set_with(&shadow("guardrail", "human_approval")), "a", "x.y");
    assert_eq!(decision.shadow.unwrap().action, Action::HumanApproval);
    assert_eq!(
        decide(&set(&shadow("standard", "allow")), "a", "x.y").action,
        Action::Deny
    );
}

#[test]
fn every_enforced_policy_that_covers_the_agent_limits_it() {
    let text = "name: p\nagent: a*\nrate_limit: {max_total: 5}\nrules: [{action: deny}]\n---\n\
                name: q\nagent: '*'\nkind: guardrail\nrate_limit: {max_per_minute: 9}\nrules: [{action: deny}]\n---\n\
                name: r\nagent: '*'\nmode: shadow\nrate_limit: {max_per_minute: 1}\nrules: [{action: deny}]\n";
    let limits = set(text).limits_for(&"default".parse().unwrap(), &"ab".parse().unwrap());
    let names: Vec<&str> = limits.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["p", "q"]);
}

#[test]
fn a_changed_set_decides_anew() {
    let first = set(&(one("p", "a", "allow") + &one("q", "'*'", "deny")));
    assert_eq!(decide(&first, "a", "x.y").action, Action::Allow);
    let changed = first.with_changes(policies(&one("p", "a", "deny"), &Source::Inline), &[], Vec::new());
    assert_eq!(decider(&decide(&changed, "a", "x.y")), "p");
    assert_eq!(decide(&changed, "a", "x.y").action, Action::Deny);
    let removed = changed.with_changes([], &["p".parse().unwrap()], Vec::new());
    assert_eq!(decider(&decide(&removed, "a", "x.y")), "q");
    assert_eq!(removed.policies().len(), 1);
}

#[test]
fn agents_are_found_by_any_part_of_their_pattern() {
    let text = one("prefix", "'ab*'", "allow")
        + &one("suffix", "'*yz'", "allow")
        + &one("middle", "'*mn*'", "allow")
        + &one("exact", "héé", "allow")
        + &one("single", "'?'", "allow");
    let set = set(&text);
    for (agent, policy) in [
        ("abc", "prefix"),
        ("xyz", "suffix"),
        ("kmno", "middle"),
        ("héé", "exact"),
        ("é", "single"),
        ("zz", ""),
    ] {
        assert_eq!(decider(&decide(&set, agent, "x.y")), policy, "{agent}");
    }
}
