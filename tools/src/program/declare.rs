//! The tools of a program, declared as an MCP server would declare them.

use serde_json::{Value, json};

use super::{Command, CommandName, DISPATCHER, Program, RUN, Shape};

/// The member of a declaration's `_meta` that says which program it is of.
pub(crate) const META: &str = "dev.toolgate/program";
/// The pattern of a dispatcher's `command`.
const COMMAND_PATTERN: &str = "^[a-z0-9][a-z0-9_-]*( [a-z0-9][a-z0-9_-]*)*$";

/// The program in a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin<'b> {
    /// Its file name.
    pub name: &'b str,
    /// Whether it is where programs are installed, so that its name says what it is.
    pub is_installed: bool,
    /// The name of the action that is the floor of its dispatcher, or of the program without commands.
    pub floor: &'b str,
}

/// One tool of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Its own name.
    pub local: String,
    /// The declaration, in the shape of an entry of `tools/list`.
    pub declared: Value,
}

impl Program {
    /// The tools that are listed.
    pub fn declarations(&self, bin: Bin<'_>) -> Vec<Declaration> {
        match &self.shape {
            Shape::Bare(command) => vec![declaration(RUN, bin, "", Some(command))],
            Shape::Commands { declared, is_strict } => {
                let mut all: Vec<Declaration> = declared
                    .iter()
                    .map(|(name, command)| declared_command(bin, name, command))
                    .collect();
                if !is_strict {
                    all.push(dispatcher(bin, declared.keys()));
                }
                all
            }
        }
    }

    /// The declaration of a command that is not listed, for it is not declared.
    pub fn undeclared(bin: Bin<'_>, name: &CommandName) -> Declaration {
        declared_command(bin, name, &Command::default())
    }
}

fn declared_command(bin: Bin<'_>, name: &CommandName, command: &Command) -> Declaration {
    declaration(&name.local(), bin, &format!(" {name}"), Some(command))
}

fn dispatcher<'n>(bin: Bin<'_>, declared: impl Iterator<Item = &'n CommandName>) -> Declaration {
    let mut declaration = declaration(DISPATCHER, bin, " COMMAND", None);
    let listed: Vec<String> = declared.map(|name| format!("`{name}`")).collect();
    let instead = if listed.is_empty() {
        String::new()
    } else {
        format!(" Tools of their own: {}.", listed.join(", "))
    };
    let description = format!(
        "`{} COMMAND`, for commands that have no tool of their own, without a shell.{instead} A non-zero exit code is an error.",
        bin.name
    );
    if let Some(members) = declaration.declared.as_object_mut() {
        members.insert("description".to_owned(), description.into());
    }
    if let Some(schema) = declaration.declared.get_mut("inputSchema") {
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            let command = json!({
                "type": "string",
                "pattern": COMMAND_PATTERN,
                "description": "The command's words, such as \"plan\" or \"pr list\"",
            });
            properties.insert("command".to_owned(), command);
        }
        if let Some(members) = schema.as_object_mut() {
            members.insert("required".to_owned(), json!(["command"]));
        }
    }
    declaration
}

/// `rules` are missing for a dispatcher.
fn declaration(local: &str, bin: Bin<'_>, words: &str, rules: Option<&Command>) -> Declaration {
    let allowed = rules.and_then(|rules| rules.allowed_args.as_ref());
    let options = match allowed {
        None => String::new(),
        Some(allowed) if allowed.is_empty() => " Options: none.".to_owned(),
        Some(allowed) => format!(" Options: only {}.", allowed.join(", ")),
    };
    let description = format!(
        "`{}{words}`, without a shell.{options} A non-zero exit code is an error.",
        bin.name
    );
    let named = if bin.is_installed {
        bin.name.to_owned()
    } else {
        format!("./{}", bin.name)
    };
    let passes = if allowed.is_some() { "listed" } else { "any" };
    let mut said = json!({ "bin": named, "options": passes, "bare": words.is_empty() });
    if let Some(members) = said
        .as_object_mut()
        .filter(|_| local == DISPATCHER || words.is_empty())
    {
        members.insert("floor".to_owned(), bin.floor.into());
    }
    let declared = json!({
        "name": local,
        "description": description,
        "inputSchema": input_schema(),
        "outputSchema": output_schema(),
        "_meta": { META: said },
    });
    Declaration {
        local: local.to_owned(),
        declared,
    }
}

fn input_schema() -> Value {
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    json!({
        "type": "object",
        "properties": {
            "args": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Arguments, one each, as the program takes them; nothing is split or expanded",
            },
            "flags": {
                "type": "object",
                "additionalProperties": { "anyOf": [scalar, { "type": "array", "items": scalar }] },
                "description": "Options by name without dashes, before args: {\"n\": \"x\"} is -n x, {\"name\": \"x\"} is --name x, true is the option alone",
            },
            "stdin": { "type": "string", "description": "Piped to the program as data" },
        },
        "additionalProperties": false,
    })
}

fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "stdout": { "type": "string" },
            "stderr": { "type": "string" },
            "exit_code": { "type": "integer" },
            "truncated": { "type": "boolean" },
            "invalid_utf8": { "type": "boolean" },
            "duration_ms": { "type": "integer" },
        },
        "required": ["stdout", "stderr", "exit_code", "truncated", "duration_ms"],
    })
}
