//! A command-line program as a source of tools: which tools it has, and which argument vector a call of one stands for.
//!
//! A call has one argument vector, whatever way it was asked for, and the commands that the vector can mean follow from the
//! vector alone ([`names`]): so a declared command keeps its rules however it is reached, and a policy on its name holds.
//! Nothing here does input or output, and nothing is ever text for a shell.

mod declare;
mod given;
mod known;
mod names;
mod options;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::json::Node;

pub(crate) use declare::META;
pub use declare::{Bin, Declaration};
pub use given::{ArgumentError, Given, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS, MAX_TOTAL_BYTES};
pub use known::KnownProgram;
pub use names::{Meaning, Named};

/// The local name of the tool that runs commands which are not declared.
pub const DISPATCHER: &str = "__dispatch";
/// The local name of the one tool of a program without commands.
pub const RUN: &str = "run";
/// The most words of a declared command.
pub const MAX_WORDS: usize = 4;
/// The most words of the name of a command that is not declared.
pub const UNDECLARED_WORDS: usize = 2;

/// What is configured about a program, as far as its calls go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Whether it has commands.
    pub shape: Shape,
    /// Whether declared and bare commands refuse what a shell would take for more than text. A dispatcher always does.
    pub rejects_metacharacters: bool,
}

/// Whether a program has commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// It has none: one tool runs it.
    Bare(Command),
    /// Its first arguments name a command.
    Commands {
        /// Those with rules of their own.
        declared: BTreeMap<CommandName, Command>,
        /// Whether there are no others.
        is_strict: bool,
    },
}

/// The rules of one command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The only options that it may have; `None`: any.
    pub allowed_args: Option<Vec<String>>,
    /// The longest that it may run; `None`: as long as any.
    pub timeout: Option<Duration>,
}

/// The name of a command: one to four words, such as `plan` or `pr list`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandName(Vec<String>);

/// Why a text is not the name of a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandNameError {
    /// There is no word in it.
    #[error("a command needs a name, such as \"plan\" or \"pr list\"")]
    Empty,
    /// There are too many.
    #[error("{text:?} has {count} words; the name of a command has at most {MAX_WORDS}")]
    TooLong {
        /// The text.
        text: String,
        /// Its words.
        count: usize,
    },
    /// A word has a character that none may have.
    #[error(
        "{word:?} is not a word of a command: a word has small letters, digits, \"_\" and \"-\", and begins with a letter or digit"
    )]
    Word {
        /// The word.
        word: String,
    },
}

impl CommandName {
    /// The words.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// The tool's own name: the words with dots between them.
    pub fn local(&self) -> String {
        self.0.join(".")
    }

    fn of(words: impl Iterator<Item = impl Into<String>>, text: &str) -> Result<Self, CommandNameError> {
        let words: Vec<String> = words.map(Into::into).collect();
        if let Some(word) = words.iter().find(|word| !names::is_word(word)) {
            return Err(CommandNameError::Word { word: word.clone() });
        }
        match words.len() {
            0 => Err(CommandNameError::Empty),
            1..=MAX_WORDS => Ok(Self(words)),
            count => Err(CommandNameError::TooLong {
                text: text.to_owned(),
                count,
            }),
        }
    }
}

impl FromStr for CommandName {
    type Err = CommandNameError;

    fn from_str(text: &str) -> Result<Self, CommandNameError> {
        Self::of(text.split(' ').filter(|word| !word.is_empty()), text)
    }
}

impl fmt::Display for CommandName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// What a tool's own name asks a program for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The one tool of a program without commands.
    Run,
    /// A declared command.
    Declared(CommandName),
    /// A command that is not declared, under its own name.
    Undeclared(CommandName),
    /// Whatever command the arguments name.
    Dispatch,
}

impl Asked {
    /// Whether the tool's own floor is the program's default action.
    pub fn has_floor(&self) -> bool {
        !matches!(self, Self::Declared(_))
    }
}

/// One call of a program, ready to be decided about and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCall {
    /// The arguments after the program's own name.
    pub argv: Vec<String>,
    /// What is piped to it.
    pub stdin: Option<String>,
    /// The longest that it may run, where a rule of it says so.
    pub timeout: Option<Duration>,
    /// The commands that it can mean.
    pub meaning: Meaning,
}

impl Program {
    /// What a tool's own name asks for; `None`: there is no such tool.
    pub fn asked(&self, local: &str) -> Option<Asked> {
        match &self.shape {
            Shape::Bare(_) => (local == RUN).then_some(Asked::Run),
            Shape::Commands { is_strict: true, .. } if local == DISPATCHER => None,
            Shape::Commands { .. } if local == DISPATCHER => Some(Asked::Dispatch),
            Shape::Commands { declared, is_strict } => {
                let name = CommandName::of(local.split('.'), local).ok()?;
                if declared.contains_key(&name) {
                    Some(Asked::Declared(name))
                } else if *is_strict || name.words().len() > UNDECLARED_WORDS {
                    None
                } else {
                    Some(Asked::Undeclared(name))
                }
            }
        }
    }

    /// The call that a tool's own name and its arguments stand for.
    ///
    /// # Errors
    /// When the arguments cannot be a call of this tool: with words that say what to do about it.
    pub fn call(&self, local: &str, arguments: Option<Node<'_>>) -> Result<ProgramCall, ArgumentError> {
        let asked = self.asked(local).ok_or_else(|| ArgumentError::NoTool {
            name: local.to_owned(),
        })?;
        let given = Given::read(arguments, asked == Asked::Dispatch)?;
        let words: &[String] = match (&asked, &given.command) {
            (Asked::Run, _) => &[],
            (Asked::Declared(name) | Asked::Undeclared(name), _) => name.words(),
            (Asked::Dispatch, Some(name)) => name.words(),
            (Asked::Dispatch, None) => return Err(ArgumentError::NoCommand),
        };
        let leading = words.len();
        let argv: Vec<String> = words
            .iter()
            .cloned()
            .chain(given.flags.iter().cloned())
            .chain(given.args.iter().cloned())
            .collect();
        given::bounded(&argv)?;
        let meaning = match &self.shape {
            Shape::Bare(_) => Meaning::only(RUN),
            Shape::Commands { declared, .. } => Meaning::of(&argv, leading, declared)?,
        };
        let is_dispatched =
            matches!(asked, Asked::Dispatch | Asked::Undeclared(_)) || meaning.has_undeclared();
        if is_dispatched || self.rejects_metacharacters {
            given::without_metacharacters(&argv, leading)?;
        }
        let mut timeout: Option<Duration> = None;
        for rules in self.rules(&meaning) {
            if let Some(allowed) = &rules.allowed_args {
                options::only(allowed, &argv)?;
            }
            timeout = match (timeout, rules.timeout) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        Ok(ProgramCall {
            argv,
            stdin: given.stdin,
            timeout,
            meaning,
        })
    }

    /// The rules of every command that a call can mean.
    fn rules<'p>(&'p self, meaning: &'p Meaning) -> Vec<&'p Command> {
        match &self.shape {
            Shape::Bare(command) => vec![command],
            Shape::Commands { declared, .. } => {
                let names = meaning.names.iter();
                names
                    .filter_map(|named| declared.get(named.declared.as_ref()?))
                    .collect()
            }
        }
    }
}
