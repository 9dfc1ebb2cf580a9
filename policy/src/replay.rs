//! Recorded calls, decided again by other policies.

mod meanings;

use std::collections::BTreeMap;

use serde::Serialize;
use tools::classify::{Classification, Risk, RiskSet, SideEffect, SideEffectKind, SideEffectSource};
use tools::id::{AgentId, Namespace, SessionId, ToolName, UserId};
use tools::json::{Document, Kind, Limits, Node};
use tools::targets::Targets;

use crate::PolicySet;
use crate::catalogue::Catalogue;
use crate::decide::{Call, Decision, Floor, Strictest};
use crate::document::{Action, Step};
use crate::evaluate::Truth;
use meanings::Meanings;

/// What a value that was redacted contains.
const MASK: &str = "[redacted";
/// The most record ids that one group names.
pub const MAX_RECORDS: usize = 20;

/// One recorded call.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The record's id.
    pub id: String,
    /// Who called.
    pub agent: AgentId,
    /// For whom.
    pub user: Option<UserId>,
    /// In which conversation.
    pub session: Option<SessionId>,
    /// Where.
    pub namespace: Namespace,
    /// What.
    pub tool: ToolName,
    /// The arguments as recorded; none when they were not kept.
    pub params: Option<String>,
    /// The argument vector as recorded, of a program's call; none when it was not kept.
    pub argv: Option<Vec<String>>,
    /// What policies decided then, before a grant.
    pub action: Action,
    /// What the call was judged to risk.
    pub risks: RiskSet,
    /// What it did.
    pub capability: Option<String>,
    /// Its effect.
    pub side_effect: Option<SideEffectKind>,
    /// What it reached.
    pub targets: Targets,
    /// Pins and dispatcher, as they were.
    pub floors: Vec<Floor>,
}

/// What other policies would have decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Calls whose outcome is another, by agent, tool and outcome.
    pub changes: Vec<Group>,
    /// How many calls were decided again.
    pub replayed: usize,
    /// How many of them as before.
    pub same: usize,
    /// Calls that could not be decided again.
    pub not_replayed: Vec<NotReplayed>,
}

/// Calls of one agent and tool whose outcome changes alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Who called.
    pub agent: String,
    /// What.
    pub tool: String,
    /// What was decided then.
    pub from: Action,
    /// What would be decided.
    pub to: Action,
    /// By which rule, as `policy#index`.
    pub rule: Option<String>,
    /// How many.
    pub count: usize,
    /// Their records, at most [`MAX_RECORDS`].
    pub records: Vec<String>,
}

/// A call that could not be decided again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotReplayed {
    /// Its record.
    pub record: String,
    /// What was called.
    pub tool: String,
    /// Why not.
    pub reason: String,
}

/// What calls of one group have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    agent: String,
    tool: String,
    from: Action,
    to: Action,
    rule: Option<String>,
}

/// Decides recorded calls again.
pub fn replay<'r>(
    set: &PolicySet,
    catalogue: &Catalogue,
    calls: impl IntoIterator<Item = &'r Recorded>,
) -> Replay {
    let mut done = Replay::default();
    let mut groups: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    for recorded in calls {
        let (action, rule) = match decide_again(set, catalogue, recorded) {
            Ok(decided) => decided,
            Err(reason) => {
                done.not_replayed.push(NotReplayed {
                    record: recorded.id.clone(),
                    tool: recorded.tool.to_string(),
                    reason,
                });
                continue;
            }
        };
        done.replayed += 1;
        if action == recorded.action {
            done.same += 1;
            continue;
        }
        let key = Key {
            agent: recorded.agent.to_string(),
            tool: recorded.tool.to_string(),
            from: recorded.action,
            to: action,
            rule,
        };
        groups.entry(key).or_default().push(recorded.id.clone());
    }
    done.changes = groups
        .into_iter()
        .map(|(key, mut records)| {
            let count = records.len();
            records.truncate(MAX_RECORDS);
            Group {
                agent: key.agent,
                tool: key.tool,
                from: key.from,
                to: key.to,
                rule: key.rule,
                count,
                records,
            }
        })
        .collect();
    done
}

fn decide_again(
    set: &PolicySet,
    catalogue: &Catalogue,
    recorded: &Recorded,
) -> Result<(Action, Option<String>), String> {
    let mut unknown = None;
    let decision = with_parts(catalogue, recorded, |called, meanings| {
        let decide = |call: &Call<'_>| {
            if unknown.is_none() {
                unknown = unknown_to(set, call, recorded.params.is_some());
            }
            set.decide(call)
        };
        strictest(set, called, meanings, decide).decision
    })?;
    if let Some(reason) = unknown {
        return Err(reason);
    }
    let rule = decision
        .rule
        .map(|rule| format!("{}#{}", rule.policy, rule.index));
    Ok((decision.action, rule))
}

/// Decides as the gate does: about the name that was called and about every command that a program's call can mean.
fn strictest(
    set: &PolicySet,
    called: &Call<'_>,
    meanings: &Meanings,
    mut decide: impl FnMut(&Call<'_>) -> Decision,
) -> Strictest {
    let decision = decide(called);
    let commands = meanings.commands(called.tool, called.classification);
    commands.strictest(set, decision, |tool, classification, floor| {
        decide(&Call {
            tool,
            classification,
            floors: floor.as_slice(),
            ..*called
        })
    })
}

/// Uses the recorded call as one that policies can decide: a program's as the command on which its decision rests.
///
/// # Errors
/// When its arguments cannot be read, or the record does not keep what the call can mean.
pub fn with_call<T>(
    catalogue: &Catalogue,
    recorded: &Recorded,
    set: &PolicySet,
    use_call: impl FnOnce(&Call<'_>) -> T,
) -> Result<T, String> {
    with_parts(catalogue, recorded, |called, meanings| {
        let about = strictest(set, called, meanings, |call| set.decide(call)).about;
        let commands = meanings.commands(called.tool, called.classification);
        match commands.meant(&about) {
            None => use_call(called),
            Some(meant) => use_call(&Call {
                tool: meant.name,
                classification: meant.classification,
                floors: meant.floor.as_slice(),
                ..*called
            }),
        }
    })
}

/// Whether the recorded call was decided under the name that was called alone, so that a test of that name says the same.
pub fn is_of_one_name(catalogue: &Catalogue, recorded: &Recorded) -> bool {
    let parts = with_parts(catalogue, recorded, |_, meanings| meanings.is_empty());
    parts.unwrap_or(false)
}

/// The recorded call under the name that was called, and what else it can mean.
fn with_parts<T>(
    catalogue: &Catalogue,
    recorded: &Recorded,
    use_parts: impl FnOnce(&Call<'_>, &Meanings) -> T,
) -> Result<T, String> {
    let text = recorded.params.as_deref().unwrap_or("{}");
    let document = Document::parse(text.as_bytes(), Limits::ARGUMENTS)
        .map_err(|error| format!("its arguments cannot be read: {error}"))?;
    let classification = judged(catalogue, recorded);
    let meanings = Meanings::of(catalogue, recorded, document.root())?;
    let call = Call {
        namespace: &recorded.namespace,
        agent: &recorded.agent,
        user: recorded.user.as_ref(),
        session: recorded.session.as_ref(),
        tool: &recorded.tool,
        classification: &classification,
        targets: &recorded.targets,
        arguments: Some(document.root()),
        floors: &recorded.floors,
    };
    Ok(use_parts(&call, &meanings))
}

/// What the catalogue says of the tool, with what the record says of the call.
fn judged(catalogue: &Catalogue, recorded: &Recorded) -> Classification {
    let known = catalogue.get_or_unknown(&recorded.tool);
    let mut classification = known.classification().clone();
    if !recorded.risks.is_empty() {
        classification.risks = recorded.risks;
        classification.risk = recorded.risks.gravest();
    }
    if recorded.capability.is_some() {
        classification.capability.clone_from(&recorded.capability);
    }
    if let Some(kind) = recorded.side_effect
        && kind != classification.side_effect.kind
    {
        // A recorded read may have been the default.
        let source = match kind {
            SideEffectKind::Read => SideEffectSource::Default,
            SideEffectKind::Write | SideEffectKind::Delete | SideEffectKind::Admin => SideEffectSource::Name,
        };
        classification.side_effect = SideEffect { kind, source };
    }
    classification
}

/// Why the decision would rest on something that the record does not hold; `None` when it does not.
fn unknown_to(set: &PolicySet, call: &Call<'_>, has_params: bool) -> Option<String> {
    for explained in set.explain(call) {
        if explained
            .parts
            .first()
            .is_none_or(|part| part.truth != Truth::True)
        {
            continue;
        }
        for (path, _) in set.argument_tests(&explained.rule) {
            if !has_params {
                return Some(format!(
                    "its arguments were not kept, and {}#{} asks for \"{path}\"",
                    explained.rule.policy,
                    explained.rule.index,
                    path = path.as_str()
                ));
            }
            if call
                .arguments
                .is_some_and(|arguments| is_masked(arguments, path.steps()))
            {
                return Some(format!("\"{}\" was redacted", path.as_str()));
            }
        }
    }
    None
}

/// Whether the way to a value meets redacted text.
fn is_masked(node: Node<'_>, steps: &[Step]) -> bool {
    if node.kind() == Kind::String {
        return node.as_str().is_some_and(|text| text.contains(MASK));
    }
    let Some((step, rest)) = steps.split_first() else {
        return false;
    };
    match step {
        Step::Key(key) => node.get(key).is_some_and(|inner| is_masked(inner, rest)),
        Step::Index(index) => node
            .elements()
            .nth(*index)
            .is_some_and(|inner| is_masked(inner, rest)),
        Step::Some | Step::Every => node.elements().any(|inner| is_masked(inner, rest)),
    }
}

/// The risks of a record's texts; unknown ones are UNKNOWN.
pub fn risks_of<'t>(names: impl IntoIterator<Item = &'t str>) -> RiskSet {
    let mut risks = RiskSet::EMPTY;
    for name in names {
        risks.insert(Risk::from_name(name).unwrap_or(Risk::Unknown));
    }
    risks
}

#[cfg(test)]
mod tests;
