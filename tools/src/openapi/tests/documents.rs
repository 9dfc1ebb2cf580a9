use serde_json::json;

use super::*;

#[test]
fn names_are_operation_ids_in_snake_case_else_method_and_path() {
    for (id, path, name) in [
        ("getPetById", "/p", "get_pet_by_id"),
        (
            "PublicHolidayPublicHolidaysV3",
            "/p",
            "public_holiday_public_holidays_v3",
        ),
        ("repos/list-for-org", "/p", "repos_list_for_org"),
        ("getHTTPStatus", "/p", "get_http_status"),
        ("listURLs", "/p", "list_urls"),
        ("get_x", "/p", "get_x"),
        ("", "/public/holidays/{Year}", "get_public_holidays_year"),
        ("ÄÖ", "/", "get"),
        ("Pets.getAll()", "/p", "pets_get_all"),
    ] {
        let tool = one(&document(
            "3.1",
            path,
            "get",
            &format!(r#"{{"operationId":"{id}"}}"#),
        ));
        assert_eq!(tool.name, name);
    }
    let long = one(&document(
        "3.1",
        "/p",
        "get",
        &format!(r#"{{"operationId":"{}"}}"#, "aB".repeat(200)),
    ));
    assert_eq!(long.name.len(), 128);
}

#[test]
fn operations_of_one_name_get_their_paths_names() {
    let found = imported(
        r#"{"openapi":"3.0.1","paths":{"/a":{"get":{"operationId":"list"}},"/b":{"get":{"operationId":"List"}},
            "/B":{"get":{"operationId":"list"}}}}"#,
    );
    let names: Vec<&str> = found.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["list", "get_b"]);
    assert_eq!((found.operations, found.left_out.len()), (3, 1));
}

#[test]
fn a_tool_is_declared_with_method_description_and_security() {
    let text = r#"{"openapi":"3.0.0","info":{"title":"Pets","version":"1"},
        "security":[{"key":[]},{"oauth":["read","write"],"basic":[]}],
        "components":{"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"X-Key"},
            "oauth":{"type":"oauth2","flows":{}},"basic":{"type":"http","scheme":"basic"}}},
        "paths":{"/p":{"get":{"summary":"Lists pets","description":"All of them.","deprecated":true},
            "delete":{"operationId":"x","security":[]}}}}"#;
    let found = imported(text);
    assert_eq!(found.title.as_deref(), Some("Pets"));
    let list = declared(&found.tools[0]);
    assert_eq!(list["title"], "Lists pets");
    assert_eq!(
        list["description"],
        "Lists pets\n\nAll of them.\n\nDeprecated.\n\nNeeds key (API key in the header X-Key), or oauth (OAuth 2, scopes read write) and basic (HTTP basic)."
    );
    assert_eq!(list["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(
        list["_meta"],
        json!({"art.flux7/method": "GET", "art.flux7/path": "/p"})
    );
    let delete = declared(&found.tools[1]);
    assert_eq!(delete["description"], "DELETE /p");
    assert_eq!(delete["annotations"]["destructiveHint"], true);
}

#[test]
fn schemas_become_json_schema_of_today_with_every_constraint() {
    let properties = r#"{"n":{"type":"integer","nullable":true,"minimum":1,"exclusiveMinimum":true,"maximum":9,"multipleOf":2},
        "e":{"type":"string","nullable":true,"enum":["a"],"example":"a","x-y":1},
        "id":{"type":"string","readOnly":true},"secret":{"type":"string","writeOnly":true,"minLength":1,"pattern":"^a"},
        "look":{"type":"string","pattern":"(?=a)"},"odd":{"type":"text","required":true,"minimum":"1"}}"#;
    let operation = format!(
        r#"{{"requestBody":{{"required":true,"content":{{"application/json":{{"schema":
            {{"type":"object","required":["id","n"],"properties":{properties}}}}}}}}}}}"#
    );
    let tool = one(&document("3.0", "/x", "post", &operation));
    assert_eq!(
        schema(&tool),
        json!({"type": "object", "additionalProperties": false, "required": ["n"], "properties": {
            "n": {"type": ["integer", "null"], "exclusiveMinimum": 1, "maximum": 9, "multipleOf": 2},
            "e": {"type": ["string", "null"], "enum": ["a", null]},
            "secret": {"type": "string", "minLength": 1, "pattern": "^a"},
            "look": {"type": "string"}, "odd": {}}})
    );
}

#[test]
fn references_are_followed_and_cyclic_ones_stay_references() {
    for (version, place) in [
        ("3.0", "components\":{\"schemas"),
        ("3.1", "components\":{\"schemas"),
        ("2.0", "definitions"),
    ] {
        let (pointer, close) = if version == "2.0" {
            ("definitions", "")
        } else {
            ("components/schemas", "}")
        };
        let body = if version == "2.0" {
            format!(
                r##"{{"parameters":[{{"in":"body","name":"b","schema":{{"$ref":"#/{pointer}/Node"}}}}]}}"##
            )
        } else {
            format!(
                r##"{{"requestBody":{{"content":{{"application/json":{{"schema":{{"$ref":"#/{pointer}/Node"}}}}}}}}}}"##
            )
        };
        let base = document(version, "/x", "post", &body);
        let schemas = format!(
            r##","{place}":{{"Node":{{"type":"object","properties":{{"name":{{"$ref":"#/{pointer}/Name"}},
                "next":{{"$ref":"#/{pointer}/Node"}},"all":{{"type":"array","items":{{"$ref":"#/{pointer}/Node"}}}}}}}},
                "Name":{{"type":"string","maxLength":3}}}}{close}}}"##
        );
        let text = format!("{}{schemas}", base.strip_suffix('}').unwrap());
        let tool = one(&text);
        let found = schema(&tool);
        assert_eq!(
            found["properties"]["name"],
            json!({"type": "string", "maxLength": 3}),
            "{version}"
        );
        assert_eq!(
            found["properties"]["all"]["items"],
            json!({"$ref": "#/$defs/Node"})
        );
        let check = ArgumentCheck::compile(&found.to_string()).unwrap();
        for (arguments, fits) in [
            (r#"{"next":{"next":{"name":"abc"}}}"#, true),
            (r#"{"next":{"next":{"name":"abcd"}}}"#, false),
            (r#"{"all":[{"all":[{"name":1}]}]}"#, false),
        ] {
            let document = Document::parse(arguments.as_bytes(), Limits::ARGUMENTS).unwrap();
            assert_eq!(
                check.check(Some(document.root())).is_ok(),
                fits,
                "{version} {arguments}"
            );
        }
    }
}

#[test]
fn all_of_a_body_is_merged_and_clashes_get_prefixes() {
    let text = r##"{"openapi":"3.1.0","paths":{"/x/{id}":{
        "parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}},
            {"name":"shared","in":"query","schema":{"type":"integer"}}],
        "put":{"parameters":[{"name":"shared","in":"query","schema":{"type":"string"}},{"name":"id","in":"query","schema":{}},
            {"name":"filter[name]","in":"query","schema":{}}],
          "requestBody":{"required":true,"content":{"application/json":{"schema":{"allOf":[
            {"$ref":"#/components/schemas/Base"},{"type":"object","required":["id"],"properties":{"extra":{"type":"integer"}}}]}}}}}}},
        "components":{"schemas":{"Base":{"type":"object","required":["extra"],"properties":{"id":{"type":"integer"}}}}}}"##;
    let tool = one(text);
    let found = schema(&tool);
    let names: Vec<&String> = found["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["body_id", "extra", "filter_name", "id", "query_id", "shared"]
    );
    assert_eq!(
        found["properties"]["shared"]["type"], "string",
        "the operation's own wins"
    );
    assert_eq!(found["required"], json!(["id", "body_id", "extra"]));
    let request = built(
        &tool,
        r#"{"id":"p","query_id":"q","body_id":7,"extra":1,"filter_name":"n"}"#,
    )
    .unwrap();
    assert_eq!(request.path_and_query, "/x/p?id=q&filter%5Bname%5D=n");
    assert_eq!(request.body.unwrap().1, br#"{"id":7,"extra":1}"#);
}

#[test]
fn a_body_that_is_more_than_properties_stays_whole() {
    for schema_text in [
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        r#"{"oneOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]}"#,
        r#"{"type":"object","properties":{"a":{}},"minProperties":1}"#,
        r#"{"type":"string"}"#,
    ] {
        let operation =
            format!(r#"{{"requestBody":{{"content":{{"application/json":{{"schema":{schema_text}}}}}}}}}"#);
        let found = schema(&one(&document("3.1", "/x", "post", &operation)));
        let names: Vec<&String> = found["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["body"], "{schema_text}");
    }
}

#[test]
fn only_chosen_operations_become_tools() {
    let text = r#"{"swagger":"2.0","paths":{"/orders":{"get":{},"post":{}},"/orders/{id}":{"get":{},"delete":{}},"/x":{"get":{}}}}"#;
    let chosen = |texts: &[&str]| {
        let include: Vec<Selection> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let found = import(
            text.as_bytes(),
            &Import {
                include: &include,
                ..with()
            },
        )
        .unwrap();
        assert_eq!(found.operations, found.excluded + found.tools.len());
        found.tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&["GET *"]), ["get_orders", "get_orders_id", "get_x"]);
    assert_eq!(chosen(&["POST /orders"]), ["post_orders"]);
    assert_eq!(chosen(&["* /orders/*"]), ["get_orders_id", "delete_orders_id"]);
    assert_eq!(
        chosen(&["delete /ord*s/{id}", "get /x"]),
        ["delete_orders_id", "get_x"]
    );
    assert!(chosen(&["GET /orders/"]).is_empty());
    for wrong in ["", "GET", "GET orders", "FETCH /x", "GET /a b", "/x"] {
        assert!(wrong.parse::<Selection>().is_err(), "{wrong}");
    }
}

#[test]
fn parameters_that_are_not_the_agents_are_left_out() {
    let operation = r#"{"parameters":[{"name":"X-Api-Key","in":"header","required":true,"schema":{}},
        {"name":"authorization","in":"header","schema":{}},{"name":"Host","in":"header","schema":{}},
        {"name":"Accept","in":"header","schema":{}},{"name":"session","in":"cookie","schema":{}},
        {"name":"X-Other","in":"header","schema":{}}]}"#;
    let text = document("3.1", "/x", "get", operation);
    let headers = ["x-api-key".to_owned(), "Cookie".to_owned()];
    let found = import(
        text.as_bytes(),
        &Import {
            headers: &headers,
            ..with()
        },
    )
    .unwrap();
    let found = schema(&found.tools[0]);
    let names: Vec<&String> = found["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["X-Other"]);
}

#[test]
fn calls_go_where_the_document_comes_from_or_where_the_operator_says() {
    let base = |document: &str, url: Option<&str>, backend: Option<&str>| {
        let with = Import {
            document_url: url,
            backend_url: backend,
            ..Import::default()
        };
        import(document.as_bytes(), &with).map(|found| {
            let base = &found.tools[0].template.base;
            format!("{}{}", base.origin, base.path)
        })
    };
    let open = |servers: &str| {
        format!(r#"{{"openapi":"3.0.0","servers":{servers},"paths":{{"/x":{{"get":{{}}}}}}}}"#)
    };
    let own = Some("https://api.example.com/v3/openapi.json?token=x");
    for (servers, found) in [
        ("[]", "https://api.example.com"),
        (r#"[{"url":"/v2/"}]"#, "https://api.example.com/v2"),
        (r#"[{"url":"rest"}]"#, "https://api.example.com/v3/rest"),
        (
            r#"[{"url":"https://API.example.com:443/v9"}]"#,
            "https://api.example.com/v9",
        ),
        (
            r#"[{"url":"https://{host}/{v}","variables":{"host":{"default":"api.example.com"},"v":{"enum":["v7"]}}}]"#,
            "https://api.example.com/v7",
        ),
        (
            r#"[{"url":"https://elsewhere.example"},{"url":"/here"}]"#,
            "https://api.example.com/here",
        ),
    ] {
        assert_eq!(base(&open(servers), own, None).as_deref(), Ok(found), "{servers}");
    }
    let elsewhere = [
        r#"[{"url":"https://elsewhere.example"}]"#,
        r#"[{"url":"http://api.example.com"}]"#,
        r#"[{"url":"https://api.example.com:8443"}]"#,
        r#"[{"url":"https://api.example.com@evil.example/"}]"#,
        r#"[{"url":"//evil.example/"}]"#,
        r#"[{"url":"/../x"}]"#,
        r#"[{"url":"https://api.example.com/%2e%2e/x"}]"#,
        r#"[{"url":"javascript://api.example.com"}]"#,
    ];
    for servers in elsewhere {
        let error = base(&open(servers), own, None).unwrap_err().to_string();
        assert!(error.contains("backend_url"), "{error}");
        let backend = Some("http://localhost:3001/base/");
        assert_eq!(
            base(&open(servers), own, backend).as_deref(),
            Ok("http://localhost:3001/base")
        );
    }
    assert!(
        base(&open("[]"), None, None).is_err(),
        "a file does not say where to call"
    );
    let swagger = |more: &str| format!(r#"{{"swagger":"2.0"{more},"paths":{{"/x":{{"get":{{}}}}}}}}"#);
    for (more, found) in [
        ("", "https://api.example.com"),
        (r#","basePath":"/v1""#, "https://api.example.com/v1"),
        (
            r#","host":"api.example.com","basePath":"/v1","schemes":["http","https"]"#,
            "https://api.example.com/v1",
        ),
    ] {
        assert_eq!(base(&swagger(more), own, None).as_deref(), Ok(found), "{more}");
    }
    assert!(base(&swagger(r#","host":"elsewhere.example""#), own, None).is_err());
    for backend in [
        "ftp://x",
        "localhost",
        "http://user:pw@x/",
        "http://x/?a=b",
        "http://x/../y",
    ] {
        assert!(
            matches!(
                base(&open("[]"), own, Some(backend)),
                Err(ImportError::Url { .. })
            ),
            "{backend}"
        );
    }
}

#[test]
fn an_operation_of_another_server_is_left_out() {
    let text = r#"{"openapi":"3.0.0","paths":{"/x":{"get":{},"post":{"servers":[{"url":"https://uploads.example"}]}}}}"#;
    let found = imported(text);
    assert_eq!((found.tools.len(), found.left_out.len()), (1, 1));
    assert_eq!(found.left_out[0].operation, "POST /x");
}
