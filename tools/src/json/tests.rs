use std::fmt::Write as _;

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::*;

const LIMITS: Limits = Limits::MESSAGE;

fn parse(text: &str) -> Result<Document<'_>, JsonError> {
    Document::parse(text.as_bytes(), LIMITS)
}

fn kind_of(text: &str) -> JsonErrorKind {
    parse(text).unwrap_err().kind
}

fn canonical_text(text: &str) -> String {
    String::from_utf8(canonical(parse(text).unwrap().root())).unwrap()
}

#[test]
fn values_keep_their_exact_bytes() {
    let text = r#" {"a" : [ 1.50e3 , {"b":"x\ny"} ], "c": true , "d":null} "#;
    let document = parse(text).unwrap();
    let root = document.root();
    assert_eq!(root.raw(), text.trim().as_bytes());
    let elements: Vec<_> = root.get("a").unwrap().elements().collect();
    assert_eq!(elements[0].number_text(), Some("1.50e3"));
    assert_eq!(elements[1].raw(), br#"{"b":"x\ny"}"#);
    assert_eq!(elements[1].get("b").unwrap().as_str().unwrap(), "x\ny");
    assert_eq!(root.get("c").unwrap().as_bool(), Some(true));
    assert!(root.get("d").unwrap().is_null());
    assert!(root.get("e").is_none());
    let keys: Vec<_> = root.members().map(|(key, _)| key.into_owned()).collect();
    assert_eq!(keys, ["a", "c", "d"]);
    assert_eq!((root.len(), elements.len()), (3, 2));
}

#[test]
fn duplicate_keys_are_refused_also_when_one_is_escaped() {
    let error = parse(r#"{"a":1,"b":{"a":2},"\u0061":3}"#).unwrap_err();
    assert_eq!((error.offset, error.kind), (19, JsonErrorKind::DuplicateKey));
    assert!(parse(r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#).is_ok());
}

#[test]
fn duplicate_keys_are_found_in_large_objects() {
    let mut text = String::from("{");
    for number in 0..100_000 {
        write!(text, "\"key{number}\":{number},").unwrap();
    }
    let unique = format!("{text}\"last\":0}}");
    assert_eq!(parse(&unique).unwrap().root().len(), 100_001);
    assert_eq!(
        kind_of(&format!("{text}\"key5\":0}}")),
        JsonErrorKind::DuplicateKey
    );
}

#[test]
fn nesting_is_refused_beyond_the_limit_and_never_overflows() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(&nested(64)).is_ok());
    assert_eq!(kind_of(&nested(65)), JsonErrorKind::TooDeep { limit: 64 });
    let huge = Limits {
        max_bytes: usize::MAX,
        max_depth: usize::MAX,
    };
    let text = nested(1_000_000);
    assert!(Document::parse(text.as_bytes(), huge).is_err());
}

#[test]
fn sizes_beyond_the_limit_are_refused() {
    let limits = Limits {
        max_bytes: 4,
        max_depth: 4,
    };
    assert!(Document::parse(b"1234", limits).is_ok());
    let error = Document::parse(b"12345", limits).unwrap_err();
    assert_eq!(error.kind, JsonErrorKind::TooLarge { limit: 4 });
}

#[test]
fn surrogates_must_come_in_pairs() {
    assert_eq!(parse(r#""\ud83d\ude00""#).unwrap().root().as_str().unwrap(), "😀");
    for text in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx""#, r#""\ud83d\u0041""#] {
        assert_eq!(kind_of(text), JsonErrorKind::LoneSurrogate, "{text}");
    }
}

#[test]
fn malformed_text_is_refused_with_its_place() {
    for (text, offset) in [
        ("", 0),
        ("{", 1),
        ("[1,]", 3),
        ("{\"a\" 1}", 5),
        ("{\"a\":1,}", 7),
        ("[1 2]", 3),
        ("tru", 0),
        ("\"a\nb\"", 2),
        ("\"a\\x\"", 2),
        ("01", 0),
        ("1 1", 2),
        ("{a:1}", 1),
        ("[}", 1),
        ("\u{feff}1", 0),
    ] {
        assert_eq!(parse(text).unwrap_err().offset, offset, "{text:?}");
    }
    assert_eq!(
        Document::parse(b"\"\xff\"", LIMITS).unwrap_err().kind,
        JsonErrorKind::InvalidUtf8
    );
}

#[test]
fn canonical_json_orders_keys_by_utf16_and_keeps_numbers_exact() {
    let text = r#"{"\ue000":1,"😀":2,"b":9007199254740993,"a":[1e2,-0,"\u0041\/\u001f\""],"":{}}"#;
    assert_eq!(
        canonical_text(text),
        "{\"\":{},\"a\":[100,0,\"A/\\u001f\\\"\"],\"b\":9007199254740993,\"😀\":2,\"\u{e000}\":1}"
    );
}

#[test]
fn a_large_message_is_parsed() {
    let text = format!(
        "{{\"a\":\"{}\",\"b\":[{}0]}}",
        "x".repeat(8 << 20),
        "0,".repeat(3 << 20)
    );
    let document = parse(&text).unwrap();
    assert_eq!(document.root().get("b").unwrap().len(), (3 << 20) + 1);
}

/// Text that is JSON, or nearly.
fn nearly_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[0-9]{1,20}(\\.[0-9]{0,5})?([eE][+-]?[0-9]{0,2})?",
        "\"([a-c]|\\\\[\"\\\\/bfnrtux]|\\\\u[0-9a-fD-]{4}|\\\\ud83d\\\\ude00|[\u{1}-\u{9f}]|é|😀)*\"",
        "[\\[\\]{}:,\" a0]{0,3}",
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(("[a-d]{1,2}", inner), 0..5).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_serde_json_accepts_is_accepted_unless_keys_repeat(text in nearly_json()) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match (parse(&text), theirs) {
            (Ok(document), Ok(value)) => {
                let again: serde_json::Value = serde_json::from_slice(document.root().raw()).unwrap();
                prop_assert_eq!(again, value);
            }
            (Err(error), Ok(_)) => prop_assert_eq!(error.kind, JsonErrorKind::DuplicateKey),
            (Ok(_), Err(error)) => prop_assert!(error.to_string().contains("out of range"), "{}", error),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_are_json_when_accepted(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(document) = Document::parse(&bytes, LIMITS) {
            prop_assert!(serde_json::from_slice::<IgnoredAny>(&bytes).is_ok());
            canonical(document.root());
        }
    }

    #[test]
    fn canonical_json_is_idempotent_and_means_the_same(text in nearly_json()) {
        if let Ok(document) = parse(&text) {
            let once = canonical_text(&text);
            prop_assert_eq!(&canonical_text(&once), &once);
            let (ours, theirs) = (serde_json::from_str::<serde_json::Value>(&once), serde_json::from_str(&text));
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                // Numbers are compared by our exact text: the other reader rounds them.
                prop_assert_eq!(strip_numbers(ours), strip_numbers(theirs));
            }
            prop_assert!(document.root().raw().len() <= text.len());
        }
    }

    #[test]
    fn canonical_json_does_not_depend_on_key_order(
        keys in prop::collection::btree_set("[a-zé😀\u{e000}]{0,3}", 1..12).prop_flat_map(|keys| {
            let keys: Vec<_> = keys.into_iter().collect();
            (Just(keys.clone()), Just(keys).prop_shuffle())
        }),
    ) {
        let object = |keys: &[String]| {
            let members: Vec<_> = keys.iter().map(|key| format!("{}:{}", serde_json::to_string(key).unwrap(), key.len())).collect();
            canonical_text(&format!("{{{}}}", members.join(",")))
        };
        prop_assert_eq!(object(&keys.0), object(&keys.1));
    }

    #[test]
    fn big_integers_stay_exact(value: i128) {
        let document = format!("[{value}]");
        let document = parse(&document).unwrap();
        let number = document.root().elements().next().unwrap().number().unwrap();
        prop_assert_eq!(number, value.to_string().parse().unwrap());
    }
}

fn strip_numbers(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(_) => serde_json::Value::Null,
        serde_json::Value::Array(items) => items.into_iter().map(strip_numbers).collect(),
        serde_json::Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| (key, strip_numbers(value)))
            .collect(),
        other => other,
    }
}
