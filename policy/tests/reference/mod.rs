//! The decision as specs/policy.md says it, without any cleverness: no index, no plan, no cache, every rule looked at.
#![allow(dead_code, reason = "every test file uses its part")]
#![allow(unreachable_pub, reason = "the module is private to each test")]

pub mod tests_of_fields;

use policy::decide::FloorKind;
use policy::document::{Action, Condition, Mode, Policy, PolicyKind, Rule, Selector, TargetKind};
use policy::evaluate::Truth;
use policy::{Call, InvalidPolicy};
use tools::classify::{Access, Risk};
use tools::targets::Extent;

/// Settles a test or selector that is undecided; `None` leaves it so.
pub type Oracle<'o> = &'o mut dyn FnMut() -> Option<bool>;

/// What the reference says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub action: Action,
    pub standard: Action,
    /// The standard rule that decided.
    pub rule: Option<(String, usize)>,
    /// The strictest of the floors.
    pub floor: Option<Action>,
}

/// Wildcards, by trying everything.
pub fn glob(pattern: &str, text: &str) -> bool {
    let mut pattern_chars = pattern.chars();
    match pattern_chars.next() {
        None => text.is_empty(),
        Some('*') => (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .any(|at| glob(pattern_chars.as_str(), &text[at..])),
        Some('?') => {
            let mut rest = text.chars();
            rest.next().is_some() && glob(pattern_chars.as_str(), rest.as_str())
        }
        Some(letter) => text
            .strip_prefix(letter)
            .is_some_and(|rest| glob(pattern_chars.as_str(), rest)),
    }
}

const KINDS: [&str; 3] = ["resource:", "prompt:", "method:"];

fn tool_glob(pattern: &str, name: &str) -> bool {
    let local = name.split_once('.').map_or(name, |(_, local)| local);
    let special = KINDS.iter().any(|kind| local.starts_with(kind));
    glob(pattern, name) && (pattern == "*" || !special || KINDS.iter().any(|kind| pattern.contains(kind)))
}

/// Exact name; then longer literal part, then fewer wildcards. Smaller is more specific.
fn specificity(pattern: &str) -> (bool, i64, i64) {
    let collapsed = {
        let mut text = pattern.to_owned();
        while text.contains("**") {
            text = text.replace("**", "*");
        }
        text
    };
    let wildcards = collapsed
        .chars()
        .filter(|letter| matches!(letter, '*' | '?'))
        .count() as i64;
    let literal = collapsed.chars().count() as i64 - wildcards;
    (wildcards != 0, -literal, wildcards)
}

/// Section "Decision", steps 1 to 3; `shadow` takes shadow policies as if enforced.
pub fn decide(
    policies: &[Policy],
    invalid: &[InvalidPolicy],
    call: &Call<'_>,
    shadow: bool,
    oracle: Oracle<'_>,
) -> Answer {
    let (namespace, agent) = (call.namespace.as_str(), call.agent.as_str());
    let applies = |policy: &&Policy| {
        (shadow || policy.mode == Mode::Enforce)
            && policy
                .namespaces
                .iter()
                .any(|pattern| glob(pattern.as_str(), namespace))
            && policy.agents.iter().any(|pattern| glob(pattern.as_str(), agent))
    };
    let mut standard: Vec<&Policy> = policies
        .iter()
        .filter(applies)
        .filter(|policy| policy.kind == PolicyKind::Standard)
        .collect();
    let best = |policy: &Policy| {
        let matching = policy
            .agents
            .iter()
            .filter(|pattern| glob(pattern.as_str(), agent));
        matching.map(|pattern| specificity(pattern.as_str())).min()
    };
    standard.sort_by(|one, other| {
        (best(one), &one.origin, one.name.as_str()).cmp(&(best(other), &other.origin, other.name.as_str()))
    });

    let mut noted: Vec<(Action, (String, usize))> = Vec::new();
    let mut outcome = None;
    'walk: for policy in standard {
        for (index, rule) in policy.rules.iter().enumerate() {
            let reference = (policy.name.to_string(), index);
            match rule_truth(rule, call, oracle) {
                Truth::True => {
                    outcome = Some((rule.action, Some(reference)));
                    break 'walk;
                }
                Truth::False => {}
                Truth::Undecided => noted.push((rule.action, reference)),
            }
        }
    }
    let (mut action, mut rule) = outcome.unwrap_or((Action::Deny, None));
    let no_outcome = rule.is_none();
    for (noted_action, reference) in noted {
        if noted_action > action || (no_outcome && rule.is_none() && noted_action == Action::Deny) {
            (action, rule) = (noted_action, Some(reference));
        }
    }

    let mut floors: Vec<Action> = call.floors.iter().map(|floor| floor.action).collect();
    for policy in policies
        .iter()
        .filter(applies)
        .filter(|policy| policy.kind == PolicyKind::Guardrail)
    {
        for rule in &policy.rules {
            if rule_truth(rule, call, oracle) != Truth::False {
                floors.push(rule.action);
            }
        }
    }
    let covers = |globs: &[policy::glob::Glob], text: &str| {
        globs.is_empty() || globs.iter().any(|pattern| glob(pattern.as_str(), text))
    };
    if invalid
        .iter()
        .any(|one| covers(&one.agents, agent) && covers(&one.namespaces, namespace))
    {
        floors.push(Action::Deny);
    }
    let floor = floors.into_iter().filter(|floor| *floor > Action::Allow).max();
    Answer {
        action: action.max(floor.unwrap_or(Action::Allow)),
        standard: action,
        rule,
        floor,
    }
}

/// Section "Decision", step 4: what one grant makes of a decision, given where approvals come from.
pub fn lifted(
    standard: Action,
    guardrail: Option<Action>,
    floors: &[(FloorKind, Action)],
    covers: bool,
    literally: bool,
) -> Action {
    let mut action = if standard == Action::HumanApproval && covers {
        Action::Allow
    } else {
        standard
    };
    action = action.max(guardrail.unwrap_or(Action::Allow));
    for (kind, floor) in floors {
        let lifted = *kind == FloorKind::Dispatcher && *floor == Action::HumanApproval && literally;
        if !lifted {
            action = action.max(*floor);
        }
    }
    action
}

fn settle(truth: Truth, oracle: Oracle<'_>) -> Truth {
    match truth {
        Truth::Undecided => oracle().map_or(Truth::Undecided, Truth::from),
        decided => decided,
    }
}

fn all(truths: &[Truth]) -> Truth {
    if truths.contains(&Truth::False) {
        Truth::False
    } else if truths.contains(&Truth::Undecided) {
        Truth::Undecided
    } else {
        Truth::True
    }
}

fn any(truths: &[Truth]) -> Truth {
    if truths.contains(&Truth::True) {
        Truth::True
    } else if truths.contains(&Truth::Undecided) {
        Truth::Undecided
    } else {
        Truth::False
    }
}

pub fn rule_truth(rule: &Rule, call: &Call<'_>, oracle: Oracle<'_>) -> Truth {
    let name = call.tool.as_str();
    let covers = match &rule.tools {
        None => true,
        Some(patterns) => patterns.iter().any(|pattern| tool_glob(pattern.as_str(), name)),
    };
    let excepted = rule
        .except
        .iter()
        .any(|pattern| tool_glob(pattern.as_str(), name));
    let mut parts = vec![Truth::from(covers && !excepted)];
    for selector in &rule.selectors {
        let truth = selector_truth(selector, rule.action, call);
        parts.push(settle(truth, oracle));
    }
    if let Some(condition) = &rule.condition {
        parts.push(condition_truth(condition, call, oracle));
    }
    all(&parts)
}

fn condition_truth(condition: &Condition, call: &Call<'_>, oracle: Oracle<'_>) -> Truth {
    match condition {
        Condition::All(parts) => {
            let truths: Vec<Truth> = parts
                .iter()
                .map(|part| condition_truth(part, call, oracle))
                .collect();
            all(&truths)
        }
        Condition::Any(parts) => {
            let truths: Vec<Truth> = parts
                .iter()
                .map(|part| condition_truth(part, call, oracle))
                .collect();
            any(&truths)
        }
        Condition::Not(part) => match condition_truth(part, call, oracle) {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            Truth::Undecided => Truth::Undecided,
        },
        Condition::Test(test) => settle(tests_of_fields::test_truth(test, call), oracle),
    }
}

fn selector_truth(selector: &Selector, action: Action, call: &Call<'_>) -> Truth {
    let classification = call.classification;
    match selector {
        Selector::Risk(listed) => {
            let members: Vec<Truth> = classification
                .risks
                .iter()
                .map(|risk| match (listed.contains(risk), risk) {
                    (true, _) => Truth::True,
                    (false, Risk::Unknown) => Truth::Undecided,
                    (false, _) => Truth::False,
                })
                .collect();
            set(&members, action)
        }
        Selector::Access(listed) => match classification.access {
            access if listed.contains(&access) => Truth::True,
            Access::Unknown => Truth::Undecided,
            _ => Truth::False,
        },
        Selector::Family(listed) => listed.contains(&classification.family).into(),
        Selector::SideEffect(listed) => {
            match (
                listed.contains(&classification.side_effect.kind),
                classification.side_effect.is_known(),
            ) {
                (true, _) => Truth::True,
                (false, true) => Truth::False,
                (false, false) => Truth::Undecided,
            }
        }
        Selector::Capability(patterns) => match &classification.capability {
            None => Truth::Undecided,
            Some(capability) => patterns
                .iter()
                .any(|pattern| glob(pattern.as_str(), capability))
                .into(),
        },
        Selector::Tags(listed) => classification
            .tags
            .iter()
            .any(|tag| listed.iter().any(|one| **one == **tag))
            .into(),
        Selector::User(patterns) => call
            .user
            .is_some_and(|user| {
                patterns
                    .iter()
                    .any(|pattern| glob(pattern.as_str(), user.as_str()))
            })
            .into(),
        Selector::Targets(kind, patterns) => {
            let extent = match kind {
                TargetKind::Resources => &call.targets.resources,
                TargetKind::Columns => &call.targets.columns,
                TargetKind::Hosts => &call.targets.hosts,
                TargetKind::Paths => &call.targets.paths,
                TargetKind::Recipients => &call.targets.recipients,
            };
            let Extent::Known(members) = extent else {
                return Truth::Undecided;
            };
            let members: Vec<Truth> = members
                .iter()
                .map(|member| {
                    patterns
                        .iter()
                        .any(|pattern| glob(pattern.as_str(), member))
                        .into()
                })
                .collect();
            set(&members, action)
        }
    }
}

/// An allow rule needs every member of a set that is not empty; the others need any.
fn set(members: &[Truth], action: Action) -> Truth {
    match action {
        Action::Allow if members.is_empty() => Truth::False,
        Action::Allow => all(members),
        Action::HumanApproval | Action::Deny => any(members),
    }
}
