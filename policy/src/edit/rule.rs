//! The rules of a document in its text.

use tools::id::ToolName;

use super::page::Page;
use super::refused::Shape;
use super::written::{Indent, heads_a_rule, rule_lines};
use crate::document::{Policy, Rule};
use crate::yaml::{Style, Value};

/// A shape that is in the way, with its line.
pub(super) type Refused = (u32, Shape);

/// A document's rules with where they are written.
pub(super) struct Rules<'d> {
    pub(super) page: &'d Page<'d>,
    pub(super) policy: &'d Policy,
    /// The line of the key `rules`.
    key_line: u32,
    written: &'d [Value],
}

/// How a rule that names one tool came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// Somebody wrote it.
    ByHand,
    /// It was set from here: a comment and the lines that follow it, first to last.
    FromHere(u32, u32),
    /// It was set from here and changed since.
    Touched,
}

impl<'d> Rules<'d> {
    pub(super) fn of(document: &'d Value, policy: &'d Policy, page: &'d Page<'d>) -> Result<Self, Refused> {
        if let Some(line) = page.odd_break() {
            return Err((line, Shape::LineBreak));
        }
        let entries = document.as_map().map(|map| map.entries()).unwrap_or_default();
        let Some(entry) = entries.iter().find(|entry| entry.key == "rules") else {
            return Err((document.line(), Shape::Flow));
        };
        let layout = entry.value.layout();
        if layout.is_decorated || layout.style == Style::Alias {
            return Err((entry.mark.line, Shape::Decorated));
        }
        match entry.value.as_seq() {
            Some(written) if layout.style == Style::Block => Ok(Self {
                page,
                policy,
                key_line: entry.mark.line,
                written,
            }),
            _ => Err((entry.mark.line, Shape::Flow)),
        }
    }

    /// The rule that names exactly this tool; of several the one that decides, else the first.
    pub(super) fn naming(&self, tool: &ToolName, deciding: Option<usize>) -> Option<usize> {
        let names = |index: &usize| {
            let (rule, value) = (self.policy.rules.get(*index), self.written.get(*index));
            rule.zip(value)
                .is_some_and(|(rule, value)| names_only(rule, value, tool.as_str()))
        };
        deciding
            .filter(names)
            .or_else(|| (0..self.policy.rules.len()).find(names))
    }

    pub(super) fn value(&self, index: usize) -> Option<&'d Value> {
        self.written.get(index)
    }

    /// The line of a rule's dash, and its indentation.
    fn dash(&self, index: usize) -> Result<(u32, Indent), Refused> {
        let Some(value) = self.written.get(index) else {
            return Err((self.key_line, Shape::Dash));
        };
        let line = value.line();
        if value.layout().is_decorated {
            return Err((line, Shape::Decorated));
        }
        let before = self.page.line_before(value.mark());
        let rest = before.trim_start_matches(' ');
        let dash = before.len() - rest.len();
        let is_plain = rest
            .strip_prefix('-')
            .is_some_and(|gap| !gap.is_empty() && gap.chars().all(|character| character == ' '));
        if !is_plain {
            return Err((line, Shape::Dash));
        }
        let keys = match value.layout().style {
            Style::Block => rest.len(),
            Style::Plain | Style::Quoted | Style::Lines | Style::Flow | Style::Alias => 2,
        };
        Ok((line, Indent { dash, keys }))
    }

    /// The last line of what comes before a rule.
    fn line_before(&self, index: usize) -> u32 {
        let previous = index.checked_sub(1).and_then(|index| self.written.get(index));
        previous.map_or(self.key_line, |value| self.page.last_line(value))
    }

    /// The line before which a rule goes that comes before another one: above the comments that head it.
    pub(super) fn place_before(&self, index: usize) -> Result<(u32, Indent), Refused> {
        let (dash_line, indent) = self.dash(index)?;
        let before = self.line_before(index);
        let mut line = dash_line;
        while line.saturating_sub(1) > before && self.is_comment(line - 1, |column| column <= indent.dash) {
            line -= 1;
        }
        Ok((line, indent))
    }

    /// The line before which a rule goes that comes last: below the comments that belong to the one before.
    pub(super) fn place_at_end(&self) -> Result<(u32, Indent), Refused> {
        let indents = (0..self.written.len()).rev().map(|index| self.dash(index));
        let mut refused = (self.key_line, Shape::Dash);
        let mut found = None;
        for indent in indents {
            match indent {
                Ok((_, indent)) => {
                    found = Some(indent);
                    break;
                }
                Err(reason) => refused = reason,
            }
        }
        let indent = found.ok_or(refused)?;
        let mut line = self.line_before(self.written.len()).saturating_add(1);
        while self.is_comment(line, |column| column > indent.dash) {
            line += 1;
        }
        Ok((line, indent))
    }

    fn is_comment(&self, line: u32, at: impl Fn(usize) -> bool) -> bool {
        self.page.comment_indent(line).is_some_and(at)
    }

    /// The line of the comment that says that a rule was set from here, if it has one.
    pub(super) fn heading(&self, index: usize) -> Option<u32> {
        let (line, indent) = self.dash(index).ok()?;
        let above = line
            .checked_sub(1)
            .filter(|above| *above > self.line_before(index))?;
        let is_heading = self.page.comment_indent(above) == Some(indent.dash)
            && heads_a_rule(self.page.line(above).trim_start());
        is_heading.then_some(above)
    }

    /// How a rule that names one tool came about.
    pub(super) fn made(&self, index: usize, tool: &ToolName) -> Made {
        let (Some(heading), Ok((line, indent)), Some(rule)) = (
            self.heading(index),
            self.dash(index),
            self.policy.rules.get(index),
        ) else {
            return Made::ByHand;
        };
        let [first, second] = rule_lines(tool.as_str(), rule.action, indent);
        let last = line.saturating_add(1);
        let ends = self.value(index).map(|value| self.page.last_line(value));
        if self.page.line(line) == first && self.page.line(last) == second && ends == Some(last) {
            Made::FromHere(heading, last)
        } else {
            Made::Touched
        }
    }
}

/// Whether a rule names one tool, literally, and asks for nothing else.
fn names_only(rule: &Rule, value: &Value, tool: &str) -> bool {
    let one = match rule.tools.as_deref() {
        Some([glob]) => glob.literal() == Some(tool),
        _ => false,
    };
    // A list of the configuration may have other entries tomorrow.
    let written = match value.get("tools").and_then(Value::as_seq) {
        Some([only]) => only.as_str(),
        Some(_) => None,
        None => value.get("tools").and_then(Value::as_str),
    };
    one && written == Some(tool) && rule.except.is_empty() && rule.is_unconditional()
}
