//! Command-line programs whose commands are tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::document::Action;
use serde_json::{Value as Json, json};
use tools::id::UpstreamName;
use tools::program::CommandName;

use crate::Secret;
use crate::schema::{Keys, Leaf, Literal, Size, Whole, Writing, section};

section! {
    /// A program whose commands are tools. It is run with an argument vector, never through a shell. Commands that are not
    /// declared are reached through its dispatcher, `<name>.__dispatch`.
    CliTool as "a CLI tool" {
        /// The first part of its tools' names.
        name: UpstreamName,
        /// The program: a name that is looked for on `PATH` at start, or a path.
        bin: PathBuf as Program,
        /// The floor of the dispatcher, and of a program without commands: what a policy allows is this strict at least.
        default_action: Action = "deny",
        /// Whether only declared commands can be called: then there is no dispatcher.
        strict: bool = "false",
        /// The folder that it runs in. Default: the sidecar's own.
        working_dir: Option<PathBuf>,
        /// Variables beside `PATH`, `HOME` and `LANG=en_US.UTF-8`, taken literally. Nothing else is inherited.
        env: BTreeMap<String, Secret> as BTreeMap<String, Literal>,
        /// Commands with rules of their own, such as `plan` or `pr list`.
        commands: BTreeMap<String, CliCommand>,
        /// The rules of a program without commands, which is one tool: `<name>.run`.
        bare: Option<CliCommand>,
        /// Whether declared commands too refuse arguments with `;`, `&&`, `||`, `|`, backticks, `$(`, `${` and line breaks. A
        /// dispatcher always does.
        reject_metacharacters: bool = "false",
        /// The most that is kept of what one call writes to standard output, and of standard error.
        max_output_bytes: usize as Size<usize> = "1MiB",
        /// The most calls at once; one more is refused.
        max_calls: usize as Whole<usize, 1, 1024> = "8",
    }
    check cli_tool_is_sound
}

section! {
    /// The rules of one command.
    CliCommand as "a command" {
        /// The only options that it may have, such as `-n` or `--namespace`; `--namespace=x` and `-nx` are these too. Other
        /// arguments are not bound. Without the key any option passes.
        allowed_args: Option<Vec<String>>,
        /// The longest that it may run.
        timeout: Duration = "30s",
    }
}

/// A program: a name, or a path that starts from the configuration's folder.
pub(crate) struct Program;

impl Leaf for Program {
    type Value = PathBuf;
    const WRITING: Writing = Writing::Word;

    fn phrase() -> String {
        "a program's name or path".to_owned()
    }

    fn schema() -> Json {
        json!({ "type": "string", "minLength": 1 })
    }

    fn parse(text: &str, folder: &Path) -> Result<PathBuf, String> {
        if text.trim().is_empty() {
            return Err("the program's name is empty".to_owned());
        }
        if text.contains('\0') {
            return Err("a program's name holds no NUL".to_owned());
        }
        Ok(if text.contains('/') {
            folder.join(text)
        } else {
            PathBuf::from(text)
        })
    }
}

fn cli_tool_is_sound(tool: &CliTool, keys: &Keys<'_, '_>) {
    if tool.strict && tool.commands.is_empty() {
        let message = "strict needs commands: with none declared nothing could be called";
        keys.problem(Some("strict"), message.to_owned());
    }
    if tool.bare.is_some() && !tool.commands.is_empty() {
        let message = "bare and commands exclude each other: a bare program has no commands";
        keys.problem(Some("bare"), message.to_owned());
    }
    for (name, command) in &tool.commands {
        if let Err(error) = name.parse::<CommandName>() {
            keys.problem(Some("commands"), format!("commands: {error}"));
        }
        options_are_sound(name, command, "commands", keys);
    }
    let mut names: Vec<CommandName> = tool
        .commands
        .keys()
        .filter_map(|name| name.parse().ok())
        .collect();
    names.sort();
    if let Some(twice) = names
        .windows(2)
        .find(|pair| pair.first() == pair.get(1))
        .and_then(|pair| pair.first())
    {
        keys.problem(
            Some("commands"),
            format!("commands: \"{twice}\" is declared twice"),
        );
    }
    if let Some(command) = &tool.bare {
        options_are_sound("bare", command, "bare", keys);
    }
    for (name, value) in &tool.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            keys.problem(
                Some("env"),
                format!("env: {name:?} is not the name of a variable"),
            );
        }
        if value.expose().contains('\0') {
            keys.problem(
                Some("env"),
                format!("env: the value of {name} holds a NUL, which no variable can"),
            );
        }
    }
}

fn options_are_sound(of: &str, command: &CliCommand, key: &str, keys: &Keys<'_, '_>) {
    for option in command.allowed_args.iter().flatten() {
        let is_option = option.len() > 1
            && option.starts_with('-')
            && option != "--"
            && !option.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control());
        if !is_option {
            let message = format!(
                "allowed_args of {of}: {option:?} is not an option; write -x or --name, without a value"
            );
            keys.problem(Some(key), message);
        }
    }
}
