//! The arguments of a call: `args`, `flags`, `stdin`, and for a dispatcher `command`.

use super::{CommandName, CommandNameError};
use crate::json::{Kind, Node};

/// The most arguments of one call.
pub const MAX_ARGUMENTS: usize = 4096;
/// The longest argument, in bytes: Linux takes 128 KiB with the final NUL.
pub const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// All arguments together, in bytes: Linux takes about 2 MiB with the environment.
pub const MAX_TOTAL_BYTES: usize = 1024 * 1024;

/// What a shell would take for more than text.
const METACHARACTERS: [(&str, &str); 9] = [
    (";", "\";\""),
    ("&&", "\"&&\""),
    ("||", "\"||\""),
    ("|", "\"|\""),
    ("`", "a backtick"),
    ("$(", "\"$(\""),
    ("${", "\"${\""),
    ("\n", "a newline"),
    ("\r", "a carriage return"),
];

/// Why arguments are no call of a program. The words are for a model: what, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// The program has no such tool.
    #[error("the program has no command {name:?}")]
    NoTool {
        /// The tool's own name.
        name: String,
    },
    /// The dispatcher was not told what to run.
    #[error("command is missing: name the command to run, such as \"plan\" or \"pr list\"")]
    NoCommand,
    /// The dispatcher was told what is no command.
    #[error("command: {0}; put options and other arguments into args or flags")]
    Command(#[from] CommandNameError),
    /// An argument that no program takes.
    #[error(
        "{name:?} is not an argument here; use args (a list of strings), flags (an object){also} or stdin (a string)"
    )]
    Unknown {
        /// Its name.
        name: String,
        /// What the dispatcher takes besides.
        also: &'static str,
    },
    /// A value of another type.
    #[error("{path} must be {expected}, and is {found}")]
    Type {
        /// Where.
        path: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// The name of a flag that is none.
    #[error(
        "flags: {name:?} is not the name of an option; write it without dashes, with letters, digits, \"-\", \"_\" and \".\" only; other options go into args"
    )]
    FlagName {
        /// The name.
        name: String,
    },
    /// A byte that no argument can hold.
    #[error("argument {at} of the command line holds a NUL, which no argument can; remove it")]
    Nul {
        /// Its place after the program's name, from 1.
        at: usize,
    },
    /// What a shell would take for more than text, where that is refused.
    #[error(
        "argument {at} of the command line holds {what}, which is refused here: no shell reads it, and it is not needed"
    )]
    Metacharacter {
        /// Its place after the program's name, from 1.
        at: usize,
        /// What it holds.
        what: &'static str,
    },
    /// More than the system takes.
    #[error("{what}: at most {limit} are accepted; pass large data by stdin")]
    TooLarge {
        /// What is too large.
        what: String,
        /// The bound.
        limit: usize,
    },
    /// An option that is not among the allowed ones.
    #[error("option {option:?} is not allowed for this command; allowed: {allowed}")]
    Option {
        /// The option.
        option: String,
        /// Those that are.
        allowed: String,
    },
    /// Too many commands could be meant.
    #[error(
        "it cannot be told which command is meant, for words stand after too many options; write an option and its value as one argument, as in --name=value"
    )]
    Unclear,
}

/// The arguments of one call, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The command, for a dispatcher.
    pub command: Option<CommandName>,
    /// `flags`, as they stand in the argument vector.
    pub flags: Vec<String>,
    /// `args`.
    pub args: Vec<String>,
    /// `stdin`.
    pub stdin: Option<String>,
}

impl Given {
    /// Reads the arguments of a call; `null` counts as absent.
    ///
    /// # Errors
    /// When they are not the arguments of such a tool.
    pub fn read(arguments: Option<Node<'_>>, is_dispatcher: bool) -> Result<Self, ArgumentError> {
        let mut given = Self::default();
        for (name, value) in arguments.into_iter().flat_map(Node::members) {
            match name.as_ref() {
                "args" | "flags" | "stdin" if value.is_null() => {}
                "args" => given.args = args(value)?,
                "flags" => given.flags = flags(value)?,
                "stdin" => given.stdin = Some(text("stdin", value)?),
                "command" if is_dispatcher => given.command = Some(text("command", value)?.parse()?),
                _ => {
                    return Err(ArgumentError::Unknown {
                        name: shown(&name),
                        also: if is_dispatcher { ", command (a string)" } else { "" },
                    });
                }
            }
        }
        Ok(given)
    }
}

fn args(value: Node<'_>) -> Result<Vec<String>, ArgumentError> {
    expect(
        "args",
        value,
        Kind::Array,
        "a list of strings such as [\"a\", \"b\"]",
    )?;
    if value.len() > MAX_ARGUMENTS {
        return Err(too_many(value.len()));
    }
    let elements = value.elements().enumerate();
    elements
        .map(|(index, element)| text(&format!("args[{index}]"), element))
        .collect()
}

/// `{n: prod}` is `-n prod`, a longer name `--name value`; `true` is the option alone, `false` nothing; a list repeats it.
fn flags(value: Node<'_>) -> Result<Vec<String>, ArgumentError> {
    expect(
        "flags",
        value,
        Kind::Object,
        "an object such as {\"name\": \"value\"}",
    )?;
    let mut tokens = Vec::new();
    for (name, value) in value.members() {
        if !is_flag_name(&name) {
            return Err(ArgumentError::FlagName { name: shown(&name) });
        }
        let option = match name.len() {
            1 => format!("-{name}"),
            _ => format!("--{name}"),
        };
        let path = format!("flags.{name}");
        if value.kind() == Kind::Array {
            for (index, element) in value.elements().enumerate() {
                flag(&mut tokens, &option, &format!("{path}[{index}]"), element)?;
            }
        } else {
            flag(&mut tokens, &option, &path, value)?;
        }
        if tokens.len() > MAX_ARGUMENTS {
            return Err(too_many(tokens.len()));
        }
    }
    Ok(tokens)
}

fn flag(tokens: &mut Vec<String>, option: &str, path: &str, value: Node<'_>) -> Result<(), ArgumentError> {
    let text = match value.kind() {
        Kind::Bool if value.as_bool() == Some(true) => {
            tokens.push(option.to_owned());
            return Ok(());
        }
        Kind::Bool => return Ok(()),
        Kind::String => value.as_str().unwrap_or_default().into_owned(),
        Kind::Number => value.raw_str().to_owned(),
        Kind::Null | Kind::Array | Kind::Object => {
            return Err(ArgumentError::Type {
                path: path.to_owned(),
                expected: "a string, a number, true, or a list of these",
                found: value.kind().name(),
            });
        }
    };
    tokens.push(option.to_owned());
    tokens.push(text);
    Ok(())
}

fn is_flag_name(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn text(path: &str, value: Node<'_>) -> Result<String, ArgumentError> {
    expect(path, value, Kind::String, "a string")?;
    Ok(value.as_str().unwrap_or_default().into_owned())
}

fn expect(path: &str, value: Node<'_>, kind: Kind, expected: &'static str) -> Result<(), ArgumentError> {
    if value.kind() == kind {
        return Ok(());
    }
    Err(ArgumentError::Type {
        path: path.to_owned(),
        expected,
        found: value.kind().name(),
    })
}

/// No argument holds a NUL, and all of them are within what the system takes.
pub(super) fn bounded(argv: &[String]) -> Result<(), ArgumentError> {
    if argv.len() > MAX_ARGUMENTS {
        return Err(too_many(argv.len()));
    }
    let mut total = 0;
    for (index, argument) in argv.iter().enumerate() {
        if argument.contains('\0') {
            return Err(ArgumentError::Nul { at: index + 1 });
        }
        if argument.len() > MAX_ARGUMENT_BYTES {
            return Err(ArgumentError::TooLarge {
                what: format!(
                    "argument {} of the command line has {} bytes",
                    index + 1,
                    argument.len()
                ),
                limit: MAX_ARGUMENT_BYTES,
            });
        }
        total += argument.len() + 1;
    }
    if total > MAX_TOTAL_BYTES {
        return Err(ArgumentError::TooLarge {
            what: format!("the command line has {total} bytes"),
            limit: MAX_TOTAL_BYTES,
        });
    }
    Ok(())
}

/// No argument after the first `leading` ones holds what a shell would take for more than text.
pub(super) fn without_metacharacters(argv: &[String], leading: usize) -> Result<(), ArgumentError> {
    for (index, argument) in argv.iter().enumerate().skip(leading) {
        if let Some((_, what)) = METACHARACTERS.iter().find(|(text, _)| argument.contains(text)) {
            return Err(ArgumentError::Metacharacter { at: index + 1, what });
        }
    }
    Ok(())
}

fn too_many(count: usize) -> ArgumentError {
    ArgumentError::TooLarge {
        what: format!("the command line has {count} arguments"),
        limit: MAX_ARGUMENTS,
    }
}

/// A name from outside, as a message may hold it.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}
