//! What holds for every tool and every call.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::call;
use crate::id::UpstreamName;
use crate::model::Tool;

const WRITES: [&str; 7] = ["create", "send", "delete", "grant", "pay", "execute", "update"];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec![
            "get", "list", "search", "read", "create", "send", "delete", "run", "order", "message", "file", "log",
            "status", "and", "or", "share", "post", "start", "table", "user", "query", "set", "sql", "mail",
        ])
        .prop_map(str::to_owned),
        1 => "[a-zA-Z]{1,8}",
        1 => "\\PC{1,3}",
    ]
}

fn tool_name() -> impl Strategy<Value = String> {
    (
        vec(word(), 1..5),
        prop::sample::select(vec!["_", "-", ".", "/", ""]),
    )
        .prop_map(|(words, mark)| words.join(mark))
}

fn argument_name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "action",
            "Operation",
            "sub_command",
            "mode",
            "sql",
            "query",
            "command",
            "path",
            "url",
            "to",
            "method",
            "output_file",
            "filename",
            "name",
            "arguments",
            "id",
            "file_path",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "list",
            "get",
            "delete",
            "send_now",
            "create",
            "kill",
            "GET",
            "POST",
            "ls -l",
            "rm -rf /",
            "SELECT 1",
            "https://x.com",
            "a@b.c",
            "full",
            "text",
            "",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,12}",
    ]
}

fn property() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({})),
        Just(json!({"type": "string", "description": "File name to save to"})),
        vec(text(), 1..4).prop_map(|values| json!({"enum": values})),
        (vec(text(), 1..4))
            .prop_map(|values| json!({"type": "string", "enum": values, "default": values[0]})),
        any::<bool>().prop_map(Value::Bool),
    ]
}

fn hints() -> impl Strategy<Value = Value> {
    let hint = || option::of(any::<bool>());
    (hint(), hint(), hint()).prop_map(|(read_only, destructive, open_world)| {
        json!({"readOnlyHint": read_only, "destructiveHint": destructive, "openWorldHint": open_world})
    })
}

prop_compose! {
    fn declaration()(
        name in prop_oneof![
            tool_name(),
            prop::sample::select(vec!["process", "fetch", "query", "Bash", "kanban_x", "memory", "read_file"])
                .prop_map(str::to_owned),
        ],
        description in option::of("[a-z ,.]{0,40}"),
        annotations in hints(),
        properties in btree_map(argument_name(), property(), 0..5),
    ) -> Value {
        json!({"name": name, "description": description, "annotations": annotations,
            "inputSchema": {"type": "object", "properties": properties}})
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::String),
        1 => any::<i32>().prop_map(|number| json!(number)),
        1 => Just(Value::Null),
        1 => vec(text(), 0..3).prop_map(|texts| json!(texts)),
        1 => Just(json!({"a": "b"})),
    ]
}

fn arguments() -> impl Strategy<Value = Value> {
    btree_map(argument_name(), value(), 0..5).prop_map(|members| json!(members))
}

fn tool(declaration: &Value) -> Option<Tool> {
    let upstream = UpstreamName::try_from("up").unwrap();
    let raw = serde_json::value::to_raw_value(declaration).unwrap();
    Tool::mcp(&upstream, raw.into()).ok()
}

/// Whether the arguments keep to the values that the schema enumerates.
fn keeps_to_enums(declaration: &Value, arguments: &Value) -> bool {
    let properties = declaration["inputSchema"]["properties"].as_object().unwrap();
    arguments.as_object().unwrap().iter().all(|(name, value)| {
        let key = schema::key(name);
        properties
            .iter()
            .filter(|(declared, _)| schema::key(declared) == key)
            .all(|(_, schema)| {
                let values = schema.get("enum").and_then(Value::as_array);
                values.is_none_or(|values| !value.is_string() || values.contains(value))
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_calls_risks_are_among_the_possible_ones(declaration in declaration(), arguments in arguments()) {
        prop_assume!(keeps_to_enums(&declaration, &arguments));
        let Some(tool) = tool(&declaration) else { return Ok(()) };
        let judged = call(&tool, &arguments).0;
        prop_assert!(!judged.risks.is_empty());
        prop_assert!(
            judged.risks.is_subset_of(tool.classification.possible_risks),
            "{judged:?} of {:?}", tool.classification
        );
    }

    #[test]
    fn what_no_argument_can_change_is_the_same_for_every_call(
        declaration in declaration(), arguments in arguments()
    ) {
        prop_assume!(keeps_to_enums(&declaration, &arguments));
        let Some(tool) = tool(&declaration) else { return Ok(()) };
        let (own, judged) = (&tool.classification, call(&tool, &arguments).0);
        prop_assert_eq!((own.family, &own.tags, own.source), (judged.family, &judged.tags, judged.source));
        if own.possible_risks == own.risks && own.risks.iter().count() == 1 {
            prop_assert_eq!(own, &judged);
        }
    }

    #[test]
    fn a_plain_read_is_what_it_is_said_to_be(declaration in declaration(), arguments in arguments()) {
        let Some(tool) = tool(&declaration) else { return Ok(()) };
        let own = &tool.classification;
        let read = RiskSet::of(Risk::Read);
        prop_assert_eq!(
            own.plain_read,
            own.possible_risks == read && own.access == Access::Read && own.family == Family::Named
        );
        let judged = call(&tool, &arguments).0;
        if judged.plain_read {
            prop_assert_eq!((judged.risks, judged.access), (read, Access::Read));
            prop_assert!(tool.annotations.read_only != Some(false) && tool.annotations.destructive != Some(true));
        }
        if own.plain_read {
            let empty = call(&tool, &json!({})).0;
            prop_assert!(empty.plain_read, "{empty:?}");
        }
    }

    #[test]
    fn one_more_signal_of_writing_never_makes_a_read(declaration in declaration(), verb in 0..WRITES.len()) {
        let Some(before) = tool(&declaration) else { return Ok(()) };
        for (pointer, value) in [
            ("/annotations/readOnlyHint", json!(false)),
            ("/annotations/destructiveHint", json!(true)),
            ("/name", json!(format!("{}_{}", declaration["name"].as_str().unwrap(), WRITES[verb]))),
        ] {
            let mut more = declaration.clone();
            *more.pointer_mut(pointer).unwrap() = value;
            let Some(after) = tool(&more) else { continue };
            prop_assert!(!after.classification.plain_read, "{pointer}: {:?}", after.classification);
            if before.classification.source == RiskSource::Inferred && pointer != "/name" {
                prop_assert_eq!(after.classification.access, Access::Write);
            }
        }
    }

    #[test]
    fn leaving_an_action_out_is_no_milder_than_any_declared_one(
        declaration in declaration(), name in prop::sample::select(vec!["action", "operation", "subCommand", "mode"]),
        values in vec(text(), 1..4), picked in 0..4usize,
    ) {
        let mut declaration = declaration;
        declaration["inputSchema"]["properties"] = json!({name: {"enum": values}});
        let Some(tool) = tool(&declaration) else { return Ok(()) };
        let given = call(&tool, &json!({name: values[picked % values.len()]})).0.risks;
        let absent = call(&tool, &json!({})).0.risks;
        prop_assert!(given.gravest() <= absent.gravest(), "{given:?} {absent:?}");
    }

    #[test]
    fn a_name_with_a_hidden_character_says_nothing(name in tool_name(), at in 0..20usize) {
        let mut letters: Vec<char> = name.chars().collect();
        letters.insert(at.min(letters.len()), '\u{200b}');
        let name: String = letters.into_iter().collect();
        let Some(tool) = tool(&json!({"name": name, "annotations": {"readOnlyHint": true}})) else { return Ok(()) };
        prop_assert_eq!(tool.classification.access, Access::Unknown);
        prop_assert_eq!(tool.classification.risk, Risk::Unknown);
    }

    #[test]
    fn any_json_is_judged_without_a_panic(bytes in "\\PC{0,200}", arguments in arguments()) {
        let name: String = bytes.chars().take(20).collect();
        if let Some(tool) = tool(&json!({"name": name, "description": bytes, "inputSchema": {"properties": arguments}})) {
            call(&tool, &arguments);
        }
        call(&Tool::host("process".parse().unwrap()), &arguments);
        if let Ok(tool) = Tool::named(&bytes) {
            call(&tool, &arguments);
        }
    }
}
