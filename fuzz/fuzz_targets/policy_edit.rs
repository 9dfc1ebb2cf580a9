//! Whatever the text, an edit is refused, or changes the lines of its rule and nothing else, and can be undone.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use policy::document::{Lists, Rule, Source};
use policy::edit::{Change, EditRequest, Note, Outcome, OwnPolicy, own_policy, set_action};
use policy::{Action, Policy, PolicySet, ToolQuery};
use tools::classify::Classification;
use tools::id::{AgentId, Namespace, ToolName};

const NOTE: Note<'_> = Note {
    by: "ann",
    date: "2026-11-30",
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(policies) = Policy::parse_all("fuzz.yaml", text, &Source::Directory, &Lists::none()) else {
        return;
    };
    let tool: ToolName = "db.q".parse().expect("a tool's name");
    for policy in policies.iter().take(3) {
        let own = view(text, policy, &tool).and_then(|(own, _)| own.deciding);
        for deciding in [own, None] {
            for action in [Action::Allow, Action::Deny] {
                check(text, policy, &tool, action, deciding);
            }
        }
        check_inherit(text, policy, &tool);
    }
});

/// The named policy alone, as its own agent sees it.
fn view(text: &str, policy: &Policy, tool: &ToolName) -> Option<(OwnPolicy, Action)> {
    let policies =
        Policy::parse_all("fuzz.yaml", text, &Source::Directory, &Lists::none()).expect("still valid");
    let own = policies.into_iter().filter(|other| other.name == policy.name);
    let set = PolicySet::compile(own.map(Arc::new));
    let agent: AgentId = policy.agents.first()?.literal()?.parse().ok()?;
    let namespace = Namespace::default();
    let classification = Classification::unknown(tool.clone());
    let query = ToolQuery {
        namespace: &namespace,
        agent: &agent,
        user: None,
        session: None,
        tool,
        classification: &classification,
        targets: None,
        floors: &[],
    };
    Some((own_policy(&set, &query)?, set.tool_decision(&query).standard))
}

fn edit(
    text: &str,
    policy: &Policy,
    tool: &ToolName,
    change: Change,
    deciding: Option<usize>,
) -> Option<policy::edit::Edit> {
    let request = EditRequest {
        policy: &policy.name,
        tool,
        change,
        deciding,
        note: NOTE,
        lists: &Lists::none(),
    };
    match set_action(text, "fuzz.yaml", &request) {
        Ok(edit) => Some(edit),
        Err(refused) => {
            assert!(!refused.to_string().is_empty());
            None
        }
    }
}

/// The rules of the policy in a text, without their lines.
fn rules(text: &str, policy: &Policy) -> Vec<Rule> {
    let policies =
        Policy::parse_all("fuzz.yaml", text, &Source::Directory, &Lists::none()).expect("an edit is valid");
    let own = policies.into_iter().find(|other| other.name == policy.name);
    let mut rules = own.expect("the policy is still there").rules;
    rules.iter_mut().for_each(|rule| rule.line = 0);
    rules
}

fn check(text: &str, policy: &Policy, tool: &ToolName, action: Action, deciding: Option<usize>) {
    let Some(done) = edit(text, policy, tool, Change::Set(action), deciding) else {
        return;
    };
    let index = done.rule.expect("there is a rule now");
    let mut intended = rules(text, policy);
    let after = rules(&done.text, policy);
    match done.outcome {
        Outcome::Unchanged => assert_eq!(done.text, text),
        Outcome::Rewritten => {
            intended[index].action = action;
            assert!(changed_lines(text, &done.text) <= 2, "{text:?}\n{:?}", done.text);
        }
        Outcome::Inserted => {
            intended.insert(index, after[index].clone());
            assert!(after[index].is_unconditional());
            let undone = edit(&done.text, policy, tool, Change::Inherit, Some(index))
                .expect("what was set can be undone");
            assert_eq!((undone.outcome, undone.text.as_str()), (Outcome::Removed, text));
        }
        Outcome::Removed | Outcome::Emptied => panic!("nothing was to be removed"),
    }
    assert_eq!(after, intended);
    let decides = done.outcome == Outcome::Inserted || deciding == Some(index);
    if let Some((own, standard)) = view(&done.text, policy, tool).filter(|_| deciding.is_some() && decides) {
        assert_eq!((own.deciding, standard), (Some(index), action), "{}", done.text);
    }
}

fn check_inherit(text: &str, policy: &Policy, tool: &ToolName) {
    let Some(done) = edit(text, policy, tool, Change::Inherit, None) else {
        return;
    };
    match done.outcome {
        Outcome::Removed => assert_eq!(rules(&done.text, policy).len() + 1, policy.rules.len()),
        Outcome::Emptied => assert!(done.text.is_empty() && policy.rules.len() == 1),
        Outcome::Unchanged => assert_eq!(done.text, text),
        Outcome::Rewritten | Outcome::Inserted => panic!("nothing was to be written"),
    }
}

fn changed_lines(one: &str, other: &str) -> usize {
    let (one, other): (Vec<&str>, Vec<&str>) = (one.split('\n').collect(), other.split('\n').collect());
    assert_eq!(one.len(), other.len());
    one.iter().zip(&other).filter(|(one, other)| one != other).count()
}
