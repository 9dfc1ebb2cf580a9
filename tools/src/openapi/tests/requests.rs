use super::*;

const ID: &str = r#"{"id":"a b&c"}"#;
const LIST: &str = r#"{"id":["red","b,c",3]}"#;
const OBJECT: &str = r#"{"id":{"R":100,"g h":"x=y"}}"#;

fn parameter(version: &str, place: &str, more: &str) -> ImportedTool {
    let path = if place == "path" { "/x/{id}" } else { "/x" };
    let (schema, required) = match version {
        "2.0" => ("\"type\":\"array\",\"items\":{\"type\":\"string\"}", ""),
        _ => ("\"schema\":{}", ""),
    };
    let required = if place == "path" {
        "\"required\":true,"
    } else {
        required
    };
    let operation = format!(r#"{{"parameters":[{{"name":"id","in":"{place}",{required}{schema}{more}}}]}}"#);
    one(&document(version, path, "get", &operation))
}

#[test]
fn every_style_of_openapi_3_is_written_as_it_says() {
    let path: &[(&str, [&str; 3])] = &[
        ("", ["/x/a%20b%26c", "/x/red,b%2Cc,3", "/x/R,100,g%20h,x%3Dy"]),
        (
            r#","explode":true"#,
            ["/x/a%20b%26c", "/x/red,b%2Cc,3", "/x/R=100,g%20h=x%3Dy"],
        ),
        (
            r#","style":"label""#,
            ["/x/.a%20b%26c", "/x/.red,b%2Cc,3", "/x/.R,100,g%20h,x%3Dy"],
        ),
        (
            r#","style":"label","explode":true"#,
            ["/x/.a%20b%26c", "/x/.red.b%2Cc.3", "/x/.R=100.g%20h=x%3Dy"],
        ),
        (
            r#","style":"matrix""#,
            [
                "/x/;id=a%20b%26c",
                "/x/;id=red,b%2Cc,3",
                "/x/;id=R,100,g%20h,x%3Dy",
            ],
        ),
        (
            r#","style":"matrix","explode":true"#,
            [
                "/x/;id=a%20b%26c",
                "/x/;id=red;id=b%2Cc;id=3",
                "/x/;R=100;g%20h=x%3Dy",
            ],
        ),
    ];
    let query: &[(&str, [&str; 3])] = &[
        (
            "",
            [
                "/x?id=a%20b%26c",
                "/x?id=red&id=b%2Cc&id=3",
                "/x?R=100&g%20h=x%3Dy",
            ],
        ),
        (
            r#","explode":false"#,
            ["/x?id=a%20b%26c", "/x?id=red,b%2Cc,3", "/x?id=R,100,g%20h,x%3Dy"],
        ),
        (
            r#","style":"spaceDelimited""#,
            [
                "/x?id=a%20b%26c",
                "/x?id=red%20b%2Cc%203",
                "/x?id=R%20100%20g%20h%20x%3Dy",
            ],
        ),
        (
            r#","style":"pipeDelimited""#,
            [
                "/x?id=a%20b%26c",
                "/x?id=red%7Cb%2Cc%7C3",
                "/x?id=R%7C100%7Cg%20h%7Cx%3Dy",
            ],
        ),
        (
            r#","style":"deepObject","explode":true"#,
            [
                "/x?id=a%20b%26c",
                "/x?id%5B0%5D=red&id%5B1%5D=b%2Cc&id%5B2%5D=3",
                "/x?id%5BR%5D=100&id%5Bg%20h%5D=x%3Dy",
            ],
        ),
        (
            r#","allowReserved":true"#,
            ["/x?id=a%20b%26c", "/x?id=red&id=b,c&id=3", "/x?R=100&g%20h=x%3Dy"],
        ),
        (
            r#","content":{"application/json":{}}"#,
            [
                "/x?id=%22a%20b%26c%22",
                "/x?id=%5B%22red%22%2C%22b%2Cc%22%2C3%5D",
                "/x?id=%7B%22R%22%3A100%2C%22g%20h%22%3A%22x%3Dy%22%7D",
            ],
        ),
    ];
    for (place, styles) in [("path", path), ("query", query)] {
        for (style, written) in styles {
            for version in ["3.0", "3.1"] {
                let tool = parameter(version, place, style);
                for (arguments, expected) in [ID, LIST, OBJECT].iter().zip(written) {
                    let request = built(&tool, arguments).unwrap();
                    assert_eq!(request.path_and_query, *expected, "{version} {place} {style}");
                }
            }
        }
    }
    for (style, object) in [("", "R,100,g h,x=y"), (r#","explode":true"#, "R=100,g h=x=y")] {
        let tool = parameter("3.1", "header", style);
        let header = |arguments| built(&tool, arguments).unwrap().headers;
        assert_eq!(header(ID), [("id".to_owned(), "a b&c".to_owned())]);
        assert_eq!(header(LIST), [("id".to_owned(), "red,b,c,3".to_owned())]);
        assert_eq!(header(OBJECT), [("id".to_owned(), object.to_owned())]);
    }
    let tool = parameter("3.0", "cookie", "");
    let cookie = built(&tool, ID).unwrap().headers;
    assert_eq!(cookie, [("cookie".to_owned(), "id=a%20b%26c".to_owned())]);
}

#[test]
fn every_collection_format_of_swagger_is_written_as_it_says() {
    let list = r#"{"id":["red","b,c"]}"#;
    for (place, format, written) in [
        ("query", "csv", "/x?id=red,b%2Cc"),
        ("query", "ssv", "/x?id=red%20b%2Cc"),
        ("query", "tsv", "/x?id=red%09b%2Cc"),
        ("query", "pipes", "/x?id=red%7Cb%2Cc"),
        ("query", "multi", "/x?id=red&id=b%2Cc"),
        ("path", "csv", "/x/red,b%2Cc"),
    ] {
        let tool = parameter("2.0", place, &format!(r#","collectionFormat":"{format}""#));
        assert_eq!(
            built(&tool, list).unwrap().path_and_query,
            written,
            "{place} {format}"
        );
    }
}

#[test]
fn numbers_keep_every_digit() {
    let tool = parameter("3.1", "query", "");
    for (number, written) in [
        ("12345678901234567890123", "12345678901234567890123"),
        ("1e2", "100"),
        ("1.0", "1"),
        ("0.10000000000000000001", "0.10000000000000000001"),
        ("-0.5", "-0.5"),
        ("true", "true"),
    ] {
        let request = built(&tool, &format!("{{\"id\":{number}}}")).unwrap();
        assert_eq!(request.path_and_query, format!("/x?id={written}"));
    }
    assert_eq!(built(&tool, r#"{"id":null}"#).unwrap().path_and_query, "/x");
    assert_eq!(built(&tool, r#"{"id":[]}"#).unwrap().path_and_query, "/x");
    assert_eq!(built(&tool, "{}").unwrap().path_and_query, "/x");
}

#[test]
fn no_argument_changes_the_path() {
    for style in ["", r#","style":"label""#, r#","style":"matrix","explode":true"#] {
        let tool = parameter("3.1", "path", style);
        for hostile in [
            "",
            ".",
            "..",
            "a/b",
            "../a",
            "a\\b",
            "..\\",
            "%2f",
            "a%2Fb",
            "%2e%2e",
            "%2E",
            "%252f",
            "%25252e%25252e",
            "%5c",
            "%00",
            "\\u0000",
            "a\\nb",
            "\\r\\nHost: evil",
            "\\u007f",
            "%0d%0a",
            "%252525252f",
        ] {
            let text = if hostile.contains("\\u") || hostile.contains("\\n") || hostile.contains("\\r") {
                format!("\"{hostile}\"")
            } else {
                serde_json::Value::from(hostile).to_string()
            };
            for arguments in [
                format!("{{\"id\":{text}}}"),
                format!("{{\"id\":[\"a\",{text}]}}"),
                format!("{{\"id\":{{\"k\":{text}}}}}"),
            ] {
                assert!(built(&tool, &arguments).is_err(), "{style} {arguments}");
            }
        }
        for nothing in ["[]", "{}", "[null]", "null"] {
            assert!(built(&tool, &format!("{{\"id\":{nothing}}}")).is_err());
        }
        for fine in [
            "%", "100%", "a.b", "...", "a..b", "?x=y#z", "ü €", "@host:80", "%zz",
        ] {
            let arguments = format!("{{\"id\":{}}}", serde_json::Value::from(fine));
            let request = built(&tool, &arguments).unwrap();
            assert!(
                !request.path_and_query.contains(['?', '#', '@'])
                    && request.path_and_query.starts_with("/x/"),
                "{request:?}"
            );
        }
    }
    let two = one(&document(
        "3.1",
        "/x/{a}{b}",
        "get",
        r#"{"parameters":[
        {"name":"a","in":"path","required":true,"schema":{}},{"name":"b","in":"path","required":true,"schema":{}}]}"#,
    ));
    assert!(
        built(&two, r#"{"a":"a","b":"."}"#).is_err(),
        "a dot alone is refused"
    );
    let dotted = one(&document(
        "3.1",
        "/x/.{a}",
        "get",
        r#"{"parameters":[{"name":"a","in":"path","required":true,"schema":{}}]}"#,
    ));
    assert!(built(&dotted, r#"{"a":"b"}"#).is_ok());
}

#[test]
fn no_argument_becomes_another_parameter() {
    let tool = one(&document(
        "3.1",
        "/x",
        "get",
        r#"{"parameters":[
        {"name":"filter","in":"query","schema":{"type":"object"}},
        {"name":"admin","in":"query","schema":{"type":"boolean"}},
        {"name":"q","in":"query","allowReserved":true,"schema":{"type":"string"}}]}"#,
    ));
    assert!(built(&tool, r#"{"filter":{"admin":"true"}}"#).is_err());
    assert_eq!(
        built(&tool, r#"{"filter":{"a&admin":"1"}}"#)
            .unwrap()
            .path_and_query,
        "/x?a%26admin=1"
    );
    assert_eq!(
        built(&tool, r#"{"q":"a/b?c&admin=true#x+y%"}"#)
            .unwrap()
            .path_and_query,
        "/x?q=a/b?c%26admin%3Dtrue%23x%2By%25"
    );
    assert!(built(&tool, r#"{"q":"a\u0000"}"#).is_err());
    let cookie = parameter("3.1", "cookie", "");
    assert_eq!(
        built(&cookie, r#"{"id":"a; admin=1"}"#).unwrap().headers[0].1,
        "id=a%3B%20admin%3D1"
    );
    let header = parameter("3.1", "header", "");
    for hostile in [
        r#""a\r\nX: y""#,
        r#""a\nb""#,
        r#""a\u0000""#,
        r#"["a","b\r\n"]"#,
        r#"{"a\r\n":"b"}"#,
    ] {
        assert!(
            built(&header, &format!("{{\"id\":{hostile}}}")).is_err(),
            "{hostile}"
        );
    }
}

#[test]
fn a_request_has_a_longest_size() {
    let long = "x".repeat(20_000);
    for place in ["path", "query", "header"] {
        let tool = parameter("3.1", place, "");
        assert!(
            built(&tool, &format!("{{\"id\":\"{long}\"}}")).is_err(),
            "{place}"
        );
    }
}

fn body(version: &str, media_type: &str, schema: &str, more: &str) -> ImportedTool {
    let operation = format!(
        r#"{{"requestBody":{{"required":true,"content":{{"{media_type}":{{"schema":{schema}{more}}}}}}}}}"#
    );
    one(&document(version, "/x", "post", &operation))
}

fn sent(tool: &ImportedTool, arguments: &str) -> (String, String) {
    let (media_type, bytes) = built(tool, arguments).unwrap().body.unwrap();
    (media_type, String::from_utf8(bytes).unwrap())
}

#[test]
fn a_json_body_keeps_what_it_was_given() {
    let object = r#"{"type":"object","properties":{"a":{},"b":{"type":"array"}}}"#;
    for version in ["3.0", "3.1"] {
        let tool = body(version, "application/vnd.x+json", object, "");
        assert_eq!(
            sent(
                &tool,
                r#"{"b": [1.00, 12345678901234567890],"a":{"k": "\u00e4"}}"#
            ),
            (
                "application/vnd.x+json".to_owned(),
                r#"{"a":{"k": "\u00e4"},"b":[1.00, 12345678901234567890]}"#.to_owned()
            )
        );
        assert_eq!(sent(&tool, "{}").1, "{}");
        let whole = body(
            version,
            "application/json",
            r#"{"type":"array","items":{"type":"integer"}}"#,
            "",
        );
        assert_eq!(sent(&whole, r#"{"body":[1, 2]}"#).1, "[1, 2]");
    }
    let swagger = one(&document(
        "2.0",
        "/x",
        "post",
        &format!(r#"{{"parameters":[{{"in":"body","name":"thing","required":true,"schema":{object}}}]}}"#),
    ));
    assert_eq!(
        sent(&swagger, r#"{"a":1}"#),
        ("application/json".to_owned(), r#"{"a":1}"#.to_owned())
    );
}

#[test]
fn a_form_is_written_field_by_field() {
    let object = r#"{"type":"object","properties":{"a":{},"list":{"type":"array","items":{}},"deep":{"type":"object"}}}"#;
    let tool = body("3.0", "application/x-www-form-urlencoded", object, "");
    assert_eq!(
        sent(&tool, r#"{"a":"x&y=z","list":[1,"b c"],"deep":{"k":[1]}}"#).1,
        "a=x%26y%3Dz&list=1&list=b%20c&deep=%7B%22k%22%3A%5B1%5D%7D"
    );
    let deep = body(
        "3.0",
        "application/x-www-form-urlencoded",
        object,
        r#","encoding":{"deep":{"style":"deepObject","explode":true},"list":{"style":"form","explode":false}}"#,
    );
    assert_eq!(
        sent(&deep, r#"{"list":[1,2],"deep":{"k":[{"x":1},2]}}"#).1,
        "list=1,2&deep%5Bk%5D%5B0%5D%5Bx%5D=1&deep%5Bk%5D%5B1%5D=2"
    );
    let swagger = one(&document(
        "2.0",
        "/x",
        "post",
        r#"{"parameters":[
        {"in":"formData","name":"a","type":"string","required":true},
        {"in":"formData","name":"b","type":"array","items":{"type":"string"},"collectionFormat":"multi"}]}"#,
    ));
    assert_eq!(
        sent(&swagger, r#"{"a":"1","b":["x","y"]}"#),
        (
            "application/x-www-form-urlencoded".to_owned(),
            "a=1&b=x&b=y".to_owned()
        )
    );
    assert_eq!(schema(&swagger)["required"], serde_json::json!(["a"]));
}

#[test]
fn a_message_of_parts_holds_texts_json_and_files() {
    let object = r#"{"type":"object","properties":{"note":{"type":"string"},"meta":{"type":"object"},
        "tags":{"type":"array","items":{"type":"string"}},"file":{"type":"string","format":"binary"}}}"#;
    let tool = body(
        "3.0",
        "multipart/form-data",
        object,
        r#","encoding":{"file":{"contentType":"image/png"}}"#,
    );
    let (media_type, text) = sent(
        &tool,
        r#"{"note":"hi\r\n--x","meta":{"a":1},"tags":["p","q"],"file":"aGVsbG8"}"#,
    );
    let boundary = media_type.strip_prefix("multipart/form-data; boundary=").unwrap();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 7, "{text}");
    assert!(parts[1].contains("name=\"note\"\r\n\r\nhi\r\n--x\r\n"));
    assert!(parts[2].contains("name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"a\":1}\r\n"));
    assert!(parts[3].contains("name=\"tags\"\r\n\r\np\r\n") && parts[4].contains("q\r\n"));
    assert!(parts[5].contains("filename=\"file\"\r\nContent-Type: image/png\r\n\r\nhello\r\n"));
    assert_eq!(parts[6], "--\r\n");
    assert!(built(&tool, r#"{"file":"no base64!"}"#).is_err());
    let swagger = one(&document(
        "2.0",
        "/x",
        "post",
        r#"{"consumes":["multipart/form-data"],"parameters":[
        {"in":"formData","name":"file","type":"file","required":true}]}"#,
    ));
    assert!(
        sent(&swagger, r#"{"file":"aGVsbG8="}"#)
            .1
            .contains("\r\n\r\nhello\r\n")
    );
}

#[test]
fn texts_and_bytes_are_sent_as_they_are() {
    let text = body("3.1", "text/plain", r#"{"type":"string"}"#, "");
    assert_eq!(
        sent(&text, r#"{"body":"a\nb"}"#),
        ("text/plain".to_owned(), "a\nb".to_owned())
    );
    let bytes = body(
        "3.0",
        "application/octet-stream",
        r#"{"type":"string","format":"binary"}"#,
        "",
    );
    let request = built(&bytes, r#"{"body":"AP8="}"#).unwrap();
    assert_eq!(
        request.body,
        Some(("application/octet-stream".to_owned(), vec![0, 255]))
    );
}

#[test]
fn a_body_that_may_be_left_out_is_left_out_or_whole() {
    let operation = r#"{"requestBody":{"content":{"application/json":{"schema":
        {"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{}}}}}}}"#;
    let tool = one(&document("3.0", "/x", "post", operation));
    assert_eq!(built(&tool, "{}").unwrap().body, None);
    assert_eq!(sent(&tool, r#"{"a":"1"}"#).1, r#"{"a":"1"}"#);
    let check = ArgumentCheck::compile(&schema(&tool).to_string()).unwrap();
    let half = Document::parse(br#"{"b":1}"#, Limits::ARGUMENTS).unwrap();
    assert!(check.check(Some(half.root())).is_err());
}
