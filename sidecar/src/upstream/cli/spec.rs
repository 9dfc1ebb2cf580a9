//! What is configured about a program.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use config::model::{CliCommand, CliTool};
use policy::document::Action;
use tools::program::{Command, Program, Shape};

/// One program that is configured as an upstream. Its environment may hold secrets and is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct CliSpec {
    /// Its name, the prefix of its tools.
    pub name: Arc<str>,
    /// The program: a name that is looked for on `PATH`, or a path.
    pub bin: PathBuf,
    /// Its commands.
    pub program: Program,
    /// The floor of commands that are not declared.
    pub default_action: Action,
    /// The folder that it runs in; `None`: the sidecar's own.
    pub working_dir: Option<PathBuf>,
    /// Variables beside `PATH`, `HOME` and `LANG`.
    pub env: Vec<(String, String)>,
    /// Bytes of each output that are kept.
    pub max_output_bytes: usize,
    /// The largest answer, in bytes.
    pub answer_bytes: usize,
    /// The most calls at once.
    pub max_calls: usize,
}

impl CliSpec {
    /// What the configuration says about a program, with `limits.message_bytes`.
    #[must_use]
    pub fn of(tool: &CliTool, message_bytes: usize) -> Self {
        let shape = match &tool.bare {
            Some(rules) => Shape::Bare(command(rules)),
            None => Shape::Commands {
                // INVARIANT: the configuration was checked, so every name is one.
                declared: tool
                    .commands
                    .iter()
                    .filter_map(|(name, rules)| Some((name.parse().ok()?, command(rules))))
                    .collect::<BTreeMap<_, _>>(),
                is_strict: tool.strict,
            },
        };
        Self {
            name: tool.name.as_str().into(),
            bin: tool.bin.clone(),
            program: Program {
                shape,
                rejects_metacharacters: tool.reject_metacharacters,
            },
            default_action: tool.default_action,
            working_dir: tool.working_dir.clone(),
            env: tool
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                .collect(),
            max_output_bytes: tool.max_output_bytes,
            answer_bytes: message_bytes,
            max_calls: tool.max_calls,
        }
    }
}

fn command(rules: &CliCommand) -> Command {
    Command {
        allowed_args: rules.allowed_args.clone(),
        timeout: Some(rules.timeout),
    }
}

impl fmt::Debug for CliSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CliSpec")
            .field("name", &self.name)
            .field("bin", &self.bin)
            .finish_non_exhaustive()
    }
}
