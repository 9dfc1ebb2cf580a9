//! Calls of command-line programs: what the argument vector says, beside the tool's name.

use super::risk::{Risk, RiskSet};
use super::text::TextReading;
use crate::json::Node;
use crate::program::{DISPATCHER, Given, META, RUN};
use crate::shell;

/// Programs that run text.
const SHELLS: [&str; 10] = [
    "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "busybox", "rbash",
];

/// What the declaration of a program's tool says about the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSign {
    /// Its file name; `./name` for one outside the folders that programs are installed in.
    bin: String,
    /// The words of the command.
    words: Vec<String>,
    /// Whether options pass that nobody listed.
    takes_any_option: bool,
    is_dispatcher: bool,
    /// The action that no policy relaxes, by name.
    floor: Option<String>,
}

/// What the argument vector of a call says.
pub(super) enum Said {
    /// It is the text that is run.
    Text(Box<TextReading>),
    /// It says what is done, in the words of a program that is known.
    Known(Box<TextReading>),
    /// It has options whose meaning nobody knows.
    UnknownOptions,
    /// Nothing beyond the tool's name.
    Nothing,
}

impl ProgramSign {
    /// Reads a declaration.
    pub(crate) fn of(declaration: Node<'_>, local: &str) -> Option<Self> {
        let said = declaration.get("_meta")?.get(META)?;
        let bin = said.get("bin")?.as_str()?.into_owned();
        let takes_any_option = said
            .get("options")
            .and_then(Node::as_str)
            .is_none_or(|options| options != "listed");
        let words = if local == RUN && said.get("bare").and_then(Node::as_bool) == Some(true) {
            Vec::new()
        } else {
            local.split('.').map(str::to_owned).collect()
        };
        Some(Self {
            bin,
            words,
            takes_any_option,
            is_dispatcher: local == DISPATCHER,
            floor: said
                .get("floor")
                .and_then(Node::as_str)
                .map(|floor| floor.into_owned()),
        })
    }

    /// The program's file name, as [`Bin`](crate::program::Bin) is written in declarations.
    pub(crate) fn bin(&self) -> &str {
        &self.bin
    }

    /// Whether it runs whatever command is named.
    pub(crate) fn is_dispatcher(&self) -> bool {
        self.is_dispatcher
    }

    /// Whether the program has no commands.
    pub(crate) fn is_bare(&self) -> bool {
        self.words.is_empty()
    }

    /// The action that no policy relaxes, by its name.
    pub(crate) fn floor(&self) -> Option<&str> {
        self.floor.as_deref()
    }

    /// Whether the arguments are what is run.
    pub(super) fn is_shell(&self) -> bool {
        let name = self.bin.rsplit('/').next().unwrap_or_default();
        SHELLS.contains(&name)
    }

    fn is_known(&self) -> bool {
        shell::knows(&self.bin)
    }

    /// What calls can do beyond the tool's name.
    pub(super) fn possible(&self) -> RiskSet {
        if self.is_shell() || self.is_known() {
            RiskSet::KNOWN
        } else if self.takes_any_option {
            RiskSet::of(Risk::Execution)
        } else {
            RiskSet::EMPTY
        }
    }

    /// What a call's arguments say.
    pub(super) fn read(&self, arguments: Option<Node<'_>>) -> Said {
        let Ok(given) = Given::read(arguments, self.is_dispatcher) else {
            return Said::UnknownOptions;
        };
        let named = given.command.iter().flat_map(|command| command.words());
        let words: Vec<&str> = if self.is_dispatcher {
            named.map(String::as_str).collect()
        } else {
            self.words.iter().map(String::as_str).collect()
        };
        let argv: Vec<&str> = [self.bin.as_str()]
            .into_iter()
            .chain(words)
            .chain(given.flags.iter().map(String::as_str))
            .chain(given.args.iter().map(String::as_str))
            .collect();
        let reading = || Box::new(TextReading::command(&argv, given.stdin.as_deref()));
        if self.is_shell() {
            return Said::Text(reading());
        }
        if self.is_known() {
            return Said::Known(reading());
        }
        let has_options =
            !given.flags.is_empty() || given.args.iter().any(|argument| argument.starts_with('-'));
        if has_options && self.takes_any_option {
            Said::UnknownOptions
        } else {
            Said::Nothing
        }
    }
}
