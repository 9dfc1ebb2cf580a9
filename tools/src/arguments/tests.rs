use super::*;

fn check(schema: &str, arguments: &str) -> Result<(), ArgumentError> {
    let document = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
    ArgumentCheck::compile(schema)
        .unwrap_or_else(|error| panic!("{schema}: {error}"))
        .check(Some(document.root()))
}

fn told(schema: &str, arguments: &str) -> String {
    check(schema, arguments).unwrap_err().to_string()
}

/// Keyword, schema, what fits, what does not.
const CASES: &[(&str, &[&str], &[&str])] = &[
    ("true", &["1", "null"], &[]),
    ("false", &[], &["1", "{}"]),
    (
        r#"{"type":"integer"}"#,
        &["1", "1.0", "1e2", "-0"],
        &["1.5", "\"1\"", "1e-1", "null"],
    ),
    (
        r#"{"type":["string","null"]}"#,
        &["\"\"", "null"],
        &["1", "[]", "false"],
    ),
    (r#"{"type":"number"}"#, &["1", "1.5"], &["\"1\"", "true"]),
    (
        r#"{"enum":["a",1,{"b":[2]}]}"#,
        &["\"a\"", "1.0", r#"{"b":[2.0]}"#],
        &["\"A\"", "2", "null"],
    ),
    (r#"{"const":null}"#, &["null"], &["0", "\"\""]),
    // 2^53 + 1 is not 2^53.
    (
        r#"{"maximum":9007199254740992}"#,
        &["9007199254740992", "\"x\""],
        &["9007199254740993"],
    ),
    (r#"{"minimum":0.1}"#, &["0.1", "1"], &["0.09999999999999999999"]),
    (r#"{"exclusiveMinimum":0}"#, &["0.0001"], &["0", "-1"]),
    (r#"{"exclusiveMaximum":5}"#, &["4.99"], &["5", "5.0"]),
    (
        r#"{"multipleOf":0.01}"#,
        &["0.07", "19.99", "3", "0", "1e300"],
        &["0.005", "1.001"],
    ),
    (r#"{"multipleOf":3}"#, &["9", "-3", "3e5"], &["10", "1e5", "0.3"]),
    (
        r#"{"minLength":2,"maxLength":3}"#,
        &["\"äö\"", "\"abc\"", "1"],
        &["\"a\"", "\"abcd\""],
    ),
    (
        r#"{"pattern":"^\\d{3}-[A-Z]+$"}"#,
        &["\"123-AB\""],
        &["\"123-ab\"", "\"x123-AB\"", "\"١٢٣-AB\""],
    ),
    (r#"{"pattern":"^[\\/\\u0041[]+$"}"#, &["\"/A[\""], &["\"B\""]),
    (
        r#"{"items":{"type":"string"}}"#,
        &["[]", "[\"a\"]", "{}"],
        &["[1]", "[\"a\",null]"],
    ),
    (
        r#"{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}"#,
        &["[\"a\",1,2]", "[]"],
        &["[1]", "[\"a\",\"b\"]"],
    ),
    (
        r#"{"minItems":1,"maxItems":2}"#,
        &["[1]", "[1,2]"],
        &["[]", "[1,2,3]"],
    ),
    (
        r#"{"uniqueItems":true}"#,
        &["[1,2,\"1\"]"],
        &["[1,1.0]", r#"[{"a":1,"b":2},{"b":2,"a":1}]"#],
    ),
    (
        r#"{"contains":{"const":1},"maxContains":2}"#,
        &["[1]", "[0,1,1]"],
        &["[]", "[0]", "[1,1,1]"],
    ),
    (r#"{"contains":{"const":1},"minContains":0}"#, &["[]"], &[]),
    (
        r#"{"properties":{"a":{"type":"integer"}},"required":["a"]}"#,
        &[r#"{"a":1}"#, r#"{"a":1,"b":2}"#],
        &["{}", r#"{"a":"x"}"#],
    ),
    (
        r#"{"properties":{"a":{}},"additionalProperties":false}"#,
        &["{}", r#"{"a":1}"#],
        &[r#"{"b":1}"#],
    ),
    (
        r#"{"additionalProperties":{"type":"string"}}"#,
        &[r#"{"b":"x"}"#],
        &[r#"{"b":1}"#],
    ),
    (
        r#"{"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}"#,
        &[r#"{"x-a":"1"}"#],
        &[r#"{"x-a":1}"#, r#"{"y":"1"}"#],
    ),
    (
        r#"{"propertyNames":{"maxLength":2}}"#,
        &[r#"{"ab":1}"#],
        &[r#"{"abc":1}"#],
    ),
    (
        r#"{"minProperties":1,"maxProperties":1}"#,
        &[r#"{"a":1}"#],
        &["{}", r#"{"a":1,"b":2}"#],
    ),
    (
        r#"{"dependentRequired":{"a":["b"]}}"#,
        &["{}", r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#],
    ),
    (
        r#"{"dependentSchemas":{"a":{"required":["b"]}}}"#,
        &["{}", r#"{"a":1,"b":1}"#],
        &[r#"{"a":1}"#],
    ),
    (r#"{"allOf":[{"minimum":1},{"maximum":3}]}"#, &["2"], &["0", "4"]),
    (
        r#"{"anyOf":[{"type":"string"},{"minimum":5}]}"#,
        &["\"a\"", "5"],
        &["4"],
    ),
    (
        r#"{"oneOf":[{"type":"integer"},{"minimum":5}]}"#,
        &["4", "5.5"],
        &["5", "1.5"],
    ),
    (r#"{"not":{"type":"null"}}"#, &["1"], &["null"]),
    (
        r#"{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}"#,
        &[r#"{"a":1,"b":1}"#, r#"{"c":1}"#],
        &[r#"{"a":1}"#, "{}"],
    ),
    (
        r##"{"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"string"}}}"##,
        &["\"x\""],
        &["1"],
    ),
    (
        r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"n":{"type":"integer"}}}}}"##,
        &[r#"{"next":{"next":{"n":1}}}"#],
        &[r#"{"next":{"next":{"n":"1"}}}"#],
    ),
    (
        r#"{"title":"x","description":"y","default":1,"examples":[2],"format":"uuid","x-thing":{"type":3}}"#,
        &["\"no uuid\"", "1"],
        &[],
    ),
];

#[test]
fn every_keyword_accepts_what_fits_and_refuses_what_does_not() {
    for (schema, fitting, others) in CASES {
        for value in *fitting {
            assert_eq!(check(schema, value), Ok(()), "{schema} {value}");
        }
        for value in *others {
            assert!(
                matches!(check(schema, value), Err(ArgumentError::Mistakes(_))),
                "{schema} {value}"
            );
        }
    }
}

#[test]
fn a_message_says_where_what_was_expected_and_what_kind_was_found_but_never_the_value() {
    let schema = r#"{"type":"object","required":["id","mode"],"additionalProperties":false,"properties":{
        "id":{"type":"integer"},"mode":{"enum":["fast","slow"]},
        "tags":{"type":"array","items":{"type":"string","maxLength":3}}}}"#;
    assert_eq!(
        told(schema, r#"{"id":"hunter2","tags":["ok","secret"],"other":1}"#),
        "the arguments: expected the property \"mode\", which is missing; \
         /id: expected integer, found a string of 7 characters; \
         /tags/1: expected a string of at most 3 characters, found a string of 6 characters; \
         /other: expected one of the properties id, mode, tags, found another name"
    );
    assert_eq!(
        told(schema, r#"{"id":1,"mode":"hunter2"}"#),
        "/mode: expected one of \"fast\", \"slow\", found a string of 7 characters"
    );
    let alternatives = r#"{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a","b"]},
        {"type":"object","properties":{"a":{"type":"string"}}}]}"#;
    assert_eq!(
        told(alternatives, r#"{"a":true}"#),
        "/a: expected string, found a boolean"
    );
}

#[test]
fn a_message_is_short_whatever_is_wrong() {
    let many: Vec<String> = (0..1000)
        .map(|at| format!("\"k{at}{}\":1", "x".repeat(500)))
        .collect();
    let message = told(
        r#"{"additionalProperties":{"type":"string"}}"#,
        &format!("{{{}}}", many.join(",")),
    );
    assert!(message.len() < 1500 && message.ends_with("and more"), "{message}");
}

#[test]
fn a_schema_that_is_not_understood_is_refused() {
    for schema in [
        "3",
        "[]",
        r#"{"type":"text"}"#,
        r#"{"type":3}"#,
        r#"{"enum":3}"#,
        r#"{"minimum":"1"}"#,
        r#"{"minLength":-1}"#,
        r#"{"multipleOf":0}"#,
        r#"{"pattern":"(?=a)"}"#,
        r#"{"pattern":"("}"#,
        r#"{"properties":[]}"#,
        r#"{"properties":{"a":1}}"#,
        r#"{"required":"a"}"#,
        r#"{"allOf":{}}"#,
        r#"{"unevaluatedProperties":false}"#,
        r##"{"$ref":"#/nowhere"}"##,
        r#"{"$ref":"https://example.com/schema.json"}"#,
        r#"{"$ref":"other.json"}"#,
        r#"{"a":1,"a":2}"#,
    ] {
        assert!(ArgumentCheck::compile(schema).is_err(), "{schema}");
    }
}

#[test]
fn a_check_ends_whatever_schema_and_arguments_are() {
    let cyclic = r##"{"allOf":[{"$ref":"#"}]}"##;
    assert_eq!(check(cyclic, "1"), Err(ArgumentError::TooComplex));
    // Each level tries both alternatives: 2^60 ways.
    let filter = r##"{"$ref":"#/$defs/f","$defs":{"f":{"anyOf":[
        {"type":"object","properties":{"x":{"$ref":"#/$defs/f"}},"required":["and"]},
        {"type":"object","properties":{"x":{"$ref":"#/$defs/f"}},"required":["or"]}]}}}"##;
    let deep = format!("{}1{}", r#"{"x":"#.repeat(60), "}".repeat(60));
    assert!(check(filter, &deep).is_err());
    let doubling: Vec<String> = (0..40)
        .map(|at| {
            let next = format!("{{\"$ref\":\"#/$defs/d{}\"}}", at + 1);
            format!("\"d{at}\":{{\"allOf\":[{next},{next}]}}")
        })
        .collect();
    let schema = format!(
        "{{\"$ref\":\"#/$defs/d0\",\"$defs\":{{{},\"d40\":{{}}}}}}",
        doubling.join(",")
    );
    assert_eq!(check(&schema, "1"), Err(ArgumentError::TooComplex));
    let chain: Vec<String> = (0..20_000)
        .map(|at| format!("\"c{at}\":{{\"$ref\":\"#/$defs/c{}\"}}", at + 1))
        .collect();
    let schema = format!(
        "{{\"$ref\":\"#/$defs/c0\",\"$defs\":{{{},\"c20000\":{{}}}}}}",
        chain.join(",")
    );
    if let Ok(check) = ArgumentCheck::compile(&schema) {
        let one = Document::parse(b"1", Limits::ARGUMENTS).unwrap();
        assert_eq!(check.check(Some(one.root())), Err(ArgumentError::TooComplex));
    }
}

#[test]
fn absent_arguments_are_an_empty_object() {
    let needs = ArgumentCheck::compile(r#"{"type":"object","required":["a"]}"#).unwrap();
    assert!(needs.check(None).is_err());
    let needs_none = ArgumentCheck::compile(r#"{"type":"object"}"#).unwrap();
    assert_eq!(needs_none.check(None), Ok(()));
}
