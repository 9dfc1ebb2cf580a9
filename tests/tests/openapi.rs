//! OpenAPI services behind a real `toolgate up`: documents of all three versions, called through MCP and REST; what a server of
//! the tests' own received is compared with what was asked for.

use serde_json::{Value, json};
use tests::agent::Agent;
use tests::rest::{Asked, Rest};
use tests::up::{Up, folder, output, toolgate};
use tests::wait;

const POLICIES: &str = r#"
policies:
  - name: all
    agent: "*"
    rules:
      - tools: ["*"]
        action: allow
"#;

/// The configuration of one service without a name, and no other upstream.
fn service(rest: &Rest, more: &str) -> String {
    format!(
        "mcp_servers: []\nopenapi:\n  - url: {}/openapi\n    headers: {{X-Key: hunter2}}\n{more}",
        rest.url
    )
}

/// What a parameter's value becomes: a style, and how `"a b"`, `["x y","z"]` and `{"k":"v w","n":1}` are written.
struct Style {
    name: &'static str,
    place: &'static str,
    /// Members of the parameter in OpenAPI 3.
    open: &'static str,
    /// In Swagger 2.0, where it has the style for lists.
    swagger: Option<&'static str>,
    written: [&'static str; 3],
}

const fn style(
    name: &'static str,
    place: &'static str,
    open: &'static str,
    swagger: Option<&'static str>,
    written: [&'static str; 3],
) -> Style {
    Style {
        name,
        place,
        open,
        swagger,
        written,
    }
}

const STYLES: [Style; 19] = [
    style(
        "simple",
        "path",
        r#""style":"simple""#,
        Some("csv"),
        ["a%20b", "x%20y,z", "k,v%20w,n,1"],
    ),
    style(
        "simple_explode",
        "path",
        r#""style":"simple","explode":true"#,
        None,
        ["a%20b", "x%20y,z", "k=v%20w,n=1"],
    ),
    style(
        "label",
        "path",
        r#""style":"label""#,
        None,
        [".a%20b", ".x%20y,z", ".k,v%20w,n,1"],
    ),
    style(
        "label_explode",
        "path",
        r#""style":"label","explode":true"#,
        None,
        [".a%20b", ".x%20y.z", ".k=v%20w.n=1"],
    ),
    style(
        "matrix",
        "path",
        r#""style":"matrix""#,
        None,
        [";p=a%20b", ";p=x%20y,z", ";p=k,v%20w,n,1"],
    ),
    style(
        "matrix_explode",
        "path",
        r#""style":"matrix","explode":true"#,
        None,
        [";p=a%20b", ";p=x%20y;p=z", ";k=v%20w;n=1"],
    ),
    style(
        "form",
        "query",
        r#""style":"form","explode":true"#,
        Some("multi"),
        ["p=a%20b", "p=x%20y&p=z", "k=v%20w&n=1"],
    ),
    style(
        "form_joined",
        "query",
        r#""style":"form","explode":false"#,
        Some("csv"),
        ["p=a%20b", "p=x%20y,z", "p=k,v%20w,n,1"],
    ),
    style(
        "space",
        "query",
        r#""style":"spaceDelimited""#,
        Some("ssv"),
        ["p=a%20b", "p=x%20y%20z", "p=k%20v%20w%20n%201"],
    ),
    style(
        "pipe",
        "query",
        r#""style":"pipeDelimited""#,
        Some("pipes"),
        ["p=a%20b", "p=x%20y%7Cz", "p=k%7Cv%20w%7Cn%7C1"],
    ),
    style(
        "tab",
        "query",
        r#""style":"form""#,
        Some("tsv"),
        ["p=a%20b", "p=x%20y%09z", ""],
    ),
    style(
        "deep",
        "query",
        r#""style":"deepObject","explode":true"#,
        None,
        [
            "p=a%20b",
            "p%5B0%5D=x%20y&p%5B1%5D=z",
            "p%5Bk%5D=v%20w&p%5Bn%5D=1",
        ],
    ),
    style(
        "reserved",
        "query",
        r#""allowReserved":true"#,
        None,
        ["p=a%20b", "p=x%20y&p=z", "k=v%20w&n=1"],
    ),
    style(
        "json",
        "query",
        r#""content":{"application/json":{"schema":{}}}"#,
        None,
        [
            "p=%22a%20b%22",
            "p=%5B%22x%20y%22%2C%22z%22%5D",
            "p=%7B%22k%22%3A%22v%20w%22%2C%22n%22%3A1%7D",
        ],
    ),
    style(
        "header",
        "header",
        r#""style":"simple""#,
        Some("csv"),
        ["a b", "x y,z", "k,v w,n,1"],
    ),
    style(
        "header_explode",
        "header",
        r#""explode":true"#,
        None,
        ["a b", "x y,z", "k=v w,n=1"],
    ),
    style(
        "cookie",
        "cookie",
        r#""style":"form","explode":false"#,
        None,
        ["p=a%20b", "p=x%20y,z", "p=k,v%20w,n,1"],
    ),
    style(
        "cookie_explode",
        "cookie",
        r#""style":"form""#,
        None,
        ["p=a%20b", "p=x%20y; p=z", "k=v%20w; n=1"],
    ),
    style(
        "undeclared",
        "path",
        "",
        None,
        ["a%20b", "x%20y,z", "k,v%20w,n,1"],
    ),
];

/// A document of one version with an operation for each style that the version has.
fn styles(version: &str) -> String {
    let operations = STYLES.iter().filter_map(|style| {
        let path = if style.place == "path" { format!("/{}/{{p}}", style.name) } else { format!("/{}", style.name) };
        let required = style.place == "path";
        let parameter = match (version, style.swagger) {
            ("2.0", None) => return None,
            ("2.0", Some(format)) => format!(
                r#"{{"name":"p","in":"{}","required":{required},"type":"array","items":{{"type":"string"}},"collectionFormat":"{format}"}}"#,
                style.place
            ),
            (_, Some("tsv")) => return None,
            _ if style.open.is_empty() => String::new(),
            _ => {
                let schema = if style.open.contains("content") { "" } else { r#","schema":{}"# };
                format!(r#"{{"name":"p","in":"{}","required":{required},{}{schema}}}"#, style.place, style.open)
            }
        };
        Some(format!(r#""{path}":{{"get":{{"operationId":"{}","parameters":[{parameter}]}}}}"#, style.name))
    });
    let operations: Vec<String> = operations.collect();
    format!(
        "{{{},\"info\":{{\"title\":\"styles\",\"version\":\"1\"}},\"paths\":{{{}}}}}",
        head(version),
        operations.join(",")
    )
}

fn head(version: &str) -> String {
    match version {
        "2.0" => r#""swagger":"2.0""#.to_owned(),
        version => format!(r#""openapi":"{version}.0""#),
    }
}

/// What of a request carries the parameter.
fn received(style: &Style, asked: &Asked) -> String {
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    match style.place {
        "path" => path.rsplit('/').next().unwrap_or_default().to_owned(),
        "query" => query.to_owned(),
        "header" => asked.header("p").unwrap_or_default().to_owned(),
        _ => asked.header("cookie").unwrap_or_default().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_parameter_style_of_all_three_versions_arrives_as_it_was_asked_for() {
    let values = [json!("a b"), json!(["x y", "z"]), json!({"k": "v w", "n": 1})];
    for version in ["2.0", "3.0", "3.1"] {
        let rest = Rest::start(&styles(version)).await;
        let up = Up::start(&service(&rest, POLICIES)).await;
        let agent = up.agent("ada").await;
        let listed = agent.tools().await;
        let mut compared = 0;
        for style in STYLES
            .iter()
            .filter(|style| listed.iter().any(|name| name == style.name))
        {
            for (value, written) in values.iter().zip(style.written) {
                // Swagger 2.0 knows only lists here.
                if (version == "2.0" && !value.is_array()) || written.is_empty() {
                    continue;
                }
                let called = agent.call(style.name, json!({"p": value})).await;
                assert!(
                    called.is_ok(),
                    "{version} {} {value}: {}",
                    style.name,
                    called.answer
                );
                let asked = rest.last();
                assert_eq!(
                    received(style, &asked),
                    written,
                    "{version} {} {value}",
                    style.name
                );
                assert_eq!(asked.header("x-key"), Some("hunter2"));
                compared += 1;
            }
        }
        let expected = if version == "2.0" { 7 } else { 54 };
        assert_eq!(compared, expected, "{version}: {listed:?}");
    }
}

/// Operations with bodies, with answers of every kind, and for policies.
fn documented() -> String {
    let item = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 8}, "amount": {"type": "number", "multipleOf": 0.01},
        "status": {"type": "string", "enum": ["open", "done"]}, "id": {"type": "integer", "readOnly": true},
        "parent": {"$ref": "#/components/schemas/Item"}}});
    json!({"openapi": "3.1.0", "info": {"title": "items", "version": "1"},
        "components": {"schemas": {"Item": item}},
        "paths": {
            "/items": {"get": {"operationId": "listItems"},
                "post": {"operationId": "createItem", "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}}}},
            "/items/{id}": {"parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "get": {"operationId": "getItem"}, "delete": {"operationId": "removeThing"}},
            "/form": {"post": {"operationId": "sendForm", "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object", "properties": {"a": {}, "b": {"type": "array", "items": {}}}}}}}}},
            "/parts": {"post": {"operationId": "sendParts", "requestBody": {"content": {"multipart/form-data": {"schema": {"type": "object", "properties": {"note": {"type": "string"}, "file": {"type": "string", "format": "binary"}}}}}}}},
            "/missing": {"get": {"operationId": "getMissing"}}, "/broken": {"post": {"operationId": "postBroken"}},
            "/image": {"get": {"operationId": "getImage"}}, "/huge": {"get": {"operationId": "getHuge"}},
        }})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_answers_and_mistakes_come_and_go_as_the_document_says() {
    let rest = Rest::start(&documented()).await;
    let up = Up::start(&service(&rest, POLICIES)).await;
    let agent = up.agent("ada").await;
    bodies_arrive(&rest, &agent).await;
    answers_come_back(&agent).await;
    mistakes_are_told_and_not_sent(&rest, &agent).await;
    let records = up.operator().records("tool=create_item", 1).await;
    assert_eq!(records[0]["tool"], "create_item");
    let log = std::fs::read_to_string(up.folder.path().join("log")).unwrap();
    assert!(!log.contains("hunter2"), "a secret is in the log");
}

async fn bodies_arrive(rest: &Rest, agent: &Agent) {
    let created = agent
        .call(
            "create_item",
            json!({"name": "a", "amount": 19.99, "parent": {"name": "p"}}),
        )
        .await;
    assert!(created.is_ok(), "{}", created.answer);
    let asked = rest.last();
    assert_eq!(
        (asked.method.as_str(), asked.header("content-type")),
        ("POST", Some("application/json"))
    );
    let sent: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(
        sent,
        json!({"name": "a", "amount": 19.99, "parent": {"name": "p"}})
    );
    let trace = asked.header("traceparent").unwrap_or_default();
    assert!(trace.starts_with("00-") && trace.len() == 55, "{trace}");
    assert_eq!(created.answer["result"]["structuredContent"]["ok"], true);
    agent.call("send_form", json!({"a": "x&y", "b": [1, 2]})).await;
    assert_eq!(rest.last().text(), "a=x%26y&b=1&b=2");
    agent
        .call("send_parts", json!({"note": "hi", "file": "aGVsbG8="}))
        .await;
    let parts = rest.last();
    assert!(
        parts
            .header("content-type")
            .unwrap()
            .starts_with("multipart/form-data; boundary=")
    );
    assert!(
        parts.text().contains("name=\"note\"\r\n\r\nhi\r\n") && parts.text().contains("\r\n\r\nhello\r\n")
    );
    let (status, _) = agent.rest("get_item", json!({"id": "a%b"})).await;
    assert_eq!((status, rest.last().target.as_str()), (200, "/items/a%25b"));
}

async fn answers_come_back(agent: &Agent) {
    let missing = agent.call("get_missing", json!({})).await;
    assert_eq!(missing.answer["result"]["isError"], true);
    assert_eq!(missing.text(), "HTTP 404 Not Found");
    assert_eq!(
        missing.answer["result"]["content"][1]["text"],
        r#"{"error":"no such thing"}"#
    );
    let broken = agent.call_modern("post_broken", json!({})).await;
    assert_eq!(broken.answer["result"]["isError"], true);
    let image = agent.call("get_image", json!({})).await;
    assert_eq!(image.answer["result"]["content"][0]["mimeType"], "image/png");
    let huge = agent.call("get_huge", json!({})).await;
    assert!(
        huge.answer.to_string().contains("is larger than"),
        "{}",
        huge.answer
    );
}

async fn mistakes_are_told_and_not_sent(rest: &Rest, agent: &Agent) {
    let before = rest.asked().len();
    for (tool, arguments, says) in [
        (
            "create_item",
            json!({"name": "too long a name"}),
            "/name: expected a string of at most 8 characters, found a string of 15 characters",
        ),
        (
            "create_item",
            json!({"amount": 1}),
            "expected the property \"name\", which is missing",
        ),
        (
            "create_item",
            json!({"name": "a", "amount": 0.001}),
            "/amount: expected a multiple of 0.01",
        ),
        (
            "create_item",
            json!({"name": "a", "status": "new"}),
            "/status: expected one of \"open\", \"done\"",
        ),
        (
            "create_item",
            json!({"name": "a", "id": 7}),
            "/id: expected one of the properties",
        ),
        (
            "create_item",
            json!({"name": "a", "parent": {"name": 1}}),
            "/parent/name: expected string, found a number",
        ),
        (
            "get_item",
            json!({}),
            "expected the property \"id\", which is missing",
        ),
        (
            "get_item",
            json!({"id": ".."}),
            "/id: \".\" and \"..\" would change the path",
        ),
        ("get_item", json!({"id": "a/../b"}), "/id: a slash or backslash"),
        (
            "get_item",
            json!({"id": "..%2f..%2fadmin"}),
            "/id: a slash or backslash, encoded or not",
        ),
        (
            "get_item",
            json!({"id": "a\u{0}b"}),
            "control characters such as NUL",
        ),
        (
            "get_item",
            json!({"id": "a\r\nHost: evil"}),
            "control characters such as NUL",
        ),
        (
            "get_item",
            json!({"id": ""}),
            "an empty text would change the path",
        ),
        (
            "send_parts",
            json!({"file": "not base64!"}),
            "/file: expected base64",
        ),
    ] {
        let called = agent.call(tool, arguments.clone()).await;
        assert!(!called.is_ok(), "{tool} {arguments}: {}", called.answer);
        assert!(
            called.answer.to_string().replace("\\\"", "\"").contains(says),
            "{tool} {arguments}: {}",
            called.answer
        );
        let (status, _) = agent.rest(tool, arguments).await;
        assert_eq!(status, 400);
    }
    assert_eq!(rest.asked().len(), before, "nothing of it was sent");
}

const BY_METHOD: &str = r#"
policies:
  - name: readers
    agent: "*"
    rules:
      - tools: ["*"]
        risk: [READ]
        action: allow
      - tools: ["*"]
        action: deny
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_method_decides_what_an_operation_is_and_both_planes_say_the_same() {
    let rest = Rest::start(&documented()).await;
    let up = Up::start(&service(&rest, BY_METHOD)).await;
    let agent = up.agent("ada").await;
    let (status, _) = agent.rest("list_items", json!({})).await;
    assert_eq!(status, 200);
    let before = rest.asked().len();
    for tool in ["create_item", "remove_thing"] {
        let (status, body) = agent.rest(tool, json!({"id": "x", "name": "x"})).await;
        assert_eq!(status, 403, "{tool}: {body}");
    }
    assert_eq!(rest.asked().len(), before);
    for (tool, risk) in [
        ("list_items", "READ"),
        ("create_item", "EXTERNAL_WRITE"),
        ("remove_thing", "DELETE"),
    ] {
        let known = up.operator().get(&format!("/tools/{tool}")).await;
        assert_eq!(
            (&known["name"], &known["classification"]["risk"]),
            (&json!(tool), &json!(risk)),
            "{known}"
        );
        assert_eq!(known["kind"], "openapi");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kept_document_serves_while_the_service_is_away() {
    let mut rest = Rest::start(&documented()).await;
    let mut up = Up::start(&service(&rest, POLICIES)).await;
    rest.go().await;
    up.restart().await;
    let agent = up.agent("ada").await;
    assert!(agent.tools().await.contains(&"list_items".to_owned()));
    let away = agent.call("list_items", json!({})).await;
    assert!(!away.is_ok(), "{}", away.answer);
    rest.come_back().await;
    let (status, _) = agent.rest("list_items", json!({})).await;
    assert_eq!(status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clash_says_which_service_needs_a_name_and_with_one_both_are_served() {
    let (one, two) = (Rest::start(&documented()).await, Rest::start(&documented()).await);
    let services = |name: &str| {
        format!(
            "mcp_servers: []\nopenapi:\n  - url: {}/openapi\n  - url: {}/openapi{name}\n{POLICIES}",
            one.url, two.url
        )
    };
    let mut up = Up::start(&services("\n    name: second\n    include: [\"GET /items*\"]")).await;
    let tools = up.agent("ada").await.tools().await;
    assert!(
        tools.contains(&"list_items".to_owned()) && tools.contains(&"second.list_items".to_owned()),
        "{tools:?}"
    );
    assert!(!tools.contains(&"second.create_item".to_owned()));
    let port = up.url.rsplit(':').next().unwrap();
    let text = format!("port: {port}\n{}", services(""));
    std::fs::write(up.folder.path().join("toolgate.yaml"), text).unwrap();
    up.restart_unready();
    let http = tests::operator::client(None);
    let error = wait::until("the second service is refused", || async {
        let answer = http.get(format!("{}/mcp-servers", up.url)).send().await.ok()?;
        let servers: Value = answer.json().await.ok()?;
        let failed = servers
            .as_array()?
            .iter()
            .find(|server| server["state"] == "failed")?
            .clone();
        failed["last_error"].as_str().map(str::to_owned)
    })
    .await;
    assert!(
        error.contains("`name`") && error.contains("is one of the OpenAPI service"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn discover_shows_a_documents_tools_and_drafts_a_policy() {
    let rest = Rest::start(&documented()).await;
    let folder = folder();
    let path = folder.path().join("items.json");
    std::fs::write(&path, documented()).unwrap();
    for place in [format!("{}/openapi", rest.url), path.display().to_string()] {
        let ran = output(
            toolgate(&["discover", "--openapi", &place, "--output", "json"]),
            "",
        )
        .await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let tools = ran.json();
        let of = |name: &str| {
            tools
                .as_array()
                .unwrap()
                .iter()
                .find(|tool| tool["name"] == name)
                .unwrap()
                .clone()
        };
        assert_eq!(of("list_items")["plain_read"], true);
        assert_eq!(of("remove_thing")["risk"], "DELETE");
        let draft = output(
            toolgate(&["discover", "--openapi", &place, "--generate-policy"]),
            "",
        )
        .await;
        assert!(
            draft.stdout.contains("list_items") && draft.code == 0,
            "{draft:?}"
        );
    }
}

/// The rows of the table of real documents in docs/openapi.md: file, operations, tools, left out.
fn shipped() -> Vec<(String, usize, usize, usize)> {
    let page = std::fs::read_to_string(tests::programs::checkout().join("docs/openapi.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line
            .strip_prefix("| `")?
            .strip_suffix('|')?
            .split('|')
            .map(str::trim)
            .collect();
        let [file, _, operations, tools, left_out] = cells.as_slice() else {
            return None;
        };
        let file = file.trim_matches('`').to_owned();
        Some((
            file,
            operations.parse().ok()?,
            tools.parse().ok()?,
            left_out.parse().ok()?,
        ))
    });
    rows.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn real_documents_are_imported_without_error_and_in_the_numbers_that_the_page_says() {
    let modules = tests::programs::checkout().join("tests/servers/node_modules");
    let rows = shipped();
    assert!(rows.len() >= 8, "{rows:?}");
    let mut files: Vec<std::path::PathBuf> = rows.iter().map(|row| modules.join(&row.0)).collect();
    for version in ["2.0", "3.0", "3.1"] {
        let folder = modules.join("@readme/oas-examples").join(version).join("json");
        let entries = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("make setup: {}: {error}", folder.display()));
        let paths = entries.map(|entry| entry.unwrap().path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|kind| kind == "json")));
    }
    files.sort();
    files.dedup();
    assert!(files.len() > 60, "{files:?}");
    for file in files {
        let name = file.strip_prefix(&modules).unwrap().display().to_string();
        let ran = output(
            toolgate(&[
                "discover",
                "--openapi",
                &file.display().to_string(),
                "--output",
                "json",
            ]),
            "",
        )
        .await;
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        if let Some((_, operations, tools, left_out)) = rows.iter().find(|row| row.0 == name) {
            assert_eq!(ran.json().as_array().unwrap().len(), *tools, "{name}");
            assert_eq!(tools + left_out, *operations, "{name}");
        }
    }
}
