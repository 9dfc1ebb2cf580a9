//! The tables of the specification, row by row.

use serde_json::json;

use super::super::*;
use super::{declared, declared_by_method, named, names, read_only};

#[test]
fn the_signals_of_access() {
    for method in ["GET", "HEAD", "OPTIONS"] {
        assert_eq!(
            declared_by_method("thing", method).access,
            Access::Read,
            "{method}"
        );
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"] {
        assert_eq!(
            declared_by_method("thing", method).access,
            Access::Write,
            "{method}"
        );
    }
    let annotated = |annotations| {
        declared(json!({"name": "thing", "annotations": annotations}))
            .classification
            .access
    };
    assert_eq!(annotated(json!({"readOnlyHint": true})), Access::Read);
    assert_eq!(annotated(json!({"readOnlyHint": false})), Access::Write);
    assert_eq!(annotated(json!({"destructiveHint": true})), Access::Write);
    assert_eq!(annotated(json!({"destructiveHint": false})), Access::Unknown);
    for name in ["get_x", "list_x", "search_x", "read_x", "show_x"] {
        assert_eq!(named(name).access, Access::Read, "{name}");
    }
    for name in ["create_x", "send_x", "delete_x", "write_x", "execute_x", "run_x"] {
        assert_eq!(named(name).access, Access::Write, "{name}");
    }
    for name in ["x", "gettysburg", "listen", "sendai", "showroom"] {
        assert_eq!(named(name).access, Access::Unknown, "{name}: whole words only");
    }
}

#[test]
fn the_signals_of_the_generic_family() {
    let family = |declaration| declared(declaration).classification.family;
    for argument in [
        "code",
        "script",
        "sql",
        "command",
        "cmd",
        "statement",
        "program",
        "expression",
        "function",
        "js",
        "shell",
    ] {
        let schema = json!({"properties": {argument: {"type": "string"}}});
        let tool = declared(json!({"name": "get_thing", "inputSchema": schema}));
        assert_eq!(tool.classification.family, Family::Generic, "{argument}");
        let reason = format!("argument {argument:?}");
        assert!(
            tool.classification.reasons.contains(&reason),
            "{:?}",
            tool.classification.reasons
        );
        assert_eq!(tool.classification.risk, Risk::Execution);
    }
    let query = |name: &str, description: &str| {
        family(json!({"name": name, "description": description,
            "inputSchema": {"properties": {"query": {"type": "string"}}}}))
    };
    for name in ["execute_x", "exec_x", "run_x", "sql_x"] {
        assert_eq!(query(name, ""), Family::Generic, "{name}");
    }
    for description in [
        "Answers SQL",
        "Runs Cypher",
        "A GraphQL mutation",
        "Asks the DuckDB database",
    ] {
        assert_eq!(query("ask", description), Family::Generic, "{description}");
    }
    assert_eq!(query("search", "Finds pages"), Family::Named);
    for arguments in [
        json!({"method": {}, "path": {}}),
        json!({"method": {}, "url": {}}),
        json!({"method": {}, "endpoint": {}}),
        json!({"name": {}, "arguments": {}}),
        json!({"tool": {}, "arguments": {}}),
    ] {
        assert_eq!(
            family(json!({"name": "x", "inputSchema": {"properties": arguments}})),
            Family::Generic
        );
    }
    let dispatcher = serde_json::value::to_raw_value(&json!({"name": "__dispatch"})).unwrap();
    let upstream = crate::id::UpstreamName::try_from("terraform").unwrap();
    let cli = crate::model::Tool::from_declaration(
        crate::model::ToolKind::Cli,
        Some(&upstream),
        None,
        dispatcher.into(),
    );
    assert_eq!(cli.unwrap().classification.family, Family::Generic);
}

#[test]
fn the_head_word_decides() {
    for (name, expected) in [
        ("pods_list", "READ"),
        ("issue_delete", "DELETE"),
        ("pods_log", "READ"),
        ("log_search_results", "READ"),
        ("order_list", "READ"),
        ("label_get", "READ"),
        ("message_search", "READ"),
        ("workflow_run_list", "READ"),
        ("run_query", "EXECUTION"),
        ("start_search", "EXTERNAL_WRITE"),
        ("get_order", "READ"),
        ("get_comment", "READ"),
        ("get_run_status", "READ"),
        ("list_role_bindings", "READ"),
        ("comment", "COMMUNICATION"),
        ("slack_post_message", "COMMUNICATION"),
        ("github_fork_repository", "EXTERNAL_WRITE"),
        ("copy_page", "EXTERNAL_WRITE"),
        ("git_checkout", "EXTERNAL_WRITE"),
        ("share_document", "PERMISSION_CHANGE"),
        // Nouns that look like reads never make a read by themselves.
        ("repo_status", "UNKNOWN"),
        ("page_snapshot", "UNKNOWN"),
        ("page_preview", "UNKNOWN"),
        ("user_count", "UNKNOWN"),
    ] {
        assert_eq!(names(named(name).risks), expected, "{name}");
    }
}

#[test]
fn plain_verbs_of_writing_count_anywhere_and_nouns_after_a_joint() {
    for (name, expected) in [
        ("search_and_replace", "EXTERNAL_WRITE"),
        ("get_or_create_user", "EXTERNAL_WRITE"),
        ("snapshot_restore", "EXTERNAL_WRITE"),
        ("get_and_delete_record", "DELETE"),
        ("find_then_order", "FINANCIAL"),
        ("read_and_label", "EXTERNAL_WRITE"),
        ("list_or_share", "PERMISSION_CHANGE"),
        ("get_and_list", "READ"),
    ] {
        assert_eq!(names(named(name).risks), expected, "{name}");
    }
}

#[test]
fn less_obvious_verbs_have_their_class() {
    for verb in [
        "install",
        "upgrade",
        "kill",
        "terminate",
        "scale",
        "drain",
        "cordon",
        "rollout",
        "commit",
        "fork",
        "replace",
        "append",
        "upsert",
        "toggle",
        "fill",
        "click",
        "press",
        "rotate",
        "archive",
        "restore",
        "merge",
        "approve",
        "reject",
        "assign",
    ] {
        assert_eq!(named(&format!("{verb}_it")).access, Access::Write, "{verb}");
    }
    for verb in ["uninstall", "reset", "cleanup", "clear", "truncate"] {
        assert_eq!(
            named(&format!("{verb}_it")).side_effect.kind,
            SideEffectKind::Delete,
            "{verb}"
        );
    }
    for verb in ["protect", "restrict"] {
        assert_eq!(
            named(&format!("{verb}_it")).side_effect.kind,
            SideEffectKind::Admin,
            "{verb}"
        );
    }
    for verb in [
        "explain", "validate", "extract", "geocode", "describe", "lookup", "inspect",
    ] {
        assert_eq!(named(&format!("{verb}_it")).access, Access::Read, "{verb}");
    }
    for name in ["git_diff", "pods_log", "nodes_top", "directory_tree"] {
        assert_eq!(named(name).access, Access::Read, "{name}");
    }
}

#[test]
fn a_claim_of_reading_beats_silence_and_nouns_and_nothing_else() {
    for name in [
        "repo_status",
        "git_branch",
        "start_search",
        "open_nodes",
        "trigger_run",
    ] {
        assert!(read_only(name).plain_read, "{name}");
    }
    for name in ["create_thing", "things_delete", "get_or_create", "get_and_label"] {
        assert_eq!(read_only(name).access, Access::Write, "{name}");
    }
    let with = |properties| {
        declared(json!({"name": "thing", "annotations": {"readOnlyHint": true},
            "inputSchema": {"properties": properties}}))
        .classification
    };
    assert!(!with(json!({"sql": {"type": "string"}})).plain_read);
    assert_ne!(with(json!({"sql": {"type": "string"}})).access, Access::Read);
    let written = with(json!({"operation": {"enum": ["list", "delete"]}}));
    assert_eq!((written.access, written.plain_read), (Access::Write, false));
    assert!(with(json!({"operation": {"enum": ["list", "get"]}})).plain_read);
    assert!(with(json!({"mode": {"enum": ["text", "OR", "full"]}})).plain_read);
}

#[test]
fn delete_comes_before_admin_before_write_in_the_side_effect() {
    let effect = |name: &str, description: &str| {
        declared(json!({"name": name, "description": description}))
            .classification
            .side_effect
    };
    let is = |effect: SideEffect, kind, source| assert_eq!((effect.kind, effect.source), (kind, source));
    is(
        effect("grant_and_delete", ""),
        SideEffectKind::Delete,
        SideEffectSource::Name,
    );
    is(
        effect("create_and_grant", ""),
        SideEffectKind::Admin,
        SideEffectSource::Name,
    );
    is(
        effect("get_x", "Gets x"),
        SideEffectKind::Read,
        SideEffectSource::Name,
    );
    is(
        effect("x", "Shows x"),
        SideEffectKind::Read,
        SideEffectSource::Default,
    );
    is(
        effect("x", "Permanently deletes x"),
        SideEffectKind::Delete,
        SideEffectSource::Description,
    );
    is(
        effect("get_x", "Gets x and updates its date."),
        SideEffectKind::Write,
        SideEffectSource::Description,
    );
    is(
        effect("delete_x", "Creates nothing"),
        SideEffectKind::Delete,
        SideEffectSource::Name,
    );
    let described = declared(json!({"name": "get_x", "description": "Deletes x"})).classification;
    assert!(described.plain_read, "a description raises the side effect only");
    let defaulted = declared(json!({"name": "x", "description": "Shows x"})).classification;
    assert!(!defaulted.plain_read, "a defaulted read is no plain read");
}

#[test]
fn capability_and_risk_follow_verb_and_domain() {
    for (name, capability, risk) in [
        ("get_order", "payment.read", "READ"),
        ("place_order", "payment.pay", "FINANCIAL"),
        ("transfer_funds", "other.pay", "EXTERNAL_WRITE+FINANCIAL"),
        ("gmail_send_message", "email.send", "COMMUNICATION"),
        ("gmail_get_message", "email.read", "READ"),
        ("drive_delete_file", "file.delete", "DELETE"),
        ("drive_share_file", "file.permit", "PERMISSION_CHANGE"),
        ("drive_create_file", "file.write", "EXTERNAL_WRITE"),
        ("stripe_create_refund", "payment.pay", "EXTERNAL_WRITE+FINANCIAL"),
        ("write_file", "file.write", "LOCAL_WRITE"),
        ("upload_file", "file.write", "EXTERNAL_WRITE"),
        ("create_ticket", "issue.write", "EXTERNAL_WRITE"),
        (
            "set_permissions",
            "access.permit",
            "EXTERNAL_WRITE+PERMISSION_CHANGE",
        ),
        ("kanban_move", "project.write", "LOCAL_WRITE"),
        ("kanban_delete_card", "project.write", "LOCAL_WRITE+DELETE"),
    ] {
        let classification = named(name);
        assert_eq!(classification.capability.as_deref(), Some(capability), "{name}");
        assert_eq!(names(classification.risks), risk, "{name}");
    }
    let closed = declared(json!({"name": "create_ticket", "annotations": {"openWorldHint": false}}));
    assert_eq!(closed.classification.risk, Risk::LocalWrite);
    assert_eq!(named("kanban_move").source, RiskSource::Pattern);
    assert_eq!(named("x").source, RiskSource::Unknown);
}

#[test]
fn names_are_read_whole_whoever_serves_the_tool() {
    use super::host;
    for (name, risk) in [
        ("mcp__github__create_issue", "EXTERNAL_WRITE"),
        ("mcp__delete__get_issue", "READ"),
        ("mcp_gmail_get_message", "READ"),
        ("mcp_gmail_send_message", "COMMUNICATION"),
        ("mcp_drive_delete_file", "DELETE"),
        ("mcp_drive_share_file", "PERMISSION_CHANGE"),
        ("mcp_shop_place_order", "FINANCIAL"),
    ] {
        assert_eq!(host(name).classification.risk.name(), risk, "{name}");
    }
}
