use std::sync::Arc;

use serde_json::value::RawValue;

use super::*;
use crate::upstream::DeclaredTool;

fn catalogue(upstream: &str, declarations: &[&str]) -> DeclaredCatalogue {
    let tools = declarations
        .iter()
        .map(|text| {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            DeclaredTool {
                name: value["name"].as_str().unwrap().into(),
                declared: Arc::from(RawValue::from_string((*text).to_owned()).unwrap()),
            }
        })
        .collect();
    DeclaredCatalogue {
        is_read: true,
        tools,
        ..DeclaredCatalogue::unread(upstream.into())
    }
}

const READ: &str = r#"{"name":"read","inputSchema":{"type":"object"}}"#;
const WRITE: &str = r#"{"name":"write","inputSchema":{"type":"object"}}"#;

fn names(registry: &Registry) -> Vec<String> {
    registry
        .tools()
        .iter()
        .map(|tool| tool.name.to_string())
        .collect()
}

#[test]
fn tools_of_all_upstreams_are_served_sorted_by_name() {
    let registry = Registry::new();
    registry.take(&catalogue("notes", &[WRITE, READ]));
    registry.take(&catalogue("files", &[READ]));
    assert_eq!(names(&registry), ["files.read", "notes.read", "notes.write"]);
    registry.take(&catalogue("notes", &[READ]));
    assert_eq!(names(&registry), ["files.read", "notes.read"]);
}

#[test]
fn both_separators_find_a_tool() {
    let registry = Registry::new();
    registry.take(&catalogue(
        "my__notes",
        &[r#"{"name":"read__all","inputSchema":{"type":"object"}}"#],
    ));
    for name in ["my__notes.read__all", "my__notes__read__all"] {
        assert_eq!(
            registry.lookup(name).unwrap().name.as_str(),
            "my__notes.read__all"
        );
    }
    for name in ["my__notes", "notes.read__all", "my.notes.read__all", ""] {
        assert!(registry.lookup(name).is_none(), "{name}");
    }
}

#[test]
fn what_is_declared_twice_or_cannot_be_a_tool_is_left_out() {
    let registry = Registry::new();
    let again = r#"{"name":"read","description":"another","inputSchema":{"type":"object"}}"#;
    let twice = r#"{"name":"bad","name":"bad","inputSchema":{"type":"object"}}"#;
    let prefixed = r#"{"name":"resource:x","inputSchema":{"type":"object"}}"#;
    let control = r#"{"name":"a\nb","inputSchema":{"type":"object"}}"#;
    registry.take(&catalogue("notes", &[READ, again, twice, prefixed, control]));
    assert_eq!(names(&registry), ["notes.read"]);
    assert_eq!(registry.lookup("notes.read").unwrap().description, None);
}

#[test]
fn a_catalogue_that_says_the_same_changes_nothing() {
    let registry = Registry::new();
    let mut changed = registry.changed();
    let mut published = registry.published();
    registry.take(&catalogue("notes", &[READ, WRITE]));
    assert!(changed.has_changed().unwrap() && published.has_changed().unwrap());
    assert_eq!(
        published.borrow_and_update().values().next().unwrap().tools.len(),
        2
    );
    changed.mark_unchanged();
    let tool = registry.lookup("notes.read").unwrap();
    registry.take(&catalogue("notes", &[WRITE, READ]));
    assert!(!changed.has_changed().unwrap() && !published.has_changed().unwrap());
    assert!(Arc::ptr_eq(&tool, &registry.lookup("notes.read").unwrap()));
    registry.take(&catalogue("notes", &[]));
    assert!(changed.has_changed().unwrap() && published.has_changed().unwrap());
}
