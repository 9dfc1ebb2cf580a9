use super::*;

fn refused(text: &str) -> ImportError {
    import(text.as_bytes(), &with()).map(drop).unwrap_err()
}

#[test]
fn what_is_no_such_document_is_refused_and_says_so() {
    for (text, says) in [
        ("", "unexpected end"),
        ("[]", "neither a member"),
        (r#"{"openapi":"4.0.0"}"#, "it says openapi"),
        (r#"{"swagger":"1.2"}"#, "it says swagger"),
        (r#"{"openapi":"3.0.0","openapi":"3.1.0"}"#, "duplicate key"),
    ] {
        let error = refused(text).to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
    assert!(matches!(
        import(b"{\"openapi\":\"3.0.0\xff\"}", &with()),
        Err(ImportError::Json(_))
    ));
    let deep = format!(
        r#"{{"openapi":"3.0.0","x":{}{}}}"#,
        "[".repeat(300),
        "]".repeat(300)
    );
    assert!(matches!(refused(&deep), ImportError::Json(_)));
}

#[test]
fn references_that_lead_out_nowhere_or_in_a_circle_leave_their_operation_out() {
    for reference in [
        "https://evil.example/schema.json",
        "file:///etc/passwd",
        "other.json#/X",
        "//evil.example",
        "#/components/schemas/Missing",
        "#/components/schemas/A",
        "#/%zz",
    ] {
        for operation in [
            format!(r#"{{"parameters":[{{"$ref":"{reference}"}}]}}"#),
            format!(r#"{{"requestBody":{{"$ref":"{reference}"}}}}"#),
            format!(
                r#"{{"requestBody":{{"content":{{"application/json":{{"schema":{{"$ref":"{reference}"}}}}}}}}}}"#
            ),
        ] {
            let text = format!(
                r##"{{"openapi":"3.0.0","paths":{{"/ok":{{"get":{{}}}},"/x":{{"post":{operation}}}}},"components":{{"schemas":{{
                    "A":{{"$ref":"#/components/schemas/B"}},"B":{{"$ref":"#/components/schemas/A"}}}}}}}}"##
            );
            let found = imported(&text);
            assert_eq!((found.tools.len(), found.left_out.len()), (1, 1), "{operation}");
            assert!(
                found.left_out[0].reason.contains("reference"),
                "{:?}",
                found.left_out
            );
        }
    }
    let error = refused(r##"{"openapi":"3.0.0","paths":{"/x":{"$ref":"https://evil.example/path.json"}}}"##);
    assert!(error.to_string().contains("leads out of the document"), "{error}");
}

#[test]
fn paths_that_lead_elsewhere_leave_their_operation_out() {
    for path in [
        "/a/../b",
        "/./a",
        "/a/%2e%2E",
        "/a?x=1",
        "/a#b",
        "/a/{b",
        "/a/b}",
        "/a/{}",
        "/a/{b{c}}",
        "/a\\u0000",
    ] {
        let text =
            format!(r#"{{"openapi":"3.0.0","paths":{{"/ok":{{"get":{{}}}},"{path}":{{"get":{{}}}}}}}}"#);
        assert_eq!(imported(&text).left_out.len(), 1, "{path}");
    }
    let odd = one(&document("3.0", "/a b/ü/{c}/'x", "get", "{}"));
    assert_eq!(
        built(&odd, r#"{"c":"d"}"#).unwrap().path_and_query,
        "/a%20b/%C3%BC/d/'x"
    );
}

#[test]
fn ten_thousand_operations_are_imported_and_one_more_is_refused() {
    let text = |count: usize| {
        let paths: Vec<String> = (0..count)
            .map(|at| {
                format!(
                    r##""/p{at}/{{id}}":{{"get":{{"parameters":[{{"$ref":"#/components/parameters/id"}},
                        {{"name":"q","in":"query","schema":{{"$ref":"#/components/schemas/S{}"}}}}]}}}}"##,
                    at % 2000
                )
            })
            .collect();
        let schemas: Vec<String> = (0..2000)
            .map(|at| format!(r##""S{at}":{{"type":"object","properties":{{"n":{{"$ref":"#/components/schemas/S{}"}}}}}}"##, at / 2))
            .collect();
        format!(
            r#"{{"openapi":"3.1.0","paths":{{{}}},"components":{{"parameters":{{"id":{{"name":"id","in":"path","required":true,"schema":{{}}}}}},"schemas":{{{}}}}}}}"#,
            paths.join(","),
            schemas.join(",")
        )
    };
    let found = imported(&text(10_000));
    assert_eq!((found.tools.len(), found.left_out.len()), (10_000, 0));
    assert_eq!(refused(&text(10_001)), ImportError::TooMany { limit: 10_000 });
    let include = ["GET /p7*".parse().unwrap()];
    let chosen = import(
        text(10_001).as_bytes(),
        &Import {
            include: &include,
            ..with()
        },
    )
    .unwrap();
    assert_eq!(chosen.tools.len(), 1111);
}

#[test]
fn a_schema_that_is_too_large_leaves_its_operation_out() {
    let wide: Vec<String> = (0..20_000)
        .map(|at| format!(r#""p{at}":{{"type":"object","properties":{{"a":{{"type":"string"}}}}}}"#))
        .collect();
    let operation = format!(
        r#"{{"requestBody":{{"content":{{"application/json":{{"schema":{{"type":"object","minProperties":1,"properties":{{{}}}}}}}}}}}}}"#,
        wide.join(",")
    );
    let error = refused(&document("3.1", "/x", "post", &operation));
    assert!(error.to_string().contains("larger than"), "{error}");
}

#[test]
fn every_declaration_is_a_tool_whose_schema_is_understood() {
    let text = r##"{"openapi":"3.1.0","paths":{"/x/{id}":{"post":{"parameters":[
        {"name":"id","in":"path","required":true,"schema":true},{"name":"a","in":"query","schema":{"type":["integer","null"]}},
        {"name":"b","in":"query","schema":{"$ref":"#/components/schemas/T","description":"d"}}],
        "requestBody":{"content":{"application/json":{"schema":{"unevaluatedProperties":false,"properties":{"q":false},
            "patternProperties":{"^x":{"type":"string"}},"if":{"required":["q"]},"then":{},"else":{},"$dynamicRef":"#x"}}}}}}},
        "components":{"schemas":{"T":{"prefixItems":[{"type":"string"}],"items":false,"contains":{},"minContains":0}}}}"##;
    let tool = one(text);
    ArgumentCheck::compile(&schema(&tool).to_string()).unwrap();
    let raw = serde_json::value::RawValue::from_string(tool.declared.clone()).unwrap();
    let upstream = "api".parse().unwrap();
    let tool = crate::model::Tool::from_declaration(
        crate::model::ToolKind::OpenApi,
        Some(&upstream),
        None,
        raw.into(),
    )
    .unwrap();
    assert_eq!(tool.check_schema(), Ok(()));
}
