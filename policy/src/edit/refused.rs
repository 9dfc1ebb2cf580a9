//! Why a text is not edited.

use tools::id::PolicyName;

use crate::yaml::Problem;

/// Why an edit is refused. The text stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditRefused {
    /// The text is not valid as it stands.
    #[error("{file} is not valid, so it is not edited: {}", first(problems))]
    Invalid {
        /// The file.
        file: String,
        /// Everything that is wrong.
        problems: Vec<Problem>,
    },
    /// The text holds no such document.
    #[error("{file} holds no policy \"{policy}\"")]
    NoSuchPolicy {
        /// The file.
        file: String,
        /// The policy.
        policy: PolicyName,
    },
    /// The name would be read as a pattern or a list.
    #[error(
        "{what} {name:?} cannot be named literally in a policy ({reason}); write a pattern that covers it by hand"
    )]
    NotLiteral {
        /// `the tool` or `the agent`.
        what: &'static str,
        /// The name.
        name: String,
        /// What stands in the way.
        reason: String,
    },
    /// `inherit` for a rule that somebody wrote.
    #[error("{file}:{line} the rule for this tool was written by hand; change or remove it in the document")]
    ByHand {
        /// The file.
        file: String,
        /// Where the rule is.
        line: u32,
    },
    /// `inherit` for a rule that somebody changed.
    #[error(
        "{file}:{line} the rule for this tool was set from here and then changed by hand; remove it in the document"
    )]
    Touched {
        /// The file.
        file: String,
        /// Where the rule is.
        line: u32,
    },
    /// `inherit` for the only rule of a document that somebody wrote.
    #[error("{file}:{line} this is the only rule of the policy; remove the policy instead")]
    OnlyRule {
        /// The file.
        file: String,
        /// Where the rule is.
        line: u32,
    },
    /// The text is written in a way that cannot be edited safely.
    #[error("{file}:{line} {shape}; edit the document by hand")]
    Shape {
        /// The file.
        file: String,
        /// Where.
        line: u32,
        /// What is in the way.
        shape: Shape,
    },
    /// The text after the edit would not say exactly what was asked.
    #[error(
        "the edit of {file} would change more than the rule for this tool ({reason}); edit the document by hand"
    )]
    ChangesMore {
        /// The file.
        file: String,
        /// What else.
        reason: String,
    },
}

/// A way of writing that cannot be edited safely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Shape {
    /// `rules: [...]`.
    #[error("the rules are written in brackets")]
    Flow,
    /// `&name`, `*name` or `!tag` at what would be edited.
    #[error("an anchor, an alias or a tag is in the way")]
    Decorated,
    /// `-` is not followed by spaces and the rule, on one line.
    #[error("the rule does not start on the line of its dash, after spaces")]
    Dash,
    /// The action is not one word on one line.
    #[error("the action is not written as one word on one line")]
    Action,
    /// A carriage return ends a line by itself.
    #[error("a line ends in a carriage return without a line feed")]
    LineBreak,
}

fn first(problems: &[Problem]) -> String {
    problems.first().map(ToString::to_string).unwrap_or_default()
}
