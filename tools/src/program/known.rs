//! A program as its tools tell of it, where its configuration is not at hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::to_raw_value;

use super::{ArgumentError, Asked, Bin, Command, CommandName, Meaning, Program, RUN, Shape};
use crate::id::UpstreamName;
use crate::model::{Tool, ToolKind};

/// A program as its tools tell of it: which commands it declares, and what an argument vector can mean.
#[derive(Debug, Clone)]
pub struct KnownProgram {
    upstream: UpstreamName,
    program: Program,
    bin: String,
    floor: Option<String>,
}

impl KnownProgram {
    /// The program whose tools these are; `None` when none of them is a program's.
    pub fn of<'t>(tools: impl IntoIterator<Item = &'t Tool>) -> Option<Self> {
        let mut found: Option<(UpstreamName, String)> = None;
        let (mut declared, mut floor) = (BTreeMap::new(), None);
        let (mut is_bare, mut is_strict) = (false, true);
        for tool in tools {
            let (Some(sign), Some(upstream)) = (&tool.program, &tool.upstream) else {
                continue;
            };
            found.get_or_insert_with(|| (upstream.clone(), sign.bin().to_owned()));
            floor = floor.or_else(|| sign.floor().map(str::to_owned));
            if sign.is_dispatcher() {
                is_strict = false;
            } else if sign.is_bare() {
                is_bare = true;
            } else if let Ok(name) = CommandName::of(tool.local_name().split('.'), tool.local_name()) {
                declared.insert(name, Command::default());
            }
        }
        let (upstream, bin) = found?;
        let shape = if is_bare {
            Shape::Bare(Command::default())
        } else {
            Shape::Commands { declared, is_strict }
        };
        Some(Self {
            upstream,
            program: Program {
                shape,
                rejects_metacharacters: false,
            },
            bin,
            floor,
        })
    }

    /// Its upstream.
    pub fn upstream(&self) -> &UpstreamName {
        &self.upstream
    }

    /// The name of the action that is the floor of what is not declared.
    pub fn floor(&self) -> Option<&str> {
        self.floor.as_deref()
    }

    /// Whether its first arguments name a command.
    pub fn has_commands(&self) -> bool {
        matches!(self.program.shape, Shape::Commands { .. })
    }

    /// What an argument vector can mean.
    ///
    /// # Errors
    /// When it has more readings than are followed.
    pub fn meaning(&self, argv: &[String]) -> Result<Meaning, ArgumentError> {
        match &self.program.shape {
            Shape::Bare(_) => Ok(Meaning::only(RUN)),
            Shape::Commands { declared, .. } => Meaning::of(argv, argv.len().min(1), declared),
        }
    }

    /// The tool of a command that is not declared, under its own name; `None` where there can be none.
    pub fn undeclared(&self, local: &str) -> Option<Tool> {
        let (name, is_installed) = match self.bin.strip_prefix("./") {
            Some(name) => (name, false),
            None => (self.bin.as_str(), true),
        };
        let bin = Bin {
            name,
            is_installed,
            floor: self.floor.as_deref().unwrap_or_default(),
        };
        self.program.undeclared_tool(&self.upstream, bin, local)
    }
}

impl Program {
    /// The tool of a command that is not declared, under its own name; `None` where there can be none.
    pub fn undeclared_tool(&self, upstream: &UpstreamName, bin: Bin<'_>, local: &str) -> Option<Tool> {
        let Some(Asked::Undeclared(name)) = self.asked(local) else {
            return None;
        };
        let declaration = Self::undeclared(bin, &name);
        let raw: Arc<_> = to_raw_value(&declaration.declared).ok()?.into();
        Tool::from_declaration(ToolKind::Cli, Some(upstream), None, raw).ok()
    }
}
