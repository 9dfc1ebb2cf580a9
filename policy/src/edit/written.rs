//! What is written: comments, rules, documents, and names in them.

use std::fmt::Write;

use tools::id::{AgentId, PolicyName, ToolName};

use super::refused::EditRefused;
use super::{Change, EditRequest, Note};
use crate::document::{Action, Lists, Policy, Source};
use crate::glob::{Glob, ToolGlob};

/// What heads a rule that was set from here.
const SET: &str = "# set from console, ";
/// What heads a document that was made from here.
const MADE: &str = "# made from console, ";
/// The longest name of a person that is written, in characters.
const MAX_BY: usize = 128;
/// The longest file name made from an agent's name, without its ending.
const MAX_STEM: usize = 64;

impl Note<'_> {
    /// The day and the name on one line, whatever they hold.
    fn said(&self) -> String {
        let day = |character: &char| character.is_ascii_alphanumeric() || "-:+.".contains(*character);
        let date: String = self.date.chars().filter(day).take(32).collect();
        let by: String = self.by.chars().map(shown).collect();
        let words: Vec<&str> = by.split_whitespace().collect();
        let by: String = words.join(" ").chars().take(MAX_BY).collect();
        let by = if by.is_empty() { "somebody" } else { by.trim_end() };
        format!("{date} by {by}")
    }

    /// The comment above a rule.
    pub(super) fn of_rule(&self) -> String {
        format!("{SET}{}", self.said())
    }
}

/// A character that can stand in a comment; others become a space.
fn shown(character: char) -> char {
    if is_hidden(character) { ' ' } else { character }
}

/// Characters that end lines, cannot be seen, or turn the direction of what is read.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a line's text (without its indentation) heads a rule that was set from here.
pub(super) fn heads_a_rule(comment: &str) -> bool {
    comment.starts_with(SET)
}

/// A name in double quotes.
fn quoted(name: &str) -> String {
    let mut text = String::from('"');
    for character in name.chars() {
        // Writing to a string cannot fail.
        let _ = match character {
            '"' | '\\' => write!(text, "\\{character}"),
            _ if is_hidden(character) && u32::from(character) > 0xffff => {
                write!(text, "\\U{:08X}", u32::from(character))
            }
            _ if is_hidden(character) => write!(text, "\\u{:04X}", u32::from(character)),
            _ => write!(text, "{character}"),
        };
    }
    text.push('"');
    text
}

/// Where a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Indent {
    /// Spaces before the dash.
    pub(super) dash: usize,
    /// From the dash to its keys.
    pub(super) keys: usize,
}

/// The two lines of a rule that names one tool.
pub(super) fn rule_lines(tool: &str, action: Action, indent: Indent) -> [String; 2] {
    let Indent { dash, keys } = indent;
    [
        format!(
            "{:dash$}-{:gap$}tools: [{}]",
            "",
            "",
            quoted(tool),
            gap = keys.saturating_sub(1)
        ),
        format!("{:indent$}action: {action}", "", indent = dash + keys),
    ]
}

/// The glob that names one tool.
pub(super) fn literal_tool(tool: &ToolName) -> Result<ToolGlob, EditRefused> {
    let refused = |reason: String| EditRefused::NotLiteral {
        what: "the tool",
        name: tool.as_str().to_owned(),
        reason,
    };
    let glob: ToolGlob = tool
        .as_str()
        .parse()
        .map_err(|error: crate::glob::GlobError| refused(error.to_string()))?;
    is_literal(tool.as_str(), glob.glob()).map_err(refused)?;
    Ok(glob)
}

fn is_literal(name: &str, glob: &Glob) -> Result<(), String> {
    if name.starts_with('@') {
        return Err("a leading @ names a list".to_owned());
    }
    match glob.literal() {
        Some(_) => Ok(()),
        None => Err("* and ? stand for other characters".to_owned()),
    }
}

/// The text of a policy for an agent that has none of its own, with one rule. `name` is not in use.
///
/// # Errors
/// When the agent or the tool cannot be named literally.
pub fn new_document(
    name: &PolicyName,
    agent: &AgentId,
    request: &EditRequest<'_>,
) -> Result<String, EditRefused> {
    let refused = |reason: String| EditRefused::NotLiteral {
        what: "the agent",
        name: agent.as_str().to_owned(),
        reason,
    };
    let pattern: Glob = agent
        .as_str()
        .parse()
        .map_err(|error: crate::glob::GlobError| refused(error.to_string()))?;
    is_literal(agent.as_str(), &pattern).map_err(refused)?;
    let glob = literal_tool(request.tool)?;
    let Change::Set(action) = request.change else {
        return Ok(String::new());
    };
    let said = request.note.said();
    let text = document(
        &format!("{MADE}{said}"),
        &request.note.of_rule(),
        name,
        agent,
        request.tool,
        action,
    );
    let file = name.as_str();
    let more = |reason: String| EditRefused::ChangesMore {
        file: file.to_owned(),
        reason,
    };
    match Policy::parse_all(file, &text, &Source::Api, &Lists::none()).as_deref() {
        Ok([policy])
            if policy.name == *name
                && policy.agents == [pattern]
                && policy.rules.len() == 1
                && policy.rules.iter().all(|rule| {
                    rule.tools.as_deref() == Some(std::slice::from_ref(&glob)) && rule.action == action
                }) =>
        {
            Ok(text)
        }
        Ok(_) => Err(more("the new document does not say what was asked".to_owned())),
        Err(problems) => Err(more(
            problems.first().map(ToString::to_string).unwrap_or_default(),
        )),
    }
}

fn document(
    head: &str,
    note: &str,
    name: &PolicyName,
    agent: &AgentId,
    tool: &ToolName,
    action: Action,
) -> String {
    let [first, second] = rule_lines(tool.as_str(), action, Indent { dash: 2, keys: 2 });
    let (name, agent) = (quoted(name.as_str()), quoted(agent.as_str()));
    format!("{head}\nname: {name}\nagent: {agent}\nrules:\n  {note}\n{first}\n{second}\n")
}

/// Whether a text is what was made from here for one tool, and nothing else.
pub(super) fn is_only_made(text: &str, policy: &Policy, tool: &ToolName) -> bool {
    let mut lines = text.lines();
    let (Some(head), Some(note), [agent], [rule]) = (
        lines.next(),
        lines.nth(3),
        policy.agents.as_slice(),
        policy.rules.as_slice(),
    ) else {
        return false;
    };
    let Ok(agent) = AgentId::try_from(agent.as_str()) else {
        return false;
    };
    let note = note.trim_start();
    head.starts_with(MADE)
        && heads_a_rule(note)
        && text == document(head, note, &policy.name, &agent, tool, rule.action)
}

/// A file name for an agent's policy, without its ending: letters, digits, `.`, `_` and `-`; never hidden, never one
/// that is read as something else than a policy.
pub fn file_stem(agent: &AgentId) -> String {
    let safe = |character: char| {
        if character.is_ascii_alphanumeric() || "._-".contains(character) {
            character
        } else {
            '_'
        }
    };
    let stem: String = agent.as_str().chars().map(safe).take(MAX_STEM).collect();
    let stem = stem.trim_start_matches(['.', '-']);
    let stem = stem.strip_suffix(".test").unwrap_or(stem);
    if stem.is_empty() {
        "agent".to_owned()
    } else {
        stem.to_owned()
    }
}
