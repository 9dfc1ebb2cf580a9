//! The demo's MCP server: notes in a folder, on stdio, by the revision 2025-11-25.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::CliError;

/// Answers requests until its input ends.
pub(crate) fn serve(folder: &Path) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else {
            continue;
        };
        let Some(id) = request.get("id") else { continue };
        let params = request.get("params").cloned().unwrap_or_default();
        let answer = match request.get("method").and_then(Value::as_str) {
            Some("initialize") => Ok(initialized(&params)),
            Some("tools/list") => Ok(json!({"tools": tools()})),
            Some("tools/call") => Ok(called(folder, &params)),
            Some("ping") => Ok(json!({})),
            _ => Err(json!({"code": -32601, "message": "method not found"})),
        };
        let message = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        writeln!(out, "{message}").and_then(|()| out.flush())?;
    }
    Ok(())
}

fn initialized(params: &Value) -> Value {
    json!({
        "protocolVersion": params.get("protocolVersion").and_then(Value::as_str).unwrap_or("2025-11-25"),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "notes", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn tools() -> Value {
    let name = json!({"name": {"type": "string", "description": "Name of the note"}});
    let mut named = json!({"type": "object", "properties": name, "required": ["name"]});
    let with_name = named.clone();
    if let Some(properties) = named.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(
            "text".to_owned(),
            json!({"type": "string", "description": "What the note shall say"}),
        );
    }
    json!([
        {"name": "list", "description": "Lists the notes.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
        {"name": "read", "description": "Reads one note.", "inputSchema": with_name, "annotations": {"readOnlyHint": true}},
        {"name": "write", "description": "Writes one note.", "inputSchema": named, "annotations": {"readOnlyHint": false}},
        {"name": "delete", "description": "Deletes one note.", "inputSchema": with_name, "annotations": {"destructiveHint": true}},
    ])
}

fn called(folder: &Path, params: &Value) -> Value {
    let arguments = params.get("arguments").cloned().unwrap_or_default();
    let text = |name: &str| {
        arguments
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let outcome = match params.get("name").and_then(Value::as_str).unwrap_or_default() {
        "list" => list(folder),
        "read" => note(folder, &text("name"))
            .and_then(|path| std::fs::read_to_string(path).map_err(|error| error.to_string())),
        "write" => note(folder, &text("name"))
            .and_then(|path| std::fs::write(path, text("text")).map_err(|error| error.to_string()))
            .map(|()| "written".to_owned()),
        "delete" => note(folder, &text("name"))
            .and_then(|path| std::fs::remove_file(path).map_err(|error| error.to_string()))
            .map(|()| "deleted".to_owned()),
        other => Err(format!("no tool {other}")),
    };
    let is_error = outcome.is_err();
    let said = outcome.unwrap_or_else(|error| error);
    json!({"content": [{"type": "text", "text": said}], "isError": is_error})
}

fn list(folder: &Path) -> Result<String, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names.join("\n"))
}

/// A note's path: a plain name inside the folder.
fn note(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && !name.starts_with('.');
    if plain {
        Ok(folder.join(name))
    } else {
        Err(format!("{name:?} is no name of a note"))
    }
}
