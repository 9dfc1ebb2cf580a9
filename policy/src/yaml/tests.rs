use std::sync::Arc;

use super::*;

fn one(text: &str) -> Value {
    let mut documents = load("t.yaml", text).unwrap();
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

fn problems(text: &str) -> Vec<String> {
    load("t.yaml", text)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn values_know_their_place_and_their_way() {
    let value = one("rules:\n  - tools: [\"a\", b]\n    action: allow\n");
    let rule = &value.get("rules").unwrap().as_seq().unwrap()[0];
    let action = rule.get("action").unwrap();
    assert_eq!(action.mark(), Mark { line: 3, column: 13 });
    assert_eq!(action.path(), "rules[0].action");
    assert_eq!(
        rule.as_map().unwrap().entries()[1].mark,
        Mark { line: 3, column: 5 }
    );
}

#[test]
fn a_long_key_is_not_repeated_in_the_path_of_each_value_below_it() {
    let value = one(&format!("? {}\n: [1, {{a: [2]}}]\n", "k".repeat(5000)));
    let list = value.as_map().unwrap().entries()[0].value.clone();
    let elements = list.as_seq().unwrap();
    assert!(Arc::ptr_eq(&list.path, &elements[0].path));
    assert!(Arc::ptr_eq(&list.path, &elements[1].get("a").unwrap().path));
}

#[test]
fn several_documents_are_read_in_order() {
    let documents = load("t.yaml", "a: 1\n---\nb: 2\n").unwrap();
    assert_eq!(documents.len(), 2);
    assert!(load("t.yaml", "# nothing\n").unwrap().iter().all(Value::is_null));
}

#[test]
fn plain_scalars_have_their_core_schema_types() {
    let value = one("[1, -1.50, 1e2, +7, .5, 0x1f, 0o17, true, yes, ~, '1', !!str 1, .nan, 1.2.3, 12ab, .]");
    let found: Vec<String> = value
        .as_seq()
        .unwrap()
        .iter()
        .map(|element| match element.node() {
            Node::Number(text) => format!("n{text}"),
            Node::String(text) => format!("s{text}"),
            other => format!("{other:?}"),
        })
        .collect();
    let expected = [
        "n1",
        "n-1.50",
        "n1e2",
        "n7",
        "n0.5",
        "n31",
        "n15",
        "Bool(true)",
        "syes",
        "Null",
        "s1",
        "s1",
        "NotFinite(\".nan\")",
        "s1.2.3",
        "s12ab",
        "s.",
    ];
    assert_eq!(found, expected);
}

#[test]
fn numbers_keep_every_digit() {
    assert_eq!(
        one("9007199254740993.000000000000000001").as_number(),
        Some("9007199254740993.000000000000000001")
    );
}

#[test]
fn ambiguous_octal_numbers_are_refused() {
    assert_eq!(
        problems("mode: 0600"),
        [
            "t.yaml:1:7 the number 0600 starts with 0, which is octal to some readers; write it without the leading 0, or in quotes"
        ]
    );
}

#[test]
fn duplicate_keys_and_merge_keys_are_refused_together() {
    let found = problems("a: 1\nb: 2\na: 3\n<<: {c: 1}\n");
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[0],
        "t.yaml:3:1 key \"a\" is given twice; the first one is on line 1"
    );
    assert!(found[1].contains("merge keys"));
}

#[test]
fn syntax_errors_name_their_place() {
    let found = problems("a: [1\nb: 2\n");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("t.yaml:2:") && found[0].contains("not valid YAML"),
        "{found:?}"
    );
}

#[test]
fn aliases_are_expanded_within_a_budget() {
    let value = one("a: &x [1, 2]\nb: *x\n");
    assert_eq!(value.get("b").unwrap().as_seq().unwrap().len(), 2);
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(problems(&bomb)[0].contains("more than"));
    assert!(problems("a: &x [*x]\n")[0].contains("alias"));
}

#[test]
fn nesting_is_bounded() {
    assert!(problems(&"[".repeat(2000))[0].contains("not valid YAML"));
    assert!(problems(&"[".repeat(100))[0].contains("nested deeper"));
    assert!(problems(&format!("a: {}", "{a: ".repeat(200)))[0].contains("nested deeper"));
}

#[test]
fn keys_must_be_strings() {
    assert!(problems("? [a]\n: 1\n")[0].contains("a key must be a string"));
}

#[test]
fn readers_report_unknown_missing_and_mistyped_keys_at_once() {
    let value = one("nmae: x\nport: high\n");
    let problems = Problems::new("t.yaml");
    let reader = MapReader::new(&value, "a server", &problems).unwrap();
    reader.required("name");
    reader.unsigned("port");
    reader.finish();
    let found: Vec<String> = problems.into_vec().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "t.yaml:1:1 a server needs the key \"name\"",
            "t.yaml:1:1 unknown key \"nmae\" in a server; did you mean \"name\"?",
            "t.yaml:2:7 port: expected a whole number from 0, found the string \"high\"",
        ]
    );
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(3_000))]

    #[test]
    fn any_text_is_read_or_refused(text in "[a-c0-9:\\-&*!|>\\[\\]{},'\"#?%@\n \t\u{feff}é~<]{0,60}") {
        use crate::document::{Lists, Source};
        for text in [text.clone(), format!("name: p\nagent: a\nrules:\n  - {text}\n")] {
            match crate::Policy::parse_all("t.yaml", &text, &Source::Api, &Lists::none()) {
                Ok(_) => {}
                Err(problems) => proptest::prop_assert!(!problems.is_empty()),
            }
        }
    }
}
