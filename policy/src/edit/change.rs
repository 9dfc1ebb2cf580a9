//! The edit.

use super::page::{Page, Splice};
use super::refused::{EditRefused, Shape};
use super::rule::{Made, Refused, Rules};
use super::written::{Indent, is_only_made, literal_tool, rule_lines};
use super::{Change, Edit, EditRequest, Outcome};
use crate::document::{Action, Policy, Rule, Source};
use crate::glob::ToolGlob;
use crate::yaml::{self, Problems, Style, Value};

/// Changes one tool's action in a text of one or more policies. `file` names the text in messages.
///
/// A rule that names exactly this tool gets the action in place; else a new one goes right before the rule that
/// decides today, or behind the last one. [`Change::Inherit`] removes a rule that was set from here. Every byte outside
/// of the lines of that rule stays as it is, and the text then says exactly what it said, but for that rule.
///
/// # Errors
/// When the text is not valid, is written in a way that cannot be edited safely, or the rule is not ours to remove.
pub fn set_action(text: &str, file: &str, request: &EditRequest<'_>) -> Result<Edit, EditRefused> {
    let glob = literal_tool(request.tool)?;
    let documents = read(text, file, request)?;
    let found = documents
        .iter()
        .position(|(_, policy)| policy.name == *request.policy);
    let Some((document, policy)) = found.and_then(|at| documents.get(at)) else {
        return Err(EditRefused::NoSuchPolicy {
            file: file.to_owned(),
            policy: request.policy.clone(),
        });
    };
    let page = Page::new(text);
    let shape = |(line, shape): Refused| EditRefused::Shape {
        file: file.to_owned(),
        line,
        shape,
    };
    let rules = Rules::of(document, policy, &page);
    // A rule that is not there is not there in whatever shape.
    if request.change == Change::Inherit && !policy.rules.iter().any(|rule| could_name(rule, &glob)) {
        return Ok(unchanged(text, None));
    }
    let rules = rules.map_err(shape)?;
    let naming = rules.naming(request.tool, request.deciding);
    let step = match (request.change, naming) {
        (Change::Set(action), Some(index)) if is_action(policy, index, action) => {
            return Ok(unchanged(text, Some(index)));
        }
        (Change::Set(action), Some(index)) => rewrite(&rules, index, action, request).map_err(shape)?,
        (Change::Set(action), None) => insert(&rules, action, request).map_err(shape)?,
        (Change::Inherit, None) => return Ok(unchanged(text, None)),
        (Change::Inherit, Some(index)) => {
            let whole = documents.len() == 1;
            match remove(&rules, index, file, request)? {
                _ if whole && is_only_made(text, policy, request.tool) => {
                    return Ok(Edit {
                        text: String::new(),
                        outcome: Outcome::Emptied,
                        rule: None,
                    });
                }
                _ if policy.rules.len() == 1 => {
                    return Err(EditRefused::OnlyRule {
                        file: file.to_owned(),
                        line: policy.rules.first().map_or(0, |rule| rule.line),
                    });
                }
                step => step,
            }
        }
    };
    let after = page.with(&step.splices);
    let intended = intended(&documents, found, &step, &glob);
    confirm(&after, file, request, &intended)?;
    Ok(Edit {
        text: after,
        outcome: step.outcome(),
        rule: step.rule_after(),
    })
}

/// What is done to the rules, and the parts of the text that do it.
struct Step {
    splices: Vec<Splice>,
    done: Done,
}

#[derive(Clone, Copy)]
enum Done {
    Rewrote(usize, Action),
    Inserted(usize, Action),
    Removed(usize),
}

impl Step {
    fn outcome(&self) -> Outcome {
        match self.done {
            Done::Rewrote(..) => Outcome::Rewritten,
            Done::Inserted(..) => Outcome::Inserted,
            Done::Removed(_) => Outcome::Removed,
        }
    }

    fn rule_after(&self) -> Option<usize> {
        match self.done {
            Done::Rewrote(index, _) | Done::Inserted(index, _) => Some(index),
            Done::Removed(_) => None,
        }
    }
}

fn unchanged(text: &str, rule: Option<usize>) -> Edit {
    Edit {
        text: text.to_owned(),
        outcome: Outcome::Unchanged,
        rule,
    }
}

fn could_name(rule: &Rule, glob: &ToolGlob) -> bool {
    rule.tools.as_deref() == Some(std::slice::from_ref(glob))
}

fn is_action(policy: &Policy, index: usize, action: Action) -> bool {
    policy.rules.get(index).is_some_and(|rule| rule.action == action)
}

/// Every document that is not empty, with its policy.
fn read(text: &str, file: &str, request: &EditRequest<'_>) -> Result<Vec<(Value, Policy)>, EditRefused> {
    let invalid = |problems| EditRefused::Invalid {
        file: file.to_owned(),
        problems,
    };
    let documents = yaml::load(file, text).map_err(invalid)?;
    let written: Vec<&Value> = documents.iter().filter(|document| !document.is_null()).collect();
    let problems = Problems::new(file);
    let policies = Policy::read_values(&written, &Source::Api, request.lists, &problems);
    let policies = problems.into_result(Some(policies)).map_err(invalid)?;
    let documents = documents.into_iter().filter(|document| !document.is_null());
    Ok(documents.zip(policies).collect())
}

fn rewrite(
    rules: &Rules<'_>,
    index: usize,
    action: Action,
    request: &EditRequest<'_>,
) -> Result<Step, Refused> {
    let page = rules.page;
    let value = rules.value(index).ok_or((0, Shape::Action))?;
    let written = value.get("action").ok_or((value.line(), Shape::Action))?;
    let layout = written.layout();
    if value.layout().is_decorated || layout.is_decorated {
        return Err((written.line(), Shape::Decorated));
    }
    let refused = (written.line(), Shape::Action);
    let from = page.offset(written.mark()).ok_or(refused)?;
    let now = written.as_str().ok_or(refused)?;
    // The reader ends a quoted text behind the comment that follows it, so the text itself is looked for.
    let written_as = |quote: &str| page.from(from).starts_with(&format!("{quote}{now}{quote}"));
    let quote = match layout.style {
        Style::Plain if written_as("") => "",
        Style::Quoted if written_as("\"") => "\"",
        Style::Quoted if written_as("'") => "'",
        Style::Plain | Style::Quoted | Style::Lines | Style::Block | Style::Flow | Style::Alias => {
            return Err(refused);
        }
    };
    let from = from + quote.len();
    let splice = Splice {
        from,
        to: from + now.len(),
        text: action.to_string(),
    };
    let mut splices = Vec::new();
    if let Some(line) = rules.heading(index) {
        let start = page.start(line);
        let old = page.line(line);
        let indent = old.len() - old.trim_start_matches(' ').len();
        splices.push(Splice {
            from: start + indent,
            to: start + old.len(),
            text: request.note.of_rule(),
        });
    }
    splices.push(splice);
    Ok(Step {
        splices,
        done: Done::Rewrote(index, action),
    })
}

fn insert(rules: &Rules<'_>, action: Action, request: &EditRequest<'_>) -> Result<Step, Refused> {
    let deciding = request.deciding.filter(|index| rules.value(*index).is_some());
    let (line, indent) = match deciding {
        Some(index) => rules.place_before(index)?,
        None => rules.place_at_end()?,
    };
    let page = rules.page;
    let line_break = page.line_break(line.saturating_sub(1));
    let [first, second] = rule_lines(request.tool.as_str(), action, indent);
    let Indent { dash, .. } = indent;
    let lines = [format!("{:dash$}{}", "", request.note.of_rule()), first, second].join(line_break);
    let text = if page.is_open_end(line) {
        format!("{line_break}{lines}")
    } else {
        format!("{lines}{line_break}")
    };
    let at = page.start(line);
    Ok(Step {
        splices: vec![Splice {
            from: at,
            to: at,
            text,
        }],
        done: Done::Inserted(deciding.unwrap_or(rules.policy.rules.len()), action),
    })
}

fn remove(
    rules: &Rules<'_>,
    index: usize,
    file: &str,
    request: &EditRequest<'_>,
) -> Result<Step, EditRefused> {
    let line = rules.policy.rules.get(index).map_or(0, |rule| rule.line);
    let file = file.to_owned();
    let (first, last) = match rules.made(index, request.tool) {
        Made::FromHere(first, last) => (first, last),
        Made::ByHand => return Err(EditRefused::ByHand { file, line }),
        Made::Touched => return Err(EditRefused::Touched { file, line }),
    };
    let page = rules.page;
    let (mut from, to) = (page.start(first), page.start(last.saturating_add(1)));
    // Without a final line break, the one before was put there with the rule.
    if !page.whole_line(last).ends_with('\n') {
        let above = first.saturating_sub(1);
        from = page.start(above) + page.line(above).len();
    }
    Ok(Step {
        splices: vec![Splice {
            from,
            to,
            text: String::new(),
        }],
        done: Done::Removed(index),
    })
}

/// What the text has to say after the edit.
fn intended(
    documents: &[(Value, Policy)],
    edited: Option<usize>,
    step: &Step,
    glob: &ToolGlob,
) -> Vec<Policy> {
    let mut policies: Vec<Policy> = documents.iter().map(|(_, policy)| policy.clone()).collect();
    let Some(policy) = edited.and_then(|at| policies.get_mut(at)) else {
        return policies;
    };
    match step.done {
        Done::Rewrote(index, action) => {
            if let Some(rule) = policy.rules.get_mut(index) {
                rule.action = action;
            }
        }
        Done::Inserted(index, action) => {
            let rule = Rule {
                line: 0,
                tools: Some(vec![glob.clone()]),
                except: Vec::new(),
                selectors: Vec::new(),
                action,
                message: None,
                condition: None,
            };
            policy.rules.insert(index.min(policy.rules.len()), rule);
        }
        Done::Removed(index) => {
            if index < policy.rules.len() {
                policy.rules.remove(index);
            }
        }
    }
    policies
}

/// Reads the text again: it says what was intended, or the edit is refused.
fn confirm(
    text: &str,
    file: &str,
    request: &EditRequest<'_>,
    intended: &[Policy],
) -> Result<(), EditRefused> {
    let more = |reason: String| EditRefused::ChangesMore {
        file: file.to_owned(),
        reason,
    };
    let found = Policy::parse_all(file, text, &Source::Api, request.lists)
        .map_err(|problems| more(problems.first().map(ToString::to_string).unwrap_or_default()))?;
    if found.len() != intended.len() {
        return Err(more("the file would hold another number of documents".to_owned()));
    }
    for (found, intended) in found.into_iter().zip(intended) {
        if without_lines(found.clone()) != without_lines(intended.clone()) {
            return Err(more(format!(
                "policy \"{}\" would say something else",
                intended.name
            )));
        }
    }
    Ok(())
}

fn without_lines(mut policy: Policy) -> Policy {
    policy.rules.iter_mut().for_each(|rule| rule.line = 0);
    policy
}
