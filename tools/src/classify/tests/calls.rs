//! What arguments change.

use serde_json::json;

use super::super::*;
use super::{call, declared, host, names, risks_of};
use crate::model::Tool;
use crate::targets::Extent;

#[test]
fn mapped_actions_say_what_a_call_does() {
    let process = host("process");
    assert_eq!(risks_of(&process, &json!({"action": "list"})), "READ");
    assert_eq!(risks_of(&process, &json!({"action": "kill"})), "EXECUTION");
    assert_eq!(risks_of(&process, &json!({"ACTION": "kill"})), "EXECUTION");
    assert_eq!(risks_of(&process, &json!({"action": "List"})), "READ");
    assert_eq!(risks_of(&process, &json!({"action": "delete_all"})), "DELETE");
    assert_eq!(risks_of(&process, &json!({"action": "frobnicate"})), "UNKNOWN");
    assert_eq!(risks_of(&process, &json!({"action": 3})), "READ+EXECUTION");
    assert_eq!(risks_of(&process, &json!({})), "READ+EXECUTION");
    let (list, _) = call(&process, &json!({"action": "list"}));
    assert_eq!(
        (list.capability.as_deref(), list.plain_read),
        (Some("process.read"), true)
    );
    assert_eq!(
        list.reasons,
        ["mapped as \"process\"", "argument \"action\": \"list\""]
    );
    assert_eq!(
        risks_of(&process, &json!({"action": "list", "Action": "kill"})),
        "READ+EXECUTION"
    );
}

#[test]
fn presence_changes_what_a_call_does() {
    let console = host("browser_console");
    assert_eq!(risks_of(&console, &json!({})), "READ");
    assert_eq!(risks_of(&console, &json!({"expression": null})), "READ");
    assert_eq!(
        risks_of(&console, &json!({"expression": "1+1"})),
        "READ+EXECUTION"
    );
}

#[test]
fn a_mapped_read_is_a_read_only_for_actions_that_read() {
    let tool = declared(json!({"name": "fetch", "inputSchema": {"properties": {
        "url": {"type": "string"}, "action": {"type": "string"}}}}));
    assert_eq!(risks_of(&tool, &json!({"url": "https://x.com"})), "READ");
    assert_eq!(risks_of(&tool, &json!({"action": "list"})), "READ");
    assert_eq!(risks_of(&tool, &json!({"action": "delete"})), "READ+DELETE");
    assert_eq!(risks_of(&tool, &json!({"action": "frobnicate"})), "READ+UNKNOWN");
    assert!(!tool.classification.plain_read);
}

#[test]
fn an_enumerated_action_escalates_a_read_by_its_verb() {
    let tool = |schema: serde_json::Value| {
        declared(json!({"name": "get_context", "inputSchema": {"properties": {"sub_command": schema}}}))
    };
    let listed = tool(json!({"enum": ["list", "set", "details"]}));
    assert_eq!(risks_of(&listed, &json!({"sub_command": "list"})), "READ");
    assert_eq!(risks_of(&listed, &json!({"sub_command": "details"})), "READ");
    assert_eq!(
        risks_of(&listed, &json!({"sub_command": "set"})),
        "READ+EXTERNAL_WRITE"
    );
    assert_eq!(risks_of(&listed, &json!({})), "READ+EXTERNAL_WRITE");
    assert_eq!(
        risks_of(&listed, &json!({"sub_command": ["list"]})),
        "READ+EXTERNAL_WRITE"
    );
    assert_eq!(
        risks_of(&listed, &json!({"sub_command": "frobnicate"})),
        "READ+UNKNOWN"
    );
    assert_eq!(names(listed.classification.possible_risks), "READ+EXTERNAL_WRITE");
    let defaulted = tool(json!({"enum": ["list", "set"], "default": "list"}));
    assert_eq!(risks_of(&defaulted, &json!({})), "READ");
    let any_of = tool(json!({"anyOf": [{"const": "list"}, {"const": "purge"}, {"type": "null"}]}));
    assert_eq!(risks_of(&any_of, &json!({"sub_command": null})), "READ+DELETE");
}

#[test]
fn a_free_text_filter_is_no_action() {
    let tool = declared(json!({"name": "list_traces", "inputSchema": {"properties": {
        "operation": {"type": "string"}, "kind": {"type": "string"}}}}));
    assert_eq!(
        risks_of(&tool, &json!({"operation": "checkout of carts"})),
        "READ+EXTERNAL_WRITE"
    );
    assert_eq!(
        risks_of(&tool, &json!({"operation": "the order to delete"})),
        "READ"
    );
    assert_eq!(risks_of(&tool, &json!({"operation": "delete"})), "READ+DELETE");
    assert_eq!(risks_of(&tool, &json!({"kind": "delete"})), "READ");
    assert!(call(&tool, &json!({})).0.plain_read);
}

#[test]
fn a_tool_that_says_nothing_goes_by_its_action() {
    let tool = declared(json!({"name": "calendar", "inputSchema": {"properties": {
        "action": {"type": "string"}}}}));
    for (action, risks) in [
        ("list", "READ"),
        ("create_event", "EXTERNAL_WRITE"),
        ("delete", "DELETE"),
        ("share", "PERMISSION_CHANGE"),
        ("frobnicate", "UNKNOWN"),
        ("", "UNKNOWN"),
    ] {
        assert_eq!(risks_of(&tool, &json!({"action": action})), risks, "{action}");
    }
    assert_eq!(risks_of(&tool, &json!({})), "UNKNOWN");
    let http = declared(json!({"name": "calendar", "inputSchema": {"properties": {"method": {}}}}));
    assert_eq!(risks_of(&http, &json!({"method": "POST"})), "EXTERNAL_WRITE");
    assert_eq!(risks_of(&http, &json!({"method": "GET"})), "READ");
}

#[test]
fn a_named_output_file_adds_a_local_write() {
    for property in [
        json!({"output_path": {"type": "string"}}),
        json!({"saveTo": {"type": "string"}}),
        json!({"filename": {"type": "string", "description": "File name to save the snapshot to."}}),
    ] {
        let tool = declared(json!({"name": "get_page", "inputSchema": {"properties": property}}));
        let name = property.as_object().unwrap().keys().next().unwrap();
        assert_eq!(
            risks_of(&tool, &json!({name: "/tmp/x"})),
            "READ+LOCAL_WRITE",
            "{name}"
        );
        assert!(call(&tool, &json!({})).0.plain_read);
        assert!(!tool.classification.plain_read);
    }
    for property in [
        json!({"output": {"enum": ["json", "yaml"]}}),
        json!({"filename": {"type": "string", "description": "The file to read."}}),
        json!({"destination": {"type": "string"}}),
    ] {
        let tool = declared(json!({"name": "get_page", "inputSchema": {"properties": property}}));
        assert!(tool.classification.plain_read, "{property}");
    }
}

#[test]
fn well_known_agent_tools_are_mapped() {
    for (name, capability, risk) in [
        ("Bash", "shell.run", "EXECUTION"),
        ("Read", "file.read", "READ"),
        ("Write", "file.write", "LOCAL_WRITE"),
        ("Edit", "file.write", "LOCAL_WRITE"),
        ("MultiEdit", "file.write", "LOCAL_WRITE"),
        ("NotebookEdit", "file.write", "LOCAL_WRITE"),
        ("Glob", "file.read", "READ"),
        ("Grep", "file.read", "READ"),
        ("LS", "file.read", "READ"),
        ("WebFetch", "web.read", "READ"),
        ("WebSearch", "web.read", "READ"),
        ("Task", "agent.run", "EXECUTION"),
        ("TodoWrite", "task.write", "LOCAL_WRITE"),
        ("terminal", "shell.run", "EXECUTION"),
        ("execute_code", "code.run", "EXECUTION"),
        ("read_file", "file.read", "READ"),
        ("web_search", "web.read", "READ"),
    ] {
        let tool = host(name).classification;
        assert_eq!(tool.capability.as_deref(), Some(capability), "{name}");
        assert_eq!(tool.risk.name(), risk, "{name}");
        assert_eq!(tool.source, RiskSource::Mapped, "{name}");
        assert_eq!(tool.plain_read, risk == "READ", "{name}");
    }
}

#[test]
fn a_mapping_is_about_tools_of_its_shape_and_hears_their_claims() {
    let other =
        declared(json!({"name": "fetch", "inputSchema": {"properties": {"sql": {"type": "string"}}}}));
    assert_eq!(other.classification.source, RiskSource::Inferred);
    let writing = declared(json!({"name": "fetch", "annotations": {"readOnlyHint": false},
        "inputSchema": {"properties": {"url": {"type": "string"}}}}));
    assert_eq!(names(writing.classification.risks), "READ+EXTERNAL_WRITE");
    assert_eq!(writing.classification.access, Access::Write);
}

#[test]
fn targets_come_from_the_arguments_that_a_mapping_names() {
    let (_, targets) = call(&host("Read"), &json!({"file_path": "/etc/passwd"}));
    assert_eq!(targets.paths, Extent::Known(vec!["/etc/passwd".to_owned()]));
    assert_eq!(targets.hosts, Extent::Unknown);
    let (_, targets) = call(&host("WebFetch"), &json!({"url": "https://Example.com/x"}));
    assert_eq!(targets.hosts, Extent::Known(vec!["example.com".to_owned()]));
    let (_, targets) = call(
        &host("WebFetch"),
        &json!({"url": "https://example.com\\@evil.com"}),
    );
    assert_eq!(targets.hosts, Extent::Unknown);
    let (_, targets) = call(
        &host("send_email"),
        &json!({"to": ["A <a@x.com>"], "bcc": "b@y.com"}),
    );
    assert_eq!(
        targets.recipients,
        Extent::Known(vec!["b@y.com".to_owned(), "a@x.com".to_owned()])
    );
    let (_, targets) = call(&host("move_file"), &json!({"source": "a", "destination": 3}));
    assert_eq!(
        targets.paths,
        Extent::Unknown,
        "one that cannot be read hides the rest"
    );
    let (_, targets) = call(&host("Grep"), &json!({"pattern": "x"}));
    assert_eq!(
        targets.paths,
        Extent::Unknown,
        "an absent path is a default that nobody knows"
    );
}

#[test]
fn leaving_the_text_out_is_no_milder_than_any_text() {
    let absent = call(&host("Bash"), &json!({})).0.risks;
    assert!(absent.contains(Risk::Delete) && absent.contains(Risk::PermissionChange));
    assert!(
        call(&host("Bash"), &json!({"command": ["ls"]}))
            .0
            .risks
            .contains(Risk::Execution)
    );
}

#[test]
fn a_call_that_arguments_do_not_change_borrows_what_the_tool_is() {
    use std::borrow::Cow;
    let fixed: Tool = declared(json!({"name": "get_x", "inputSchema": {"properties": {"id": {}}}}));
    assert!(matches!(
        classify_call(&fixed, None).classification,
        Cow::Borrowed(_)
    ));
    let actions =
        declared(json!({"name": "get_x", "inputSchema": {"properties": {"mode": {"enum": ["a"]}}}}));
    assert!(matches!(
        classify_call(&actions, None).classification,
        Cow::Borrowed(_)
    ));
}

#[test]
fn a_text_that_was_read_whole_says_what_a_call_does() {
    let bash = host("Bash");
    let (list, _) = call(&bash, &json!({"command": "ls -l"}));
    assert_eq!(
        (names(list.risks).as_str(), list.plain_read),
        ("READ", true),
        "{list:?}"
    );
    assert_eq!(list.access, Access::Read);
    let (remove, _) = call(&bash, &json!({"command": "rm -r build"}));
    assert!(remove.risks.contains(Risk::Delete) && !remove.plain_read);
    assert_eq!(remove.side_effect.kind, SideEffectKind::Delete);
    assert!(risks_of(&bash, &json!({"command": "./deploy"})).contains("EXECUTION"));
    let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n";
    let (removal, targets) = call(&host("apply_patch"), &json!({"patch": patch}));
    assert!(removal.risks.contains(Risk::Delete), "{removal:?}");
    assert_eq!(targets.paths, Extent::Known(vec!["a.txt".to_owned()]));
}
