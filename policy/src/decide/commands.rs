//! The decision about a call of a program, which can mean several commands.

use tools::classify::Classification;
use tools::id::ToolName;

use super::{Decision, Floor};
use crate::PolicySet;
use crate::document::{Action, Rule};

/// What a call of a program can mean beside the name that was called.
#[derive(Debug)]
pub struct Commands<'c> {
    /// The name that was called.
    pub called: &'c ToolName,
    /// Every other command that the call can mean.
    pub others: Vec<Meant<'c>>,
    /// Further names that the leading words of the argument vector make.
    pub related: Vec<ToolName>,
    /// What the called name and the others are judged to do together.
    pub together: &'c Classification,
}

/// A command that a call can mean.
#[derive(Debug, Clone, Copy)]
pub struct Meant<'c> {
    /// Its governed name.
    pub name: &'c ToolName,
    /// What it is judged to do.
    pub classification: &'c Classification,
    /// The floor of the program, for a command that is not declared.
    pub floor: Option<Floor>,
}

/// The decision that holds, and the name that it is about.
#[derive(Debug)]
pub struct Strictest {
    /// The decision.
    pub decision: Decision,
    /// The name.
    pub about: ToolName,
}

impl Commands<'_> {
    /// The command of a name, among those that the call can mean beside the name that was called.
    pub fn meant(&self, name: &ToolName) -> Option<Meant<'_>> {
        let other = self.others.iter().find(|other| other.name == name).copied();
        let related = || {
            let name = self.related.iter().find(|related| *related == name)?;
            Some(Meant {
                name,
                classification: self.together,
                floor: None,
            })
        };
        other.or_else(related)
    }

    /// The strictest of the decision about the called name and those about every command that the call can mean, each of which
    /// `decide` makes. A rule that names further leading words of the argument vector, and none of these, holds too: one
    /// about `kubectl.delete` holds for `kubectl delete pod`, whatever that is called. So does an `except` with such a name, of
    /// a rule that decided: what it takes out is decided without that rule.
    pub fn strictest(
        &self,
        set: &PolicySet,
        called: Decision,
        mut decide: impl FnMut(&ToolName, &Classification, Option<Floor>) -> Decision,
    ) -> Strictest {
        let mut deciding: Vec<&Rule> = deciding_rule(set, &called).into_iter().collect();
        let mut strictest = Strictest {
            decision: called,
            about: self.called.clone(),
        };
        for other in &self.others {
            let about = decide(other.name, other.classification, other.floor);
            deciding.extend(deciding_rule(set, &about));
            strictest = strictest.or(other.name, about);
        }
        for name in &self.related {
            let about = decide(name, self.together, None);
            let is_excepted = || {
                let mut exceptions = deciding.iter().flat_map(|rule| &rule.except);
                exceptions.any(|glob| glob.matches(name.as_str()))
            };
            if about.action > strictest.decision.action
                && (!self.covers_decided(set, &about) || is_excepted())
            {
                strictest = strictest.or(name, about);
            }
        }
        strictest
    }

    /// Whether the rule that decided covers a name that was decided anyway, and so had its say there.
    fn covers_decided(&self, set: &PolicySet, decision: &Decision) -> bool {
        let Some(rule) = deciding_rule(set, decision) else {
            // No rule names it.
            return true;
        };
        let others = self.others.iter().map(|other| other.name);
        others
            .chain([self.called])
            .any(|name| rule.covers_tool(name.as_str()))
    }
}

/// The rule that decided.
fn deciding_rule<'s>(set: &'s PolicySet, decision: &Decision) -> Option<&'s Rule> {
    let rule = decision.rule.as_ref()?;
    set.get(rule.policy.as_str())?.rules.get(rule.index)
}

impl Strictest {
    /// The stricter of two decisions about one call, with the floors of both.
    fn or(self, name: &ToolName, other: Decision) -> Self {
        let (mut kept, left, about) = if other.action > self.decision.action {
            (other, self.decision, name.clone())
        } else {
            (self.decision, other, self.about)
        };
        for floor in left.floors {
            if !kept.floors.contains(&floor) {
                kept.floors.push(floor);
            }
        }
        kept.undecided |= left.undecided;
        kept.standard = kept.standard.max(left.standard);
        kept.shadow = kept.shadow.or(left.shadow);
        if kept.action == Action::Allow {
            kept.lifted_by = kept.lifted_by.or(left.lifted_by);
        }
        Self {
            decision: kept,
            about,
        }
    }
}
