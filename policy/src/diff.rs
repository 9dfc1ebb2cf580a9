//! What a change of policies opens and closes, for whom.

use std::collections::BTreeSet;

use serde::Serialize;
use tools::id::{AgentId, Namespace};

use crate::catalogue::{Catalogue, KnownTool};
use crate::document::{Action, Rule};
use crate::foresee::{Conditional, ToolDecision, ToolQuery};
use crate::glob::Glob;
use crate::{PolicySet, sample};

/// Someone whose tools are compared: an agent, or one that stands for all that a pattern matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Subject {
    /// What is shown: the agent, or the pattern it stands for.
    pub shown: String,
    /// Who is asked about.
    pub agent: AgentId,
    /// Where.
    pub namespace: Namespace,
}

/// What may happen to calls of a tool, from closed to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// No call can run.
    Closed,
    /// Some calls can, after a person said yes.
    Asked,
    /// Some calls run without a person.
    Open,
}

/// How one tool is decided, before any call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct View {
    /// Where static rules land, floors applied.
    pub action: Action,
    /// Whether other calls of it can end otherwise.
    pub is_conditional: bool,
    /// The most that some call of it can reach.
    pub reach: Reach,
    /// The deciding static rule, as `policy#index`.
    pub rule: Option<String>,
}

/// One tool that is decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// For whom.
    pub agent: String,
    /// Where.
    pub namespace: Namespace,
    /// The tool.
    pub tool: String,
    /// Whether calls of it are plain reads.
    pub plain_read: bool,
    /// Whether it opens, closes, or only changes how it is decided.
    pub direction: Direction,
    /// Before.
    pub old: View,
    /// After.
    pub new: View,
}

/// Where a change leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More runs.
    Opens,
    /// Less runs.
    Closes,
    /// Decided otherwise, without being plainly more or less.
    Changes,
}

/// Everybody whom one of two sets names: literal agents, and one for each pattern.
pub fn subjects(old: &PolicySet, new: &PolicySet) -> Vec<Subject> {
    let mut found = BTreeSet::new();
    for policy in old.policies().chain(new.policies()) {
        for agent in &policy.agents {
            for namespace in &policy.namespaces {
                found.extend(subject(agent, namespace));
            }
        }
    }
    found.into_iter().collect()
}

fn subject(agent: &Glob, namespace: &Glob) -> Option<Subject> {
    let namespace = if namespace.is_any() {
        Namespace::default()
    } else {
        sample::text_of(namespace).parse().ok()?
    };
    Some(Subject {
        shown: agent.as_str().to_owned(),
        agent: sample::text_of(agent).parse().ok()?,
        namespace,
    })
}

/// Every tool that is decided otherwise for somebody, by subject and name.
pub fn diff(old: &PolicySet, new: &PolicySet, subjects: &[Subject], catalogue: &Catalogue) -> Vec<Change> {
    let mut changes = Vec::new();
    for subject in subjects {
        for known in catalogue.tools() {
            let before = view(old, subject, known);
            let after = view(new, subject, known);
            if (before.view.action, before.view.reach, &before.conditional)
                == (after.view.action, after.view.reach, &after.conditional)
            {
                continue;
            }
            changes.push(Change {
                agent: subject.shown.clone(),
                namespace: subject.namespace.clone(),
                tool: known.name().to_string(),
                plain_read: known.classification().plain_read,
                direction: direction(&before.view, &after.view),
                old: before.view,
                new: after.view,
            });
        }
    }
    changes
}

fn direction(old: &View, new: &View) -> Direction {
    // A stricter action is a greater one.
    let milder = old.action.cmp(&new.action);
    match (new.reach.cmp(&old.reach), milder) {
        (std::cmp::Ordering::Greater, _) => Direction::Opens,
        (std::cmp::Ordering::Less, _) => Direction::Closes,
        (std::cmp::Ordering::Equal, std::cmp::Ordering::Greater) => Direction::Opens,
        (std::cmp::Ordering::Equal, std::cmp::Ordering::Less) => Direction::Closes,
        (std::cmp::Ordering::Equal, std::cmp::Ordering::Equal) => Direction::Changes,
    }
}

struct Viewed {
    view: View,
    /// The conditional rules, without where they stand.
    conditional: Vec<Rule>,
}

fn view(set: &PolicySet, subject: &Subject, known: &KnownTool) -> Viewed {
    let query = ToolQuery {
        namespace: &subject.namespace,
        agent: &subject.agent,
        user: None,
        session: None,
        tool: known.name(),
        classification: known.classification(),
        targets: None,
        floors: &known.floors,
    };
    let decided = set.tool_decision(&query);
    let mut conditional: Vec<Rule> = decided
        .conditional
        .iter()
        .filter_map(|part| {
            let policy = set.get(part.rule.policy.as_str())?;
            let rule = policy.rules.get(part.rule.index)?;
            Some(Rule {
                line: 0,
                ..rule.clone()
            })
        })
        .collect();
    conditional.dedup();
    let reach = match (set.could_run(&query), mildest(&decided)) {
        (false, _) => Reach::Closed,
        (true, Action::Allow) => Reach::Open,
        (true, Action::HumanApproval | Action::Deny) => Reach::Asked,
    };
    Viewed {
        view: View {
            action: decided.action,
            is_conditional: !decided.conditional.is_empty(),
            reach,
            rule: decided
                .rule
                .as_ref()
                .map(|rule| format!("{}#{}", rule.policy, rule.index)),
        },
        conditional,
    }
}

/// The mildest action that a call of the tool can get.
fn mildest(decided: &ToolDecision) -> Action {
    let floor = decided.floors.iter().map(|floor| floor.action).max();
    let conditional = decided
        .conditional
        .iter()
        .map(|part: &Conditional| part.action)
        .min();
    let standard = conditional.map_or(decided.standard, |action| action.min(decided.standard));
    standard.max(floor.unwrap_or(Action::Allow))
}

#[cfg(test)]
mod tests;
