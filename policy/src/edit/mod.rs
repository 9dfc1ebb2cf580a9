//! Changes one tool's action in the text of a policy file; every other byte stays as it is.
//!
//! [`own_policy`] says which document is an agent's own, [`set_action`] edits its text, [`new_document`] is the text
//! for an agent that has none. What cannot be edited safely is refused with a reason: [`EditRefused`].
//!
//! ```
//! use policy::edit::{Change, EditRequest, Note, set_action};
//! let text = "name: a\nagent: a\nrules:\n  # the rest\n  - action: deny # all of it\n";
//! let edit = set_action(text, "a.yaml", &EditRequest {
//!     policy: &"a".parse().unwrap(),
//!     tool: &"db.query".parse().unwrap(),
//!     change: Change::Set(policy::Action::Allow),
//!     deciding: Some(0),
//!     note: Note { by: "ann", date: "2026-11-30" },
//!     lists: &policy::document::Lists::none(),
//! }).unwrap();
//! assert_eq!(edit.text, "name: a\nagent: a\nrules:\n  # set from console, 2026-11-30 by ann\n  \
//!                        - tools: [\"db.query\"]\n    action: allow\n  # the rest\n  - action: deny # all of it\n");
//! ```

mod change;
mod own;
mod page;
mod refused;
mod rule;
mod written;

use tools::id::{PolicyName, ToolName};

use crate::document::{Action, Lists};

pub use change::set_action;
pub use own::{OwnPolicy, own_policy};
pub use refused::{EditRefused, Shape};
pub use written::{file_stem, new_document};

/// What is asked for a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// This action.
    Set(Action),
    /// Whatever holds without the rule that was set from here.
    Inherit,
}

/// Who asks, and when; both are cleaned before they are written.
#[derive(Debug, Clone, Copy)]
pub struct Note<'a> {
    /// Who asks.
    pub by: &'a str,
    /// The day.
    pub date: &'a str,
}

/// A change of one tool's action in one document.
#[derive(Debug, Clone, Copy)]
pub struct EditRequest<'a> {
    /// Which document of the text.
    pub policy: &'a PolicyName,
    /// The governed name.
    pub tool: &'a ToolName,
    /// What is asked.
    pub change: Change,
    /// The rule of this document that decides about the tool today: the static one. None when another document's
    /// does, or none.
    pub deciding: Option<usize>,
    /// What the rule is headed by.
    pub note: Note<'a>,
    /// The lists that the text may name.
    pub lists: &'a Lists,
}

/// What an edit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The text says it already, or there was nothing to undo.
    Unchanged,
    /// A rule that names the tool has another action.
    Rewritten,
    /// There is a new rule.
    Inserted,
    /// A rule that was set from here is gone.
    Removed,
    /// It was the only rule of a document that was made from here: there is nothing left, the text is empty.
    Emptied,
}

/// The text after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The whole text.
    pub text: String,
    /// What was done.
    pub outcome: Outcome,
    /// The rule that names the tool, as counted after the edit.
    pub rule: Option<usize>,
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
