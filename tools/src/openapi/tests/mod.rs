mod documents;
mod hostile;
mod requests;

use super::*;
use crate::arguments::ArgumentCheck;
use crate::json::{Document, Limits};

const HERE: &str = "https://api.example.com/specs/openapi.json";

fn with<'i>() -> Import<'i> {
    Import {
        document_url: Some(HERE),
        ..Import::default()
    }
}

fn imported(document: &str) -> Imported {
    import(document.as_bytes(), &with()).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// A document of one version with one operation at a path.
fn document(version: &str, path: &str, method: &str, operation: &str) -> String {
    let head = match version {
        "2.0" => r#""swagger":"2.0""#.to_owned(),
        version => format!(r#""openapi":"{version}.0""#),
    };
    format!(
        r#"{{{head},"info":{{"title":"T","version":"1"}},"paths":{{"{path}":{{"{method}":{operation}}}}}}}"#
    )
}

fn one(document: &str) -> ImportedTool {
    let mut found = imported(document);
    assert!(found.left_out.is_empty(), "{:?}", found.left_out);
    found.tools.remove(0)
}

fn declared(tool: &ImportedTool) -> serde_json::Value {
    serde_json::from_str(&tool.declared).unwrap()
}

fn schema(tool: &ImportedTool) -> serde_json::Value {
    declared(tool)["inputSchema"].clone()
}

fn built(tool: &ImportedTool, arguments: &str) -> Result<Request, BuildError> {
    let arguments = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
    let check = ArgumentCheck::compile(&schema(tool).to_string()).unwrap();
    check
        .check(Some(arguments.root()))
        .unwrap_or_else(|error| panic!("{}: {error}", tool.declared));
    tool.template.build(Some(arguments.root()))
}
