//! The new text, and the proof that it does what was asked and nothing else.

use std::sync::Arc;

use http::StatusCode;
use net::problem::Problem;
use policy::document::{Lists, Source};
use policy::edit::{self, Change, EditRefused, EditRequest, Outcome, OwnPolicy, own_policy};
use policy::{Action, Policy, PolicySet};
use tools::classify::Classification;
use tools::id::{Namespace, PolicyName};

use super::super::super::refusal::internal;
use super::super::super::tools::{Known, all, classification_by_name, compiled, known_as, query};
use super::super::document::Belief;
use super::{Failed, Question};
use crate::core::Core;
use crate::documents::{self, FileRefused, Replacement};
use crate::store::desired::{Expected, PolicyDraft, PolicyOrigin, PolicyRow};

/// What is to be stored.
#[derive(Debug)]
pub(super) enum Step {
    Nothing,
    Put(Box<PolicyDraft>, Expected),
    Remove(String, Expected),
    File(Replacement),
}

/// An edit that has been worked out and proven against what is stored now.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) step: Step,
    pub(super) policy: Option<String>,
    pub(super) rule: Option<usize>,
    pub(super) before: Action,
    pub(super) after: Action,
    pub(super) version_before: Option<u64>,
    pub(super) text_before: Option<String>,
    pub(super) text_after: Option<String>,
    pub(super) source_file: Option<String>,
}

impl Plan {
    pub(super) fn is_change(&self) -> bool {
        !matches!(self.step, Step::Nothing)
    }

    pub(super) fn creates(&self) -> bool {
        self.is_change() && self.version_before.is_none()
    }

    pub(super) fn file(&self) -> Option<&str> {
        self.source_file.as_deref()
    }
}

impl From<FileRefused> for Failed {
    fn from(refused: FileRefused) -> Self {
        let problem = Problem::conflict(refused.to_string());
        match refused {
            FileRefused::Changed { .. } => Self::Stale(problem),
            FileRefused::ReadOnly { .. } | FileRefused::Invalid { .. } => Self::Refused(problem),
            FileRefused::Failed { .. } => {
                tracing::error!(error = %refused, "a policy file was not edited");
                Self::Refused(Problem::unavailable(refused.to_string()))
            }
        }
    }
}

pub(super) fn refused(refused: EditRefused) -> Failed {
    Failed::Refused(Problem::conflict(refused.to_string()))
}

pub(super) async fn plan(core: &Arc<Core>, question: &Arc<Question>, belief: Belief) -> Result<Plan, Failed> {
    let rows = core.store.policies().await?;
    let tools = all(core, question.namespace.as_ref().map(Namespace::as_str)).await?;
    let date = super::super::super::text::time(core.clock.wall_micros());
    let (core_of_task, question) = (Arc::clone(core), Arc::clone(question));
    let planning = core.tasks.spawn_blocking(move || {
        let desk = Desk::new(&core_of_task, &question, rows, tools, date);
        desk.plan(belief)
    });
    planning
        .await
        .map_err(|error| Failed::Refused(internal(&error)))?
}

/// Everything that a plan is made from.
pub(super) struct Desk<'a> {
    pub(super) core: &'a Core,
    pub(super) question: &'a Question,
    pub(super) rows: Vec<PolicyRow>,
    pub(super) set: PolicySet,
    /// The tool as it is known, in each namespace.
    seen: Vec<(Namespace, Classification)>,
    date: String,
}

impl<'a> Desk<'a> {
    fn new(
        core: &'a Core,
        question: &'a Question,
        rows: Vec<PolicyRow>,
        tools: Vec<Known>,
        date: String,
    ) -> Self {
        let mut seen: Vec<(Namespace, Classification)> = tools
            .into_iter()
            .filter(|known| known.row.name == question.tool.as_str())
            .filter_map(known_as)
            .collect();
        if seen.is_empty() {
            let namespace = question.namespace.clone().unwrap_or_default();
            seen.push((namespace, classification_by_name(&question.tool)));
        }
        let day = date.split('T').next().unwrap_or_default().to_owned();
        Self {
            core,
            question,
            set: compiled(rows.clone()),
            rows,
            seen,
            date: day,
        }
    }

    pub(super) fn request<'r>(
        &'r self,
        policy: &'r PolicyName,
        deciding: Option<usize>,
        lists: &'r Lists,
    ) -> EditRequest<'r> {
        EditRequest {
            policy,
            tool: &self.question.tool,
            change: self.question.change,
            deciding,
            note: self.question.note(&self.date),
            lists,
        }
    }

    /// Where static rules land in each namespace, before floors; the strictest.
    pub(super) fn standard(&self, set: &PolicySet) -> Action {
        let landed = self.seen.iter().map(|(namespace, classification)| {
            let query = query(namespace, &self.question.agent, None, classification, &[]);
            set.tool_decision(&query).standard
        });
        landed.max().unwrap_or(Action::Deny)
    }

    fn own(&self) -> Result<Option<OwnPolicy>, Problem> {
        let mut found: Option<OwnPolicy> = None;
        for (namespace, classification) in &self.seen {
            let query = query(namespace, &self.question.agent, None, classification, &[]);
            let Some(own) = own_policy(&self.set, &query) else {
                continue;
            };
            match &mut found {
                None => found = Some(own),
                Some(other) if other.name == own.name => {
                    other.deciding = match (other.deciding, own.deciding) {
                        (Some(one), Some(other)) => Some(one.min(other)),
                        (one, other) => one.or(other),
                    };
                }
                Some(other) => {
                    return Err(Problem::conflict(format!(
                        "the agent's own policy is \"{}\" in one namespace and \"{}\" in another; say which with ?namespace=",
                        other.name, own.name
                    )));
                }
            }
        }
        Ok(found)
    }

    fn plan(&self, belief: Belief) -> Result<Plan, Failed> {
        let own = self.own()?;
        let row = own.as_ref().and_then(|own| {
            self.rows
                .iter()
                .find(|row| row.document.name == own.name.as_str())
        });
        believe(belief, row)?;
        match (own, row, self.question.change) {
            (Some(own), Some(row), _) => self.edit(&own, row),
            (_, _, Change::Inherit) => Ok(self.nothing(None, None)),
            (_, _, Change::Set(_)) => self.create(),
        }
    }

    fn nothing(&self, row: Option<&PolicyRow>, rule: Option<usize>) -> Plan {
        let standard = self.standard(&self.set);
        Plan {
            step: Step::Nothing,
            policy: row.map(|row| row.document.name.clone()),
            rule,
            before: standard,
            after: standard,
            version_before: row.map(|row| row.version),
            text_before: None,
            text_after: None,
            source_file: row.and_then(|row| file_of(row).map(str::to_owned)),
        }
    }

    fn edit(&self, own: &OwnPolicy, row: &PolicyRow) -> Result<Plan, Failed> {
        let document = &row.document;
        let (text, file) = match &document.origin {
            PolicyOrigin::Api => (document.text.clone(), None),
            PolicyOrigin::Inline { .. } => {
                return Err(Failed::Refused(Problem::conflict(format!(
                    "policy \"{}\" belongs to the configuration's `policies`; change it there",
                    document.name
                ))));
            }
            PolicyOrigin::Directory { file, .. } => (self.current(row, file)?, Some(file.as_str())),
        };
        let shown = file.map_or_else(|| format!("{}.yaml", document.name), str::to_owned);
        let request = self.request(&own.name, own.deciding, &self.core.lists);
        let edited = edit::set_action(&text, &shown, &request).map_err(refused)?;
        if edited.outcome == Outcome::Unchanged {
            let plan = self.nothing(Some(row), edited.rule);
            self.says_what_was_asked(plan.after, &self.set)?;
            return Ok(plan);
        }
        let is_gone = edited.outcome == Outcome::Emptied;
        let after = (!is_gone).then_some(edited.text);
        let policies = match &after {
            Some(text) => self.parse(&shown, text, file)?,
            None => Vec::new(),
        };
        let removed = if is_gone {
            vec![own.name.clone()]
        } else {
            Vec::new()
        };
        let own_after = policies.iter().find(|policy| policy.name == own.name).cloned();
        let set = self.with(policies, &removed);
        let standard = self.standard(&set);
        self.says_what_was_asked(standard, &set)?;
        let expected = Expected::Version(row.version);
        let step = match (file, &after, own_after) {
            (Some(file), after, _) => Step::File(Replacement {
                file: file.to_owned(),
                before: Some(text.clone()),
                after: after.clone(),
            }),
            (None, Some(text), Some(policy)) => Step::Put(Box::new(draft(&policy, text)?), expected),
            (None, _, _) => Step::Remove(document.name.clone(), expected),
        };
        Ok(Plan {
            step,
            policy: Some(document.name.clone()),
            rule: edited.rule,
            before: self.standard(&self.set),
            after: standard,
            version_before: Some(row.version),
            text_before: Some(text),
            text_after: after,
            source_file: file.map(str::to_owned),
        })
    }

    /// The text of a file, which has to be what is in force.
    fn current(&self, row: &PolicyRow, file: &str) -> Result<String, Failed> {
        let Some(directory) = &self.core.directory else {
            return Err(Failed::Refused(Problem::conflict(format!(
                "policy \"{}\" belongs to the file {file} of a policy directory that this control plane does not have",
                row.document.name
            ))));
        };
        if let Some(problem) = &row.document.problem {
            return Err(Failed::Refused(Problem::conflict(format!(
                "{file} is not valid, so it is not edited: {problem}"
            ))));
        }
        let changed = || FileRefused::Changed {
            file: file.to_owned(),
        };
        let text = documents::read_text(directory.path(), file)?.ok_or_else(changed)?;
        let policies =
            Policy::parse_all(file, &text, &Source::Directory, &self.core.lists).map_err(|problems| {
                refused(EditRefused::Invalid {
                    file: file.to_owned(),
                    problems,
                })
            })?;
        let in_force = |policy: &Policy| {
            self.set
                .get(policy.name.as_str())
                .is_some_and(|known| **known == *policy)
        };
        if policies.iter().all(in_force) {
            Ok(text)
        } else {
            Err(changed().into())
        }
    }

    pub(super) fn parse(&self, shown: &str, text: &str, file: Option<&str>) -> Result<Vec<Policy>, Failed> {
        let source = if file.is_some() {
            Source::Directory
        } else {
            Source::Api
        };
        Policy::parse_all(shown, text, &source, &self.core.lists).map_err(|problems| {
            refused(EditRefused::Invalid {
                file: shown.to_owned(),
                problems,
            })
        })
    }

    pub(super) fn with(&self, policies: Vec<Policy>, removed: &[PolicyName]) -> PolicySet {
        let invalid = self.set.invalid().to_vec();
        self.set
            .with_changes(policies.into_iter().map(Arc::new), removed, invalid)
    }

    /// What `/tools/decisions` will show before floors has to be what was asked, wherever the tool is.
    pub(super) fn says_what_was_asked(&self, landed: Action, set: &PolicySet) -> Result<(), Failed> {
        let Change::Set(asked) = self.question.change else {
            return Ok(());
        };
        for (namespace, classification) in &self.seen {
            let query = query(namespace, &self.question.agent, None, classification, &[]);
            let decision = set.tool_decision(&query);
            if decision.standard == asked {
                continue;
            }
            let deciding = match &decision.rule {
                Some(rule) => format!("rule {} of policy \"{}\" decides before", rule.index, rule.policy),
                None => "no rule decides".to_owned(),
            };
            return Err(Failed::Refused(Problem::conflict(format!(
                "nothing was changed: {} would still be {landed} for {} in namespace {namespace}, since {deciding}",
                self.question.tool, self.question.agent
            ))));
        }
        Ok(())
    }
}

fn file_of(row: &PolicyRow) -> Option<&str> {
    match &row.document.origin {
        PolicyOrigin::Directory { file, .. } => Some(file),
        PolicyOrigin::Inline { .. } | PolicyOrigin::Api => None,
    }
}

pub(super) fn draft(policy: &Policy, text: &str) -> Result<PolicyDraft, Failed> {
    documents::draft(policy, text).map_err(|error| Failed::Refused(internal(&error)))
}

/// `If-Match` speaks of the agent's own policy.
fn believe(belief: Belief, row: Option<&PolicyRow>) -> Result<(), Problem> {
    let found = row.map(|row| row.version);
    let holds = match belief {
        Belief::Is(Expected::Any) => true,
        Belief::Is(Expected::Absent) => found.is_none(),
        Belief::Is(Expected::Version(version)) => found == Some(version),
        Belief::Exists => found.is_some(),
    };
    if holds {
        return Ok(());
    }
    let now = match row {
        Some(row) => format!("\"{}\" at version {}", row.document.name, row.version),
        None => "not there".to_owned(),
    };
    Err(Problem::new(
        StatusCode::PRECONDITION_FAILED,
        format!("the agent's own policy is {now}; read it again"),
    ))
}
