//! What commands print: JSON as the API answered, or tables for people.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::args::OutputFormat;
use crate::error::CliError;

/// Prints answers in the format that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    format: OutputFormat,
}

impl Printer {
    pub(crate) fn new(format: OutputFormat) -> Self {
        Self { format }
    }

    pub(crate) fn is_json(self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Prints the answer as JSON, or what `text` makes of it.
    pub(crate) fn answer(self, value: &Value, text: impl FnOnce(&Value) -> String) -> Result<(), CliError> {
        if self.is_json() {
            line(&value.to_string())
        } else {
            line(text(value).trim_end())
        }
    }

    /// Prints a list as JSON, or as a table with the given columns, or `empty`.
    pub(crate) fn list(self, value: &Value, columns: &[Column], empty: &str) -> Result<(), CliError> {
        self.answer(value, |value| match value.as_array() {
            Some(rows) if !rows.is_empty() => table(rows, columns),
            _ => empty.to_owned(),
        })
    }
}

/// A column of a table: its head and how a row fills it.
pub(crate) struct Column {
    head: &'static str,
    cell: fn(&Value) -> String,
}

impl Column {
    pub(crate) const fn new(head: &'static str, cell: fn(&Value) -> String) -> Self {
        Self { head, cell }
    }
}

/// Writes a line to standard output; a closed pipe ends the program quietly.
pub(crate) fn line(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other.map_err(CliError::from),
    }
}

/// Writes a line to standard error, for what is not part of the answer.
pub(crate) fn note(text: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Whether people read standard output.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// A field's text: strings without quotes, absent and null as nothing, lists joined.
pub(crate) fn field(row: &Value, name: &str) -> String {
    text(row.get(name).unwrap_or(&Value::Null))
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => printable(text),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => printable(&other.to_string()),
    }
}

/// What a terminal may be given: control characters and direction overrides are shown, not obeyed.
fn printable(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .flat_map(|c| {
            if hidden(c) {
                c.escape_unicode().collect::<Vec<_>>()
            } else {
                vec![c]
            }
        })
        .collect()
}

fn table(rows: &[Value], columns: &[Column]) -> String {
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|column| column.head.to_owned()).collect()];
    lines.extend(
        rows.iter()
            .map(|row| columns.iter().map(|column| (column.cell)(row)).collect()),
    );
    let widths: Vec<usize> = (0..columns.len())
        .map(|index| {
            lines
                .iter()
                .filter_map(|line| line.get(index))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    lines
        .iter()
        .map(|line| {
            let cells: Vec<String> = line
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}", width = *width))
                .collect();
            cells.join("  ").trim_end().to_owned()
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hostile_text_cannot_steer_the_terminal() {
        let row = json!({"tool": "a\u{1b}[2Jb\u{202e}c"});
        assert_eq!(field(&row, "tool"), "a\\u{1b}[2Jb\\u{202e}c");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [json!({"a": "x", "b": "1"}), json!({"a": "longer", "b": "2"})];
        let columns = [
            Column::new("A", |row| field(row, "a")),
            Column::new("B", |row| field(row, "b")),
        ];
        assert_eq!(table(&rows, &columns), "A       B\nx       1\nlonger  2");
    }
}
