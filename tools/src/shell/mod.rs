//! What shell text does, read with a real shell grammar and never by splitting text.
//!
//! The text becomes tokens (`lexer`, `expand`), the tokens a tree (`tree`), and every simple command in it is looked up in
//! the vocabulary (`data/commands.txt`, `table`). Wrappers are looked through to what they run. Whatever cannot be read with
//! certainty is EXECUTION and makes the reading incomplete; nothing uncertain is ever a plain read.

mod arguments;
mod document;
mod expand;
mod git;
mod lexer;
mod net;
mod reader;
mod run;
mod special;
mod table;
mod tree;
mod web;
mod word;
mod wrap;

#[cfg(test)]
mod tests;

use word::Word;

use crate::classify::{Risk, RiskSet};
use crate::targets::Extent;

/// The longest text that is read, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;

/// What a piece of shell text does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellReading {
    /// The classes of everything that it runs; never empty.
    pub risks: RiskSet,
    /// It was parsed whole, and every command and destination in it is known.
    pub complete: bool,
    /// What it amounts to: `shell.read`, `shell.network_write`, …
    pub capability: Option<&'static str>,
    /// The hosts that it reaches.
    pub hosts: Extent,
    /// The files that it names.
    pub paths: Extent,
    /// The people that it reaches.
    pub recipients: Extent,
    /// Why, in the order of the text.
    pub reasons: Vec<String>,
}

impl ShellReading {
    /// The reading of text that cannot be read.
    fn refused(reason: String) -> Self {
        Self {
            risks: RiskSet::of(Risk::Execution),
            complete: false,
            capability: Some("shell.execute"),
            hosts: Extent::Unknown,
            paths: Extent::Unknown,
            recipients: Extent::Unknown,
            reasons: vec![reason],
        }
    }
}

/// Reads shell text: in bounded time and memory, whatever it is.
pub fn read(text: &str) -> ShellReading {
    if text.len() > MAX_TEXT {
        return ShellReading::refused(format!("shell text of more than {MAX_TEXT} bytes is not read"));
    }
    let mut reader = reader::Reader::new();
    reader.text(text);
    reader.finish()
}

/// Reads a program with its arguments, as a shell would run it without reading any of them, and what is on its input.
pub fn read_command(argv: &[&str], input: Option<&str>) -> ShellReading {
    let length: usize = argv.iter().chain(&input).map(|text| text.len()).sum();
    if length > MAX_TEXT {
        return ShellReading::refused(format!("a command of more than {MAX_TEXT} bytes is not read"));
    }
    let words: Vec<Word> = argv.iter().map(|text| Word::literal(text)).collect();
    let mut reader = reader::Reader::new();
    reader.command(&words, input.map(Word::literal).as_ref());
    reader.finish()
}

/// Whether a program is known by its name: what it does with its arguments is read, not guessed.
pub fn knows(program: &str) -> bool {
    table::row(program).is_some_and(|_| !program.contains(' '))
}

/// What a set of classes amounts to.
fn capability(risks: RiskSet) -> &'static str {
    match risks.gravest() {
        Risk::Read => "shell.read",
        Risk::LocalWrite => "shell.write",
        Risk::Execution => "shell.execute",
        Risk::ExternalWrite => "shell.network_write",
        Risk::Communication => "shell.send",
        Risk::Delete => "shell.delete",
        Risk::PermissionChange => "shell.permission",
        Risk::Financial | Risk::Unknown => "shell.execute",
    }
}
