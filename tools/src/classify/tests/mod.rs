mod calls;
mod corrections;
mod properties;
mod tables;

use serde_json::json;

use super::vocabulary::{self, Act};
use super::words;
use super::*;
use crate::id::UpstreamName;
use crate::model::{Tool, ToolKind};

fn declared(value: serde_json::Value) -> Tool {
    let upstream = UpstreamName::try_from("delete-send").unwrap();
    let raw = serde_json::value::to_raw_value(&value).unwrap();
    Tool::mcp(&upstream, raw.into()).unwrap()
}

fn declared_by_method(name: &str, method: &str) -> Classification {
    let raw = serde_json::value::to_raw_value(&json!({"name": name})).unwrap();
    Tool::from_declaration(ToolKind::OpenApi, None, Some(method), raw.into())
        .unwrap()
        .classification
}

fn named(name: &str) -> Classification {
    declared(json!({"name": name})).classification
}

fn host(name: &str) -> Tool {
    Tool::host(name.parse().unwrap())
}

/// One call of a tool.
fn call(tool: &Tool, arguments: &serde_json::Value) -> (Classification, crate::targets::Targets) {
    let text = arguments.to_string();
    let document = crate::json::Document::parse(text.as_bytes(), crate::json::Limits::ARGUMENTS).unwrap();
    let assessment = classify_call(tool, Some(document.root()));
    (assessment.classification.into_owned(), assessment.targets)
}

fn risks_of(tool: &Tool, arguments: &serde_json::Value) -> String {
    names(call(tool, arguments).0.risks)
}

fn names(risks: RiskSet) -> String {
    risks.iter().map(Risk::name).collect::<Vec<_>>().join("+")
}

fn read_only(name: &str) -> Classification {
    declared(json!({"name": name, "annotations": {"readOnlyHint": true}})).classification
}

fn with_arguments(arguments: serde_json::Value) -> Classification {
    declared(json!({
        "name": "get_thing",
        "annotations": {"readOnlyHint": true},
        "inputSchema": {"type": "object", "properties": arguments},
    }))
    .classification
}

#[test]
fn a_claimed_read_that_nothing_contradicts_is_a_plain_read() {
    let classification = read_only("list_channels");
    assert!(classification.plain_read);
    assert_eq!(
        (classification.risk, classification.access),
        (Risk::Read, Access::Read)
    );
    assert_eq!(
        classification.reasons,
        ["name verb \"list\"", "annotation readOnlyHint"]
    );
    assert!(classification.side_effect.is_known());
}

#[test]
fn a_get_operation_is_a_plain_read_and_a_post_is_a_write() {
    let classify = |method: &str| {
        let raw = serde_json::value::to_raw_value(&json!({"name": "users"})).unwrap();
        Tool::from_declaration(ToolKind::OpenApi, None, Some(method), raw.into())
            .unwrap()
            .classification
    };
    assert!(classify("GET").plain_read && classify("head").plain_read);
    assert_eq!(classify("POST").access, Access::Write);
    assert_eq!(classify("DELETE").side_effect.kind, SideEffectKind::Delete);
    assert_eq!(classify("POST").reasons, ["method POST"]);
}

#[test]
fn without_a_signal_nothing_is_known() {
    let classification = declared(json!({"name": "channels"})).classification;
    assert_eq!(
        classification,
        Classification::unknown(classification.name.clone())
    );
    assert!(!classification.side_effect.is_known());
}

#[test]
fn one_write_verb_outweighs_the_claim() {
    for (name, word) in [
        ("search_and_replace", "replace"),
        ("getOrCreateUser", "create"),
        ("HTTPDelete", "delete"),
        ("snapshot.restore", "restore"),
        ("message-send2", "send"),
        ("get_and_label", "label"),
    ] {
        let classification = read_only(name);
        assert!(!classification.plain_read, "{name}");
        assert_eq!(classification.access, Access::Write, "{name}");
        let reason = format!("name verb {word:?}");
        assert!(
            classification.reasons.contains(&reason),
            "{name} {:?}",
            classification.reasons
        );
    }
}

#[test]
fn nouns_after_a_reading_head_are_no_verbs() {
    for name in [
        "get_order",
        "list_comment",
        "getWorkflowRun",
        "undeleted",
        "get_or_list_orders",
        "get_settings",
    ] {
        assert!(read_only(name).plain_read, "{name}");
    }
}

#[test]
fn claims_of_writing_always_win() {
    let classify =
        |annotations| declared(json!({"name": "get_thing", "annotations": annotations})).classification;
    let both = classify(json!({"readOnlyHint": true, "destructiveHint": true}));
    assert_eq!((both.access, both.plain_read), (Access::Write, false));
    assert_eq!(classify(json!({"readOnlyHint": false})).access, Access::Write);
    let text = declared(json!({"name": "thing", "annotations": {"readOnlyHint": "true"}})).classification;
    assert_eq!(text.access, Access::Unknown);
}

#[test]
fn arguments_that_hold_something_to_run_make_a_tool_generic() {
    for arguments in [
        json!({"sql": {"type": "string"}}),
        json!({"Code": {}}),
        json!({"cmd": {"type": ["string", "null"]}}),
        json!({"method": {"type": "string"}, "path": {"type": "string"}}),
        json!({"tool": {"type": "string"}, "arguments": {"type": "object"}}),
    ] {
        let classification = with_arguments(arguments);
        assert_eq!(classification.family, Family::Generic);
        assert!(!classification.plain_read);
        assert_eq!(classification.risk, Risk::Execution);
    }
    let sql = with_arguments(json!({"sql": {"type": "string"}}));
    assert!(sql.reasons.contains(&"argument \"sql\"".to_owned()));
    assert!(with_arguments(json!({"code": {"type": "integer"}, "path": {"type": "string"}})).plain_read);
}

#[test]
fn arguments_are_found_in_every_branch_of_a_schema() {
    for schema in [
        json!({"anyOf": [{"properties": {"script": {"type": "string"}}}]}),
        json!({"if": {}, "then": {"properties": {"script": {"type": "string"}}}}),
        json!({"$ref": "#/$defs/input"}),
    ] {
        let tool =
            declared(json!({"name": "get", "annotations": {"readOnlyHint": true}, "inputSchema": schema}));
        assert_eq!(tool.classification.family, Family::Generic);
    }
}

#[test]
fn a_query_argument_is_generic_where_it_is_run() {
    let classify = |name: &str, description: &str| {
        declared(json!({
            "name": name,
            "description": description,
            "annotations": {"readOnlyHint": true},
            "inputSchema": {"properties": {"query": {"type": "string"}}},
        }))
        .classification
        .family
    };
    assert_eq!(classify("search", "Finds pages"), Family::Named);
    assert_eq!(classify("sql_search", "Finds pages"), Family::Generic);
    assert_eq!(classify("read", "Answers a read-only SQL query"), Family::Generic);
}

#[test]
fn a_name_with_hidden_or_foreign_letters_has_no_readable_signal() {
    for name in [
        "get_\u{200b}thing",
        "g\u{435}t_thing",
        "ｄｅｌｅｔｅ",
        "get_thing\u{301}",
        "\u{455}\u{435}nd",
    ] {
        let classification = read_only(name);
        assert_eq!(classification.access, Access::Unknown, "{name:?}");
        assert!(!classification.plain_read && classification.reasons[0] == "name not readable");
    }
    assert!(read_only("获取列表").plain_read);
    assert!(read_only("récupérer_liste").plain_read);
}

#[test]
fn the_upstreams_name_takes_no_part() {
    assert!(read_only("list").plain_read);
}

#[test]
fn names_are_split_at_marks_case_changes_and_acronyms() {
    let words = |name| words::split(name).unwrap().join(" ");
    assert_eq!(words("HTTPDelete"), "http delete");
    assert_eq!(words("getURLs-v2.list/all:x_y"), "get ur ls v list all x y");
    assert_eq!(words("deleteHTTPEntry"), "delete http entry");
}

#[test]
fn every_line_of_the_vocabulary_is_understood_and_every_word_is_there_once() {
    let mut seen = std::collections::HashSet::new();
    for (head, line) in vocabulary::verb_lines() {
        for word in line.split_whitespace() {
            assert!(seen.insert(word), "{word} is there twice");
            assert!(vocabulary::verb(word).is_some(), "{head} is not understood");
            assert!(word.bytes().all(|b| b.is_ascii_lowercase()), "{word}");
        }
    }
    assert_eq!(vocabulary::verb("delete").unwrap().act, Act::Delete);
    assert!(seen.len() > 300);
    let mut things = std::collections::HashSet::new();
    for (head, line) in vocabulary::thing_lines() {
        for word in line.split_whitespace() {
            assert!(
                things.insert((head.starts_with("object"), word)) || head.starts_with("object"),
                "{word}"
            );
            assert!(
                head.starts_with("object") || vocabulary::domain(word).is_some(),
                "{head}"
            );
        }
    }
    assert_eq!(vocabulary::objects().len(), 8);
}

#[test]
fn risk_sets_are_ordered_by_gravity() {
    let set: RiskSet = [Risk::Delete, Risk::Read].into_iter().collect();
    assert_eq!(serde_json::to_string(&set).unwrap(), r#"["READ","DELETE"]"#);
    assert_eq!(set.gravest(), Risk::Delete);
    assert_eq!(RiskSet::EMPTY.gravest(), Risk::Unknown);
    for risk in Risk::ALL {
        assert_eq!(
            serde_json::to_string(&risk).unwrap(),
            format!("{:?}", risk.name())
        );
        assert_eq!(Risk::from_name(risk.name()), Some(risk));
    }
}

#[test]
fn a_classification_survives_the_wire() {
    let classification = read_only("list_channels");
    let text = serde_json::to_string(&classification).unwrap();
    assert_eq!(
        serde_json::from_str::<Classification>(&text).unwrap(),
        classification
    );
}
